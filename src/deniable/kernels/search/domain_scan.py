"""Compute the evidence for every string of a range of the domain, without storing the strings.

All strings of one length with the same first symbols differ in a few bytes of one SHA-256 block.
Sixteen strings are hashed together and the entries of their cells added up at once. This takes
about 60 ns per string, so 10⁹ strings take a minute, and only strings with enough evidence take
memory.
"""

import numpy as np

from deniable.kernels.array_types import Bytes, Int64s, Singles, UInt32s, Words
from deniable.kernels.compiled import compiled, inlined
from deniable.kernels.hashing.positions import place_of
from deniable.kernels.hashing.sha256 import LANES, START, STATE, WORK, big_endian, compress

TAIL_BYTES = 32
"""Bytes of a block after a header of 32: the symbols, and the padding of SHA-256."""
MAX_SYMBOLS = TAIL_BYTES - 9
"""Maximum number of symbols: SHA-256 pads a message by at least a bit and its length in 8 bytes."""


@compiled
def scan(
    lead: UInt32s,
    tail: Bytes,
    first: int,
    stop: int,
    symbols: int,
    tables: Singles,
    least: np.float32,
    kept: Int64s,
) -> int:
    """Find strings with enough evidence among all that begin with tail[:first].

    lead : u32[8], the header; tail : u8[32], the remainder of the block, 0 at first … stop;
    symbols : size of the alphabet; tables : float32[C, K]; least : minimum sum over families
    There are symbols ** (stop - first) strings, numbered in the order of their symbols.
    kept : int64[strings], receives the numbers of the strings found. Returns how many there are.
    """
    count, matches = symbols ** (stop - first), 0
    work = np.empty(WORK, dtype=np.uint32)
    x, y = np.empty(LANES, np.uint64), np.empty(LANES, np.uint64)
    total = np.empty(LANES, np.float32)
    for i in range(8 * LANES):
        work[i] = lead[i // LANES]
    low, high = 0, TAIL_BYTES // 4  # first all words, then those that change
    for start in range(0, count, LANES):
        for lane in range(LANES):
            for word in range(low, high):
                work[LANES * (8 + word) + lane] = np.uint32(big_endian(tail, 4 * word))
            _next_string(tail, first, stop, symbols)
        low, high = first // 4, (stop + 3) // 4
        for i in range(STATE, WORK):
            work[i] = START[(i - STATE) // LANES]
        compress(work)
        for lane in range(LANES):
            x[lane] = _little_endian(work, 0, lane)
            y[lane] = _little_endian(work, 2, lane) | np.uint64(1)
        _add_up(x, y, tables, total)
        for lane in range(min(LANES, count - start)):
            if total[lane] >= least:
                kept[matches] = start + lane
                matches += 1
    return matches


@inlined
def _add_up(x: Words, y: Words, tables: Singles, total: Singles) -> None:
    """Sum table entries as `cell_sums.cell_sums`, for all lanes together; x is overwritten."""
    families, cells = tables.shape
    total[:] = 0
    for family in range(families):
        for lane in range(LANES):
            x[lane] += y[lane]
            total[lane] += tables[family, place_of(x[lane], np.uint64(cells))]


@inlined
def _next_string(tail: Bytes, first: int, stop: int, symbols: int) -> None:
    """Advance tail[first:stop] to the next string."""
    at = stop - 1
    while at >= first:
        tail[at] += 1
        if tail[at] < symbols:
            break
        tail[at] = 0
        at -= 1


@inlined
def _little_endian(work: UInt32s, word: int, lane: int) -> np.uint64:
    """Return eight bytes of the digest of a lane, from this word on, as a little-endian word."""
    low = np.uint64(work[STATE + LANES * word + lane])
    z = (np.uint64(work[STATE + LANES * (word + 1) + lane]) << np.uint64(32)) | low
    pairs, halves = np.uint64(0x00FF00FF00FF00FF), np.uint64(0x0000FFFF0000FFFF)
    z = ((z & pairs) << np.uint64(8)) | ((z >> np.uint64(8)) & pairs)
    return ((z & halves) << np.uint64(16)) | ((z >> np.uint64(16)) & halves)
