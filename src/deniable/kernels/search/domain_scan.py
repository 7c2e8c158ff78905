"""Find strings with enough evidence in a range of the domain, without storing the strings.

Sixteen strings are hashed together, and the entries of their cells are added up at once. Half of
the families come first: most strings have so little evidence there that the other half is not
looked up. Only strings with enough evidence take memory.
"""

import numpy as np

from deniable.kernels.array_types import Bytes, Int64s, Singles, UInt32s
from deniable.kernels.compiled import compiled, inlined
from deniable.kernels.hashing.positions import place_of
from deniable.kernels.hashing.row_blocks import hash_lanes, shared_words, write_row
from deniable.kernels.hashing.sha256 import LANES

EARLY_SHARE = np.float32(0.25)
"""Share of a positive least sum that half of the families must reach.

Half of the families give about half of a sum. Of strings that are significant among 10⁸, about one
in ten million fails.
"""


@compiled
def scan(
    lead: UInt32s,
    row: Bytes,
    first: int,
    stop: int,
    symbols: int,
    tables: Singles,
    least: np.float32,
    kept: Int64s,
) -> int:
    """Find strings with enough evidence among all that equal `row` except at first … stop.

    lead : u32[8], the header; row : u8[M], overwritten, 0 at first … stop;
    symbols : size of the alphabet; tables : float32[C, K]; least : minimum sum over families
    There are symbols ** (stop - first) strings, numbered in the order of their symbols.
    kept : int64[strings], receives the numbers of the strings found. Returns how many there are.
    """
    count, matches = symbols ** (stop - first), 0
    families, cells = tables.shape
    half, k = (families + 1) // 2, np.uint64(cells)
    early = EARLY_SHARE * least if least > 0 else np.float32(-np.inf)
    work = shared_words(lead, len(row))
    x, y = np.empty(LANES, np.uint64), np.empty(LANES, np.uint64)
    for start in range(0, count, LANES):
        for lane in range(LANES):
            write_row(work, lane, row, 0, len(row))
            _next_string(row, first, stop, symbols)
        hash_lanes(work, x, y)
        for lane in range(min(LANES, count - start)):
            z, total = x[lane], np.float32(0)
            for family in range(half):
                z += y[lane]
                total += tables[family, place_of(z, k)]
            if total < early:
                continue
            for family in range(half, families):
                z += y[lane]
                total += tables[family, place_of(z, k)]
            if total >= least:
                kept[matches] = start + lane
                matches += 1
    return matches


@inlined
def _next_string(row: Bytes, first: int, stop: int, symbols: int) -> None:
    """Advance row[first:stop] to the next string."""
    at = stop - 1
    while at >= first:
        row[at] += 1
        if row[at] < symbols:
            break
        row[at] = 0
        at -= 1
