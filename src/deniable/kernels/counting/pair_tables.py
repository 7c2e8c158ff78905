"""Count how often a bit of one question and a bit of another are set together, per stratum.

These counts are all that a joint table from counts reads from the reports.

The reports of a stratum are transposed into bit planes: plane a holds bit a of all reports, and its
word w that of reports 64w to 64w + 63. A pair of bits then takes one AND and one population count
per 64 reports. The time does not depend on the noise, and vector instructions do several at once.
"""

from dataclasses import dataclass

import numpy as np

from deniable.errors import InputError
from deniable.kernels.array_types import Bytes, Int64s, Integers, UInt32s, Words
from deniable.kernels.compiled import compiled, compiled_sums, inlined, read_only
from deniable.kernels.words import as_words, check_packed, population_count

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
def _planes(
    reports: Words, order: Int64s, start: int, stop: int, block: Words, planes: Words
) -> None:
    """Fill planes u64[64·words, PLANE_WORDS] with the reports order[start:stop], then zeros."""
    rows = stop - start
    for column in range((rows + 63) // 64):
        first = start + 64 * column
        count = min(64, stop - first)
        for word in range(reports.shape[1]):
            for i in range(count):
                block[i] = reports[order[first + i], word]
            for i in range(count, 64):
                block[i] = 0
            _transpose(block)
            for i in range(64):
                planes[64 * word + i, column] = block[i]


@compiled_sums
def _add_pairs(x: Words, y: Words, words: int, width: int, both: UInt32s) -> None:
    """Add to both[a, b] how often planes x[a] and y[b] are set together.

    Two planes are compared with four at a time, so that a loaded word serves several pairs. y has a
    multiple of 64 planes, so the last four exist even if `width`, the number of bits, is not a
    multiple of 4.
    """
    for a in range(0, both.shape[0], 2):
        second = min(a + 1, both.shape[0] - 1)
        for b in range(0, width, 4):
            n0 = n1 = n2 = n3 = m0 = m1 = m2 = m3 = np.uint64(0)
            for w in range(words):
                u, v = x[a, w], x[second, w]
                y0, y1, y2, y3 = y[b, w], y[b + 1, w], y[b + 2, w], y[b + 3, w]
                n0 += population_count(u & y0)
                n1 += population_count(u & y1)
                n2 += population_count(u & y2)
                n3 += population_count(u & y3)
                m0 += population_count(v & y0)
                m1 += population_count(v & y1)
                m2 += population_count(v & y2)
                m3 += population_count(v & y3)
            for i, n, m in ((0, n0, m0), (1, n1, m1), (2, n2, m2), (3, n3, m3)):
                if b + i < width:
                    both[a, b + i] += np.uint32(n)
                    if second != a:
                        both[second, b + i] += np.uint32(m)


@compiled
def _add_ones(planes: Words, words: int, ones: UInt32s) -> None:
    """Add to ones[a] how often plane a is set."""
    for a in range(len(ones)):
        count = np.uint64(0)
        for w in range(words):
            count += population_count(planes[a, w])
        ones[a] += np.uint32(count)


@compiled
def _count(
    first: Words,
    second: Words,
    order: Int64s,
    edges: Int64s,
    both: UInt32s,
    ones: UInt32s,
    other_ones: UInt32s,
) -> None:
    """Count stratum s, the reports order[edges[s]:edges[s + 1]], for every s."""
    block = np.empty(64, np.uint64)
    x = np.zeros((64 * first.shape[1], PLANE_WORDS), np.uint64)
    y = np.zeros((64 * second.shape[1], PLANE_WORDS), np.uint64)
    for s in range(both.shape[0]):
        for start in range(edges[s], edges[s + 1], 64 * PLANE_WORDS):
            stop = min(start + 64 * PLANE_WORDS, edges[s + 1])
            words = (stop - start + 63) // 64
            _planes(first, order, start, stop, block, x)
            _planes(second, order, start, stop, block, y)
            _add_ones(x, words, ones[s])
            _add_ones(y, words, other_ones[s])
            _add_pairs(x, y, words, both.shape[2], both[s])


@dataclass(frozen=True, eq=False)
class PairTables:
    """Counts of set bits and of pairs of set bits; every count must be below 2³².

    both : uint32[S, k₁, k₂], reports of stratum s that set bit a of the first question and bit b of
    the second; first : uint32[S, k₁] and second : uint32[S, k₂], reports that set a bit of one
    question; total : int64[S], reports
    """

    both: UInt32s
    first: UInt32s
    second: UInt32s
    total: Int64s

    @classmethod
    def empty(cls, strata: int, widths: tuple[int, int]) -> "PairTables":
        """Return counts of 0 for this number of strata and these widths of both questions."""
        k, other = widths
        shapes = ((strata, k, other), (strata, k), (strata, other))
        both, first, second = (np.zeros(shape, np.uint32) for shape in shapes)
        return cls(both, first, second, np.zeros(strata, np.int64))

    def add(self, first: Bytes, second: Bytes, stratum: Integers) -> None:
        """Add the counts of packed reports u8[N, B] with strata integers[N] in 0..S-1.

        It runs on one thread, because batches are already spread over threads.

        >>> tables = PairTables.empty(1, (2, 1))
        >>> tables.add(np.array([[0b01], [0b11]], np.uint8), np.array([[1], [1]], np.uint8),
        ...            np.array([0, 0]))
        >>> tables.both.tolist(), tables.first.tolist()
        ([[[2], [1]]], [[2, 1]])
        """
        strata, *widths = self.both.shape
        first = check_packed(first, widths[0], "first")
        second = check_packed(second, widths[1], "second")
        if not len(first) == len(second) == len(stratum) or stratum.ndim != 1:
            raise InputError(
                f"both questions need the same number of reports, and every report a stratum; got "
                f"{len(first)}, {len(second)} and {list(stratum.shape)}"
            )
        if len(stratum) and not (stratum.min() >= 0 and stratum.max() < strata):
            raise InputError(
                f"strata must be in 0..{strata - 1}, got {stratum.min()}..{stratum.max()}"
            )
        narrow = stratum.astype(np.uint16 if strata <= 1 << 16 else np.int64, copy=False)
        order = np.argsort(narrow, kind="stable")
        sizes = np.bincount(narrow, minlength=strata)
        edges = np.zeros(strata + 1, np.int64)
        np.cumsum(sizes, out=edges[1:])
        x, y = (read_only(as_words(bits), np.uint64) for bits in (first, second))
        _count(x, y, order, edges, self.both, self.first, self.second)
        self.total[:] += sizes
