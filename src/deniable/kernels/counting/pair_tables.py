"""Count how often a bit of one question and a bit of another are set together, per stratum.

These counts are all that a joint table from counts reads from the reports.

The reports of a stratum are transposed into bit planes: plane a holds bit a of all reports, and its
word w that of reports 64w to 64w + 63. A pair of bits then takes one AND and one population count
per 64 reports. The time does not depend on the noise, and vector instructions do several at once.
"""

import numpy as np

from deniable.kernels.array_types import Int64s, UInt32s, Words
from deniable.kernels.compiled import compiled, compiled_sums, inlined, read_only
from deniable.kernels.words import population_count

ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
PLANE_WORDS = 32
"""Words per plane: the planes of 2,048 reports of 128 bits take 32 kB and fit into the cache."""


@inlined
def _transpose(block: Words) -> None:
    """Transpose 64 × 64 bits in place, by halves (Hacker's Delight, section 7-3)."""
    mask = np.uint64(0x00000000FFFFFFFF)
    half = 32
    while half:
        for start in range(0, 64, 2 * half):
            for row in range(start, start + half):
                low, high = block[row], block[row + half]
                moved = ((low >> np.uint64(half)) ^ high) & mask
                block[row + half] = high ^ moved
                block[row] = low ^ (moved << np.uint64(half))
        half >>= 1
        mask ^= mask << np.uint64(half)


@compiled
def _planes(reports: Words, chosen: Int64s, block: Words, planes: Words) -> None:
    """Fill planes u64[64·words + 1, PLANE_WORDS] with the chosen reports, then zeros."""
    for column in range((len(chosen) + 63) // 64):
        count = min(64, len(chosen) - 64 * column)
        for word in range(reports.shape[1]):
            for i in range(count):
                block[i] = reports[chosen[64 * column + i], word]
            for i in range(count, 64):
                block[i] = 0
            _transpose(block)
            for i in range(64):
                planes[64 * word + i, column] = block[i]


@compiled_sums
def _add_pairs(x: Words, y: Words, words: int, both: UInt32s) -> None:
    """Add to both[a, b] how often planes x[a] and y[b] are set together."""
    for a in range(both.shape[0]):
        for b in range(both.shape[1]):
            count = np.uint64(0)
            for w in range(words):
                count += population_count(x[a, w] & y[b, w])
            both[a, b] += np.uint32(count)


@compiled
def _count(first: Words, second: Words, order: Int64s, edges: Int64s, both: UInt32s) -> None:
    """Count stratum s, the reports order[edges[s]:edges[s + 1]], for every s."""
    block = np.empty(64, np.uint64)
    k, m = both.shape[1] - 1, both.shape[2] - 1
    x = np.zeros((64 * first.shape[1] + 1, PLANE_WORDS), np.uint64)
    y = np.zeros((64 * second.shape[1] + 1, PLANE_WORDS), np.uint64)
    for s in range(both.shape[0]):
        for start in range(edges[s], edges[s + 1], 64 * PLANE_WORDS):
            chosen = order[start : min(start + 64 * PLANE_WORDS, edges[s + 1])]
            _planes(first, chosen, block, x)
            _planes(second, chosen, block, y)
            words = (len(chosen) + 63) // 64
            x[k, :words] = y[m, :words] = ALL
            x[k, words - 1] = y[m, words - 1] = ALL >> np.uint64(-len(chosen) % 64)
            _add_pairs(x, y, words, both[s])


def add_pairs(both: UInt32s, first: Words, second: Words, stratum: Int64s) -> None:
    """Add the reports of stratum s that set bits a and b to both[s, a, b], uint32[S, k + 1, l + 1].

    The last bit counts as set in all reports. Every count must stay below 2³².

    first, second : reports u64[N, W]; stratum : int64[N], below S. It runs on one thread, because
    batches are already spread over threads.

    >>> both = np.zeros((1, 3, 2), np.uint32)
    >>> add_pairs(both, np.array([[1], [3]], np.uint64), np.array([[1], [1]], np.uint64),
    ...           np.array([0, 0]))
    >>> both.tolist()
    [[[2, 2], [1, 1], [2, 2]]]
    """
    narrow = stratum.astype(np.uint16) if len(both) <= 1 << 16 else stratum
    edges = np.zeros(len(both) + 1, np.int64)
    np.cumsum(np.bincount(stratum, minlength=len(both)), out=edges[1:])
    x, y = (read_only(words, np.uint64) for words in (first, second))
    _count(x, y, np.argsort(narrow, kind="stable"), edges, both)
