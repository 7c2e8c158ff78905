"""SHA-256 of the first bytes of many rows, all of one length and short enough for a single block.

The candidates of a search are such rows. Behind the same header of 32 bytes their blocks differ in
a few words only, so nothing else is written for a row. See `sha256` for the layout of `work`.
"""

import numpy as np

from deniable.kernels.array_types import Bytes, UInt32s, Words
from deniable.kernels.compiled import compiled, inlined
from deniable.kernels.hashing.sha256 import LANES, START, STATE, WORK, big_endian, compress

HEADER_WORDS = 8
MAX_LENGTH = 23
"""Longest row: SHA-256 pads a message by at least a bit and its length in 8 bytes."""


@inlined
def shared_words(lead: UInt32s, length: int) -> UInt32s:
    """Return `work` with the words that all rows of this length share; lead : u32[8]."""
    work = np.zeros(WORK, dtype=np.uint32)
    for i in range(HEADER_WORDS * LANES):
        work[i] = lead[i // LANES]
    for i in range(15 * LANES, 16 * LANES):
        work[i] = np.uint32(8 * (4 * HEADER_WORDS + length))
    return work


@inlined
def write_row(work: UInt32s, lane: int, data: Bytes, start: int, length: int) -> None:
    """Write data[start : start + length] into the block of a lane, and the bit that ends it."""
    whole = length // 4
    for word in range(whole):
        place = np.uint64(LANES * (HEADER_WORDS + word) + lane)
        work[place] = np.uint32(big_endian(data, start + 4 * word))
    last = np.uint64(0x80) << np.uint64(24 - 8 * (length - 4 * whole))
    for byte in range(4 * whole, length):
        shift = np.uint64(24 - 8 * (byte - 4 * whole))
        last |= np.uint64(data[np.uint64(start + byte)]) << shift
    work[np.uint64(LANES * (HEADER_WORDS + whole) + lane)] = np.uint32(last)


@inlined
def hash_lanes(work: UInt32s, x: Words, y: Words) -> None:
    """Hash the block of each lane; write the pair of its digest to x and y, u64[16] each.

    The pair is the first and the second 8 bytes, little-endian; y is made odd.
    """
    for i in range(STATE, WORK):
        work[i] = START[(i - STATE) // LANES]
    compress(work)
    for lane in range(LANES):
        x[lane] = _little_endian(work, 0, lane)
        y[lane] = _little_endian(work, 2, lane) | np.uint64(1)


@inlined
def _little_endian(work: UInt32s, word: int, lane: int) -> np.uint64:
    """Return eight bytes of the digest of a lane, from this word on, as a little-endian word."""
    low = np.uint64(work[STATE + LANES * word + lane])
    z = (np.uint64(work[STATE + LANES * (word + 1) + lane]) << np.uint64(32)) | low
    pairs, halves = np.uint64(0x00FF00FF00FF00FF), np.uint64(0x0000FFFF0000FFFF)
    z = ((z & pairs) << np.uint64(8)) | ((z >> np.uint64(8)) & pairs)
    return ((z & halves) << np.uint64(16)) | ((z >> np.uint64(16)) & halves)


@compiled
def row_pairs(lead: UInt32s, rows: Bytes, length: int, x: Words, y: Words) -> None:
    """Hash lead ‖ rows[i, :length]; lead : u32[8]; rows : u8[N, any]; x, y : u64[N]."""
    count, width = rows.shape
    data = rows.reshape(-1)
    work = shared_words(lead, length)
    one, two = np.empty(LANES, np.uint64), np.empty(LANES, np.uint64)
    for group in range(0, count, LANES):
        lanes = min(LANES, count - group)
        for lane in range(lanes):
            write_row(work, lane, data, (group + lane) * width, length)
        hash_lanes(work, one, two)
        for lane in range(lanes):
            x[group + lane] = one[lane]
            y[group + lane] = two[lane]
