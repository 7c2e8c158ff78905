"""Derivation of noise and clear fields from the secret, and hashing: SHA-256 and HMAC-SHA-256.

Inputs are sequences of fields, each preceded by its length, so different sequences give different
bytes; the first field names the purpose. Browsers can compute all of it with WebCrypto.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable

BLOCK = 32
"""Bytes of one HMAC-SHA-256."""


def fields(*parts: bytes) -> bytes:
    """Concatenate the parts, each after its length in 4 bytes, big-endian; injective."""
    return b"".join([len(part).to_bytes(4, "big") + part for part in parts])


def prf(secret: bytes, message: bytes) -> bytes:
    """Return the HMAC-SHA-256 of the message, a pseudorandom function of it."""
    return hmac.digest(secret, message, "sha256")


def digest(message: bytes) -> bytes:
    """Return the SHA-256 of the message."""
    return hashlib.sha256(message).digest()


def draw(secret: bytes, message: bytes, bound: int) -> int:
    """Return a pseudorandom number below `bound`, uniform to within bound/2²⁵⁶."""
    return int.from_bytes(prf(secret, message), "big") % bound


def words(secret: bytes, message: bytes, size: int) -> Callable[[int], int]:
    """Return a function that gives words of `size` bytes, little-endian, of a keyed stream.

    Word d is bytes d·size to (d+1)·size of the stream HMAC(K, 0) ‖ HMAC(K, 1) ‖ …, where counters
    have 4 bytes, big-endian, and K = HMAC(secret, message).
    """
    key = prf(secret, message)
    buffer = bytearray()

    def word(digit: int) -> int:
        end = (digit + 1) * size
        while len(buffer) < end:
            buffer.extend(prf(key, (len(buffer) // BLOCK).to_bytes(4, "big")))
        return int.from_bytes(buffer[digit * size : end], "little")

    return word
