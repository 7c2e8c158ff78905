"""What a client does to one value: hash or index it, add permanent noise, add fresh noise."""

from deniable.mechanisms.base import Domain, Mechanism
from deniable.mechanisms.basic import Boolean, Choice
from deniable.mechanisms.bloom import Bloom
from deniable.mechanisms.localhash import LocalHash
from deniable.mechanisms.noise import Noise, randomise, threshold
from deniable.mechanisms.registry import calibrate, from_canonical

__all__ = [
    "Bloom",
    "Boolean",
    "Choice",
    "Domain",
    "LocalHash",
    "Mechanism",
    "Noise",
    "calibrate",
    "from_canonical",
    "randomise",
    "threshold",
]
