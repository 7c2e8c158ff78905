"""Schemes: how strings are hashed and how noise is derived. `deniable-1` is ours.

The others hash as google/rappor's three clients do, so that reports can be decoded with the maps
their users already have; see `rappor.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deniable.errors import InputError
from deniable.mechanisms import prf
from deniable.mechanisms.noise import ONE, Noise, randomise

if TYPE_CHECKING:
    from deniable.mechanisms.bit_mechanism import BitMechanism

U64 = (1 << 64) - 1


def mix64(z: int) -> int:
    """The finaliser of SplitMix64 (Steele, Lea and Flood, 2014)."""
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & U64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & U64
    return z ^ (z >> 31)


class Scheme:
    """One way of hashing and of deriving noise; named in the survey, never changed once named.

    This one is ours: SHA-256 for hashing, HMAC-SHA-256 for the permanent noise, any width, any
    number of hashes. Others override its methods.
    """

    name = "deniable-1"

    def check(self, width: int, hashes: int, noise: Noise) -> None:
        """Raise InputError where the scheme cannot carry these parameters; ours carries all."""

    def positions(
        self, value: bytes, cohort: int, width: int, hashes: int, header: bytes
    ) -> tuple[int, ...]:
        """The bits that a string sets, one per hash, in the order of the hashes."""
        # One SHA-256 a value, whatever the number of cohorts: its first 16 bytes seed a SplitMix64
        # generator (start x, odd step y) whose outputs c·h … c·h+h−1 are cohort c's hashes. Privacy
        # does not rest on the hash; an analyst hashing millions of candidates rests on its speed.
        seed = prf.digest(header + value)
        x = int.from_bytes(seed[:8], "little")
        y = int.from_bytes(seed[8:16], "little") | 1
        first = x + (cohort * hashes + 1) * y
        steps = range(first, first + hashes * y, y)
        return tuple([((mix64(z & U64) >> 32) * width) >> 32 for z in steps])

    def permanent(self, bits: int, mechanism: BitMechanism, cohort: int, secret: bytes) -> int:
        """The permanent response to these bits."""
        flip = mechanism.noise.flip
        message = mechanism.permanent_message(bits, cohort)
        words = prf.words(secret, message, mechanism.size)
        return randomise(bits, mechanism.width, flip, ONE - flip, words)

    def rand_size(self, width: int, noise: Noise) -> int:
        """Random bytes that `instant` takes."""
        return noise.fresh_digits * ((width + 7) // 8)

    def instant(self, bits: int, width: int, noise: Noise, rand: bytes) -> int:
        """The instantaneous response to a permanent one."""
        size = (width + 7) // 8

        def word(level: int) -> int:
            return int.from_bytes(rand[level * size : (level + 1) * size], "little")

        return randomise(bits, width, noise.p, noise.q, word)


DENIABLE_1 = Scheme()
SCHEME_NAMES = ("deniable-1", "rappor-python", "rappor-cpp", "rappor-java")


def scheme_named(name: str) -> Scheme:
    """The scheme of this name."""
    if name == DENIABLE_1.name:
        return DENIABLE_1
    if name not in SCHEME_NAMES:
        raise InputError(f"expected a scheme among {', '.join(SCHEME_NAMES)}; got {name!r}")
    from deniable.mechanisms import rappor_schemes as rappor

    return next(scheme for scheme in rappor.SCHEMES if scheme.name == name)
