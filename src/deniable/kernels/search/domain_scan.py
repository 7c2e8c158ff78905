"""Evidence for every string of a stretch of the domain: hashed and looked up, never stored.

All strings of one length that share their first symbols differ in a few bytes of one SHA-256 block.
Sixteen of them are hashed side by side and their cells' entries added up at once, some 60 ns a
string, so that 10⁹ strings take a minute and no memory but for the few that are kept.
"""

import numpy as np

from deniable.kernels.array_types import Bytes, Int64s, Singles, UInt32s, Words
from deniable.kernels.compiled import compiled, inlined
from deniable.kernels.hashing.positions import place_of
from deniable.kernels.hashing.sha256 import LANES, START, STATE, WORK, big_endian, compress

TAIL = 32
"""Bytes of a block after a header of 32: the symbols, and the ending that SHA-256 adds."""


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
    """Look at all symbols ** (stop - first) strings that begin with tail[:first].

    lead : u32[8], the header; tail : u8[32], the rest of the block, counted up from zeros at
    first … stop; symbols : how many there are, numbered from 0; tables : float32[C, K]
    The numbers of the strings whose sum over families is at least `least`, counted in this order,
    go to kept, int64[one for each string]. Returns how many there are.
    """
    count, found = symbols ** (stop - first), 0
    work = np.empty(WORK, dtype=np.uint32)
    x, y = np.empty(LANES, np.uint64), np.empty(LANES, np.uint64)
    total = np.empty(LANES, np.float32)
    for i in range(8 * LANES):
        work[i] = lead[i // LANES]
    low, high = 0, TAIL // 4  # at first every word, then those that change
    for start in range(0, count, LANES):
        for lane in range(LANES):
            for word in range(low, high):
                work[LANES * (8 + word) + lane] = np.uint32(big_endian(tail, 4 * word))
            _count_up(tail, first, stop, symbols)
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
                kept[found] = start + lane
                found += 1
    return found


@inlined
def _add_up(x: Words, y: Words, tables: Singles, total: Singles) -> None:
    """As `cells.cell_sums`, the lanes side by side; x is used up."""
    families, cells = tables.shape
    total[:] = 0
    for family in range(families):
        for lane in range(LANES):
            x[lane] += y[lane]
            total[lane] += tables[family, place_of(x[lane], np.uint64(cells))]


@inlined
def _count_up(tail: Bytes, first: int, stop: int, symbols: int) -> None:
    at = stop - 1
    while at >= first:
        tail[at] += 1
        if tail[at] < symbols:
            break
        tail[at] = 0
        at -= 1


@inlined
def _little_endian(work: UInt32s, word: int, lane: int) -> np.uint64:
    """Eight bytes of a lane's digest, from this word on."""
    low = np.uint64(work[STATE + LANES * word + lane])
    z = (np.uint64(work[STATE + LANES * (word + 1) + lane]) << np.uint64(32)) | low
    pairs, halves = np.uint64(0x00FF00FF00FF00FF), np.uint64(0x0000FFFF0000FFFF)
    z = ((z & pairs) << np.uint64(8)) | ((z >> np.uint64(8)) & pairs)
    return ((z & halves) << np.uint64(16)) | ((z >> np.uint64(16)) & halves)
