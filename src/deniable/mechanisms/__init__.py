"""From one value to a noisy report: hash or index it, add permanent noise, add fresh noise."""

from typing import TYPE_CHECKING

from deniable.lazy import lazy_exports
from deniable.mechanisms.base import Domain, Mechanism, from_canonical, register
from deniable.mechanisms.bit_mechanism import BitMechanism
from deniable.mechanisms.bloom import AsymmetricBloom, Bloom
from deniable.mechanisms.noise import Noise, randomise
from deniable.mechanisms.options import AsymmetricChoice, Boolean, Choice

if TYPE_CHECKING:
    from deniable.mechanisms.calibration import calibrate
    from deniable.mechanisms.local_hash import LocalHash
    from deniable.mechanisms.number_mechanism import NumberMechanism
    from deniable.mechanisms.permanent_hash import PermanentLocalHash
    from deniable.mechanisms.subset import Subset

__all__ = [
    "AsymmetricBloom",
    "AsymmetricChoice",
    "BitMechanism",
    "Bloom",
    "Boolean",
    "Choice",
    "Domain",
    "LocalHash",
    "Mechanism",
    "Noise",
    "NumberMechanism",
    "PermanentLocalHash",
    "Subset",
    "calibrate",
    "from_canonical",
    "randomise",
    "register",
]

# Most clients need none of these.
__getattr__ = lazy_exports(
    __name__,
    {
        "deniable.mechanisms.calibration": ["calibrate"],
        "deniable.mechanisms.local_hash": ["LocalHash"],
        "deniable.mechanisms.number_mechanism": ["NumberMechanism"],
        "deniable.mechanisms.permanent_hash": ["PermanentLocalHash"],
        "deniable.mechanisms.subset": ["Subset"],
    },
)
