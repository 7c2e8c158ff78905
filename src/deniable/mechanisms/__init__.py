"""What a client does to one value: hash or index it, add permanent noise, add fresh noise."""

from typing import TYPE_CHECKING, Any

from deniable.mechanisms.base import Domain, Mechanism
from deniable.mechanisms.bloom import Bloom
from deniable.mechanisms.noise import Noise, randomise, threshold
from deniable.mechanisms.options import Boolean, Choice
from deniable.mechanisms.registry import calibrate, from_canonical

if TYPE_CHECKING:
    from deniable.mechanisms.local_hash import LocalHash

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


def __getattr__(name: str) -> Any:
    # Imported when first asked for: most clients never do, and their first answer should be quick.
    if name != "LocalHash":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from deniable.mechanisms.local_hash import LocalHash

    return LocalHash
