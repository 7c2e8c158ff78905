"""Hashing and permanent noise of google/rappor's Python, C++ and Java clients.

The details follow that project's sources, last changed in 2017. An analysis needs to know only the
hashing; the noise follows theirs as far as their published test vectors define it. Their clients
have no domain separation: two questions, or two positions of one string, with equal Bloom bits
would share permanent noise. Within a survey, this library therefore derives a separate secret for
each question and slot.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Literal

from deniable.errors import InputError
from deniable.mechanisms import prf
from deniable.mechanisms.noise import ONE, Noise
from deniable.mechanisms.schemes import Scheme

if TYPE_CHECKING:
    from deniable.mechanisms.bit_mechanism import BitMechanism

HALF_STEP = ONE >> 8  # φ = f/2 in steps of 1/256, since f moves in steps of 1/128


def _md5_positions(
    value: bytes, cohort: int, width: int, hashes: int, step: int, order: Literal["little", "big"]
) -> tuple[int, ...]:
    """Return the bits that a string sets.

    All three clients compute the MD5 of the cohort (4 bytes, big-endian) and the value, and read
    each hash from the next `step` bytes.
    """
    md5 = hashlib.md5(cohort.to_bytes(4, "big") + value, usedforsecurity=False).digest()
    return tuple(
        int.from_bytes(md5[at : at + step], order) % width for at in range(0, hashes * step, step)
    )


def prr_masks(stream: bytes, width: int, flip: int) -> tuple[int, int]:
    """Return (uniform, mask) from one byte per bit: its low bit, and (byte >> 1) < 128·f."""
    limit = flip // HALF_STEP
    uniform = mask = 0
    for i, byte in enumerate(stream[:width]):
        uniform |= (byte & 1) << i
        mask |= ((byte >> 1) < limit) << i
    return uniform, mask


def threshold_mask(draws: bytes, step: int, width: int, limit: int) -> int:
    """Return the bits i for which draw i (`step` bytes, big-endian) is below `limit`/2³²."""
    scaled = limit >> (32 - 8 * step)
    mask = 0
    for i in range(width):
        mask |= (int.from_bytes(draws[i * step : (i + 1) * step], "big") < scaled) << i
    return mask


def hmac_drbg(entropy: bytes, personalisation: bytes, size: int) -> bytes:
    """Return the first bytes of HMAC_DRBG with SHA-256 (NIST SP 800-90A) without reseeding."""
    key, state = bytes(32), b"\x01" * 32
    seed = entropy + personalisation
    for tag in (b"\x00", b"\x01"):
        key = prf.prf(key, state + tag + seed)
        state = prf.prf(key, state)
    out = b""
    while len(out) < size:
        state = prf.prf(key, state)
        out += state
    return out[:size]


class _Rappor(Scheme):
    """What the Python and C++ clients share; they differ in the stream of random bytes."""

    draw_bytes = 4  # bytes of one uniform draw of the instantaneous response
    max_width = 32

    def check(self, width: int, hashes: int, noise: Noise) -> None:
        """Raise InputError beyond what the client supports."""
        if width > self.max_width:
            raise InputError(
                f"scheme {self.name} supports at most {self.max_width} bits: set bits to "
                f"{self.max_width} or less"
            )
        if noise.flip % HALF_STEP:
            raise InputError(
                f"scheme {self.name} needs f as a multiple of 1/128, not {2 * noise.flip / ONE:g}"
            )
        step = 1 << (32 - 8 * self.draw_bytes)
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

    def stream(self, bits: int, width: int, name: bytes, secret: bytes) -> bytes:
        """Return one pseudorandom byte per bit; `name` is the name of the encoder."""
        return prf.prf(secret, bits.to_bytes(4, "big"))

    def permanent(self, bits: int, mechanism: BitMechanism, cohort: int, secret: bytes) -> int:
        """Return the bits with permanent noise."""
        parts = mechanism.domain.parts
        if any(parts):
            # Their streams depend on neither slot nor f nor cohort, so a derived secret does.
            suffix = prf.fields(self.name.encode(), cohort.to_bytes(4, "big"))
            secret = prf.prf(secret, mechanism.permanent_prefix + suffix)
        stream = self.stream(bits, mechanism.width, parts[1], secret)
        uniform, mask = prr_masks(stream, mechanism.width, mechanism.noise.flip)
        return (bits & ~mask) | (uniform & mask)

    def rand_size(self, width: int, noise: Noise) -> int:
        """Return the number of random bytes that `fresh` takes."""
        return 2 * width * self.draw_bytes

    def fresh(self, bits: int, width: int, noise: Noise, rand: bytes) -> int:
        """Return the bits with fresh noise, drawn from the random bytes."""
        # Draws for p, then for q, 32 bits at a time from the most significant end.
        result, at, top = 0, 0, width
        while top > 0:
            low = max(0, top - 32)
            size = (top - low) * self.draw_bytes
            masks = [
                threshold_mask(rand[at + i * size :][:size], self.draw_bytes, top - low, limit)
                for i, limit in enumerate((noise.p, noise.q))
            ]
            result |= ((masks[0] << low) & ~bits) | ((masks[1] << low) & bits)
            at, top = at + 2 * size, low
        return result


class RapporPython(_Rappor):
    """The Python client: MD5, one HMAC-SHA-256 of the Bloom bits, at most 32 bits."""

    name = "rappor-python"


class RapporCpp(_Rappor):
    """The C++ client: as the Python client, with the name of the encoder in the message.

    Above 32 bits it uses HMAC_DRBG; above 256 bits a hash has several bytes, little-endian.
    """

    name = "rappor-cpp"
    draw_bytes = 1
    max_width = 65536

    def stream(self, bits: int, width: int, name: bytes, secret: bytes) -> bytes:
        """Return one pseudorandom byte per bit; `name` is the name of the encoder."""
        if width <= 32:
            return prf.prf(secret, b"\x01" + name + bits.to_bytes(4, "big"))
        return hmac_drbg(secret, b"\x01" + name + bits.to_bytes((width + 7) // 8, "big"), width)


class RapporJava(Scheme):
    """The Java client: two MD5 bytes per hash, big-endian; noise as in `deniable-1`."""

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
        """Return the bits that a string sets, two bytes of the MD5 per hash."""
        return _md5_positions(value, cohort, width, hashes, 2, "big")


SCHEMES = (RapporPython(), RapporCpp(), RapporJava())
