"""Schemes: how strings are hashed. The scheme of clients is `deniable-1`.

The other schemes hash as the three clients of google/rappor do. They are for the analysis of
imported reports only: clients refuse surveys with them. See `rappor_schemes.py`.
"""

from __future__ import annotations

from deniable.errors import InputError, did_you_mean
from deniable.mechanisms import prf
from deniable.mechanisms.noise import Noise

MASK_64 = (1 << 64) - 1
"""Reduces an integer to 64 bits."""


def mix64(z: int) -> int:
    """Mix the bits of a 64-bit number with the finaliser of SplitMix64 (Steele et al., 2014)."""
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK_64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK_64
    return z ^ (z >> 31)


class Scheme:
    """The scheme `deniable-1`, and the base class of the others.

    It hashes with SHA-256, and supports any number of bits, hashes and cohorts. A published scheme
    never changes, since surveys refer to it by name.
    """

    name = "deniable-1"

    def check(self, width: int, hashes: int, noise: Noise) -> None:
        """Raise InputError for unsupported parameters; `deniable-1` supports all."""

    def positions(
        self, value: bytes, cohort: int, width: int, hashes: int, header: bytes
    ) -> tuple[int, ...]:
        """Return the bits that a string sets, one per hash, in the order of the hashes.

        header : bytes before every value that is hashed, so that no two slots hash alike
        """
        # One SHA-256 per value serves all cohorts: its first 16 bytes seed a SplitMix64 generator
        # (start x, odd step y). With h hashes, its outputs c·h to c·h + h − 1 belong to cohort c.
        # Privacy does not depend on the hash, but the time to analyse millions of candidates does.
        seed = prf.digest(header + value)
        x = int.from_bytes(seed[:8], "little")
        y = int.from_bytes(seed[8:16], "little") | 1
        first = x + (cohort * hashes + 1) * y
        states = range(first, first + hashes * y, y)
        return tuple([((mix64(state & MASK_64) >> 32) * width) >> 32 for state in states])


DENIABLE_1 = Scheme()
SCHEME_NAMES = ("deniable-1", "rappor-python", "rappor-cpp", "rappor-java")


def scheme_named(name: str) -> Scheme:
    """Return the scheme of this name."""
    if name == DENIABLE_1.name:
        return DENIABLE_1
    if name not in SCHEME_NAMES:
        raise InputError(
            f"unknown scheme {name!r:.200}: the known ones are {', '.join(SCHEME_NAMES)}."
            + did_you_mean(name, SCHEME_NAMES)
        )
    from deniable.mechanisms import rappor_schemes as rappor

    return next(scheme for scheme in rappor.SCHEMES if scheme.name == name)
