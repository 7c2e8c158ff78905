"""Everything a client derives from its secret, and how values are hashed: SHA-256 and HMAC only.

Inputs are sequences of fields, each preceded by its length, so no two different sequences give the
same bytes; the first field names the purpose. A browser can do all of it with WebCrypto.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable

BLOCK = 32


def fields(*parts: bytes) -> bytes:
    """Length-prefixed concatenation, 4-byte big-endian lengths: injective."""
    return b"".join([len(part).to_bytes(4, "big") + part for part in parts])


def prf(secret: bytes, message: bytes) -> bytes:
    """HMAC-SHA-256."""
    return hmac.digest(secret, message, "sha256")


def digest(message: bytes) -> bytes:
    """SHA-256."""
    return hashlib.sha256(message).digest()


def draw(secret: bytes, message: bytes, bound: int) -> int:
    """A number below `bound`, uniform to within bound/2²⁵⁶, the same for ever."""
    return int.from_bytes(prf(secret, message), "big") % bound


def words(secret: bytes, message: bytes, size: int) -> Callable[[int], int]:
    """Level l of an endless keyed stream: its bytes [l·size, (l+1)·size), little-endian.

    The stream is HMAC(K, 0) ‖ HMAC(K, 1) ‖ …, counters of 4 bytes big-endian, K = HMAC(secret,
    message).
    """
    key = prf(secret, message)
    buffer = bytearray()

    def word(level: int) -> int:
        end = (level + 1) * size
        while len(buffer) < end:
            buffer.extend(prf(key, (len(buffer) // BLOCK).to_bytes(4, "big")))
        return int.from_bytes(buffer[level * size : end], "little")

    return word
