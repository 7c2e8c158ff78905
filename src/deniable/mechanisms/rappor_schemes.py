"""Hash functions of google/rappor's Python, C++ and Java clients, to analyse their reports.

The details follow that project's sources, last changed in 2017. All three clients compute the MD5
of the cohort (4 bytes, big-endian) and the value, and read one hash after the other from it.
"""

from __future__ import annotations

import hashlib
from typing import Literal

from deniable.errors import InputError
from deniable.mechanisms.noise import ONE, Noise
from deniable.mechanisms.schemes import Scheme


def _md5_positions(
    value: bytes, cohort: int, width: int, hashes: int, step: int, order: Literal["little", "big"]
) -> tuple[int, ...]:
    """Return the bits that a string sets; each hash takes `step` bytes of the MD5."""
    md5 = hashlib.md5(cohort.to_bytes(4, "big") + value, usedforsecurity=False).digest()
    return tuple(
        int.from_bytes(md5[at : at + step], order) % width for at in range(0, hashes * step, step)
    )


class RapporPython(Scheme):
    """The Python client: at most 32 bits, 7 random bits per bit for f."""

    name = "rappor-python"
    max_width = 32
    noise_steps = ONE  # p and q are multiples of 1/noise_steps

    def check(self, width: int, hashes: int, noise: Noise) -> None:
        """Raise InputError beyond what the client supports."""
        if width > self.max_width:
            raise InputError(
                f"scheme {self.name} supports at most {self.max_width} bits: set bits to "
                f"{self.max_width} or less"
            )
        if noise.flip % (ONE >> 8):  # φ = f/2
            raise InputError(
                f"scheme {self.name} needs f as a multiple of 1/128, not {2 * noise.flip / ONE:g}"
            )
        step = ONE // self.noise_steps
        if noise.p % step or noise.q % step:
            raise InputError(
                f"scheme {self.name} draws one random byte per bit, so p and q must be "
                "multiples of 1/256: set them instead of epsilon"
            )
        if hashes > (most := 16 // self._hash_bytes(width)):
            raise InputError(
                f"scheme {self.name} supports at most {most} hashes with {width} bits, not {hashes}"
            )

    def _hash_bytes(self, width: int) -> int:
        """Return the number of bytes of the MD5 that one hash takes."""
        return ((width - 1).bit_length() + 7) // 8

    def positions(
        self, value: bytes, cohort: int, width: int, hashes: int, header: bytes
    ) -> tuple[int, ...]:
        """Return the bits that a string sets, one per hash."""
        return _md5_positions(value, cohort, width, hashes, self._hash_bytes(width), "little")


class RapporCpp(RapporPython):
    """The C++ client: as the Python client, with more bits and one random byte per bit."""

    name = "rappor-cpp"
    max_width = 65536
    noise_steps = 256


class RapporJava(Scheme):
    """The Java client: two bytes per hash, big-endian."""

    name = "rappor-java"

    def check(self, width: int, hashes: int, noise: Noise) -> None:
        """Raise InputError beyond 4096 bits or 8 hashes."""
        if width > 4096 or hashes > 8:
            raise InputError(
                f"scheme {self.name} supports at most 4096 bits and 8 hashes, "
                f"not {width} and {hashes}"
            )

    def positions(
        self, value: bytes, cohort: int, width: int, hashes: int, header: bytes
    ) -> tuple[int, ...]:
        """Return the bits that a string sets, one per hash."""
        return _md5_positions(value, cohort, width, hashes, 2, "big")


SCHEMES = (RapporPython(), RapporCpp(), RapporJava())
