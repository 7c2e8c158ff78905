"""google/rappor's schemes: its Python, C++ and Java clients' hashing and permanent noise.

Facts from that project's sources, last changed in 2017. What the server must share with the client
is the hashing; the noise is the client's own affair, and follows theirs so far as their published
test vectors pin it. Their clients have no domain separation, so two questions, or two positions of
one string, with equal Bloom bits would share permanent noise; inside a survey ours therefore key it
with a secret of the question's and slot's own.
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
    """The bits that a string sets: all three clients hash the cohort as 4 bytes, big-endian, then
    the value, and read each hash from the next `step` bytes of the MD5."""
    md5 = hashlib.md5(cohort.to_bytes(4, "big") + value, usedforsecurity=False).digest()
    return tuple(
        int.from_bytes(md5[at : at + step], order) % width for at in range(0, hashes * step, step)
    )


def prr_masks(stream: bytes, width: int, flip: int) -> tuple[int, int]:
    """(uniform, mask) from one byte a bit: its low bit, and whether the rest is below 128·f."""
    limit = flip // HALF_STEP
    uniform = mask = 0
    for i, byte in enumerate(stream[:width]):
        uniform |= (byte & 1) << i
        mask |= ((byte >> 1) < limit) << i
    return uniform, mask


def threshold_mask(draws: bytes, step: int, width: int, limit: int) -> int:
    """Bit i set where the i-th big-endian draw of `step` bytes is below `limit`/2³²."""
    scaled = limit >> (32 - 8 * step)
    mask = 0
    for i in range(width):
        mask |= (int.from_bytes(draws[i * step : (i + 1) * step], "big") < scaled) << i
    return mask


def hmac_drbg(entropy: bytes, personalisation: bytes, size: int) -> bytes:
    """The first bytes of HMAC_DRBG with SHA-256 (NIST SP 800-90A), no reseeding."""
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
    """What the Python and C++ clients share; subclasses say where bytes come from."""

    draw_bytes = 4  # bytes of one uniform draw of the instantaneous response
    max_width = 32

    def check(self, width: int, hashes: int, noise: Noise) -> None:
        if width > self.max_width:
            raise InputError(f"scheme {self.name} has at most {self.max_width} bits, got {width}")
        if noise.flip % HALF_STEP:
            raise InputError(
                f"scheme {self.name} needs f in steps of 1/128, got {2 * noise.flip / ONE}"
            )
        step = 1 << (32 - 8 * self.draw_bytes)
        for letter, limit in (("p", noise.p), ("q", noise.q)):
            if limit % step:
                raise InputError(
                    f"scheme {self.name} draws one byte a bit: give p and q as multiples of 1/256 "
                    f"(an epsilon alone cannot be met exactly), got {letter} = {limit / ONE:.6f}"
                )
        if hashes > (most := 16 // self._hash_bytes(width)):
            raise InputError(
                f"scheme {self.name} has at most {most} hashes at {width} bits, got {hashes}"
            )

    def _hash_bytes(self, width: int) -> int:
        """Bytes of the MD5 that one hash takes."""
        return ((width - 1).bit_length() + 7) // 8

    def positions(
        self, value: bytes, cohort: int, width: int, hashes: int, header: bytes
    ) -> tuple[int, ...]:
        return _md5_positions(value, cohort, width, hashes, self._hash_bytes(width), "little")

    def stream(self, bits: int, width: int, name: bytes, secret: bytes) -> bytes:
        """One pseudorandom byte for each bit; `name` is the encoder's."""
        return prf.prf(secret, bits.to_bytes(4, "big"))

    def permanent(self, bits: int, mechanism: BitMechanism, cohort: int, secret: bytes) -> int:
        parts = mechanism.domain.parts
        if any(parts):
            # Their streams know neither slot nor f nor cohort: a secret of its own stands for all.
            own = prf.fields(self.name.encode(), cohort.to_bytes(4, "big"))
            secret = prf.prf(secret, mechanism.permanent_prefix + own)
        stream = self.stream(bits, mechanism.width, parts[1], secret)
        uniform, mask = prr_masks(stream, mechanism.width, mechanism.noise.flip)
        return (bits & ~mask) | (uniform & mask)

    def rand_size(self, width: int, noise: Noise) -> int:
        return 2 * width * self.draw_bytes

    def instant(self, bits: int, width: int, noise: Noise, rand: bytes) -> int:
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
    """Their Python client: MD5, one HMAC-SHA-256 of the Bloom value, at most 32 bits."""

    name = "rappor-python"


class RapporCpp(_Rappor):
    """Their C++ client: as the Python one, with the encoder's name in the message; above 32 bits
    HMAC_DRBG, and above 256 bits several hash bytes, little-endian."""

    name = "rappor-cpp"
    draw_bytes = 1
    max_width = 65536

    def stream(self, bits: int, width: int, name: bytes, secret: bytes) -> bytes:
        if width <= 32:
            return prf.prf(secret, b"\x01" + name + bits.to_bytes(4, "big"))
        return hmac_drbg(secret, b"\x01" + name + bits.to_bytes((width + 7) // 8, "big"), width)


class RapporJava(Scheme):
    """Their Java client's hashing, two MD5 bytes per hash, big-endian; our noise."""

    name = "rappor-java"

    def check(self, width: int, hashes: int, noise: Noise) -> None:
        if width > 4096 or hashes > 8:
            raise InputError(
                f"scheme {self.name} has at most 4096 bits and 8 hashes, got {width} and {hashes}"
            )

    def positions(
        self, value: bytes, cohort: int, width: int, hashes: int, header: bytes
    ) -> tuple[int, ...]:
        return _md5_positions(value, cohort, width, hashes, 2, "big")


SCHEMES = (RapporPython(), RapporCpp(), RapporJava())
