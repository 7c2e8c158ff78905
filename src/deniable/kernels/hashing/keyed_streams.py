"""Keyed random bytes of many clients at once, by HMAC-SHA-256 (RFC 2104).

A client's permanent noise is a stream keyed by its secret and by what it answers:

    K = HMAC(secret, message),  stream = HMAC(K, be32(0)) ‖ HMAC(K, be32(1)) ‖ ...

Sixteen clients share each compression, as in `sha256`. A client costs 6 compressions (more for
messages above 55 bytes) and 2 per 32 bytes of stream.
"""

import numpy as np

from deniable.errors import InputError
from deniable.kernels.array_types import Bytes, UInt32s
from deniable.kernels.compiled import compiled, inlined, read_only
from deniable.kernels.hashing.sha256 import (
    LANES,
    START,
    STATE,
    WORK,
    block_count,
    compress,
    fill_block,
)

SECRET_BYTES = 32
DIGEST_BYTES = 32


@inlined
def _copy_state(source: UInt32s, start: int, to: UInt32s, at: int) -> None:
    # A loop: numba takes a second to compile the assignment of one slice to another.
    for i in range(8 * LANES):
        to[at + i] = source[start + i]


@inlined
def _start_keyed(work: UInt32s, key: UInt32s, pad: np.uint32) -> None:
    """Leave in the state of `work` what a hash begins with under a 32-byte key, u32[8 * 16]."""
    for i in range(8 * LANES):
        work[i] = key[i] ^ pad
        work[8 * LANES + i] = pad
        work[STATE + i] = START[i // LANES]
    compress(work)


@inlined
def _fill_short(work: UInt32s, words: int, counter: int) -> None:
    """End a keyed block of `words` words, 1 or 8; `counter` is the one word."""
    for i in range(LANES * words, LANES * 15):
        work[i] = 0
    for lane in range(LANES):
        if words == 1:
            work[lane] = counter
        work[LANES * words + lane] = 0x80000000
        work[LANES * 15 + lane] = 8 * (64 + 4 * words)


@inlined
def _finish_keyed(work: UInt32s, outer: UInt32s) -> None:
    """Hash the digests in the state of `work` under the outer key states."""
    _copy_state(work, STATE, work, 0)
    _copy_state(outer, 0, work, STATE)
    _fill_short(work, 8, 0)
    compress(work)


@inlined
def _pads(work: UInt32s, key: UInt32s, inner: UInt32s, outer: UInt32s) -> None:
    """Set the states that a keyed hash begins and ends with."""
    _start_keyed(work, key, np.uint32(0x5C5C5C5C))
    _copy_state(work, STATE, outer, 0)
    _start_keyed(work, key, np.uint32(0x36363636))
    _copy_state(work, STATE, inner, 0)


@compiled
def _streams(secrets: UInt32s, messages: Bytes, length: int, out: UInt32s) -> None:
    count, lead = secrets.shape[0], np.empty(0, dtype=np.uint32)
    work = np.empty(WORK, dtype=np.uint32)
    key = np.empty(8 * LANES, dtype=np.uint32)
    inner, outer = np.empty(8 * LANES, dtype=np.uint32), np.empty(8 * LANES, dtype=np.uint32)
    for group in range(0, count, LANES):
        # Idle lanes of the last group repeat its last client.
        for lane in range(LANES):
            for t in range(8):
                key[LANES * t + lane] = secrets[min(group + lane, count - 1), t]
        _pads(work, key, inner, outer)
        for block in range(block_count(length)):
            for lane in range(LANES):
                start = min(group + lane, count - 1) * length
                fill_block(work, lane, block, lead, messages, start, length, 64)
            compress(work)
        _finish_keyed(work, outer)
        _copy_state(work, STATE, key, 0)
        _pads(work, key, inner, outer)
        for counter in range(out.shape[1] // 8):
            _copy_state(inner, 0, work, STATE)
            _fill_short(work, 1, counter)
            compress(work)
            _finish_keyed(work, outer)
            for lane in range(min(LANES, count - group)):
                for t in range(8):
                    out[group + lane, 8 * counter + t] = work[STATE + LANES * t + lane]


def keyed_streams(secrets: Bytes, prefix: bytes, suffix: Bytes, size: int) -> Bytes:
    """Return the first `size` bytes of every client's stream for message prefix ‖ its suffix.

    secrets : u8[N, 32]
    prefix : bytes, common to all
    suffix : u8[N, any], such as the client's packed Bloom bits
    Returns u8[N, size].

    >>> import hmac
    >>> secret, answer = np.zeros((1, 32), dtype=np.uint8), np.array([[5]], dtype=np.uint8)
    >>> stream = keyed_streams(secret, b"survey", answer, 8)
    >>> key = hmac.digest(bytes(32), b"survey\\x05", "sha256")
    >>> stream.tobytes() == hmac.digest(key, bytes(4), "sha256")[:8]
    True
    """
    count = len(secrets)
    if secrets.shape != (count, SECRET_BYTES) or secrets.dtype != np.uint8:
        raise InputError(
            f"expected secrets as uint8[N, {SECRET_BYTES}], "
            f"got {secrets.dtype}{list(secrets.shape)}"
        )
    if suffix.ndim != 2 or len(suffix) != count or suffix.dtype != np.uint8:
        raise InputError(
            f"expected one suffix row for each of {count} secrets as uint8[{count}, any], "
            f"got {suffix.dtype}{list(suffix.shape)}"
        )
    if size < 0:
        raise InputError(f"expected a stream of 0 bytes or more, got {size}")
    length = len(prefix) + suffix.shape[1]
    messages = np.zeros(max(4, count * length), dtype=np.uint8)  # `fill_block` reads 4 bytes
    message = messages[: count * length].reshape(count, length)
    message[:, : len(prefix)] = np.frombuffer(prefix, dtype=np.uint8)
    message[:, len(prefix) :] = suffix
    words = np.empty((count, 8 * -(-size // DIGEST_BYTES)), dtype=np.uint32)
    keys = np.ascontiguousarray(secrets).view(">u4")
    _streams(read_only(keys, np.uint32), messages, length, words)
    return words.byteswap(inplace=True).view(np.uint8)[:, :size]
