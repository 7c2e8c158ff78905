"""Count how often each bit is set, per stratum.

These counts are all that `decode` reads from the reports. A stratum is a group of reports with the
same clear fields, such as a cohort, or a position and a cohort.

Reports need no sorting: each stratum has one-byte counters, eight to a word. The word
(w >> i) & 0x0101...01 holds bits i, 8 + i, ..., 56 + i of w, one per byte. So eight shifts, masks
and additions count 64 bits, and one vector instruction does each. The bytes are added to 64-bit
counts before the 256th report.
"""

import numpy as np

from deniable.errors import InputError
from deniable.kernels.array_types import Bytes, Int32s, Int64s, Integers, Words
from deniable.kernels.chunks import over_threads, split_range, thread_count
from deniable.kernels.compiled import compiled, inlined, read_only
from deniable.kernels.words import as_words, check_packed

ROWS_PER_BLOCK = 1 << 14
"""Reports that are copied at once, if rows are not whole words."""
MAX_BYTE = 255
LOWEST_BITS = np.uint64(0x0101010101010101)
"""Mask of the lowest bit of every byte."""


@inlined
def _flush(counters: Words, stratum: int, words: int, ones: Int64s) -> None:
    """Add the byte counters of a stratum to its 64-bit counts, and clear them."""
    for word in range(words):
        for shift in range(8):
            at = (stratum * words + word) * 8 + shift
            packed = counters[at]
            counters[at] = 0
            for byte in range(8):
                bit = 64 * word + 8 * byte + shift
                if bit < ones.shape[1]:
                    count = (packed >> np.uint64(8 * byte)) & np.uint64(255)
                    ones[stratum, bit] += np.int64(count)


@compiled
def _add(reports: Words, stratum: Int32s, bytewise: Words, totals: Int64s, ones: Int64s) -> None:
    """Add reports u64[N, words] to the byte counters, totals and counts of their strata."""
    rows, words = reports.shape
    # The compiler must not know that this is 8: it would unroll the loop instead of vectorising.
    eight = bytewise.shape[1]
    counters = bytewise.reshape(-1)
    flat = reports.reshape(-1)
    for row in range(rows):
        s = int(stratum[row])
        for word in range(words):
            value = flat[np.uint64(row * words + word)]
            # Unsigned indices, because numba checks whether signed ones are negative.
            at = np.uint64((s * words + word) * 8)
            for shift in range(eight):
                counters[at + np.uint64(shift)] += (value >> np.uint64(shift)) & LOWEST_BITS
        totals[s] += 1
        if totals[s] % MAX_BYTE == 0:
            _flush(counters, s, words, ones)


@compiled
def _finish(bytewise: Words, words: int, ones: Int64s) -> None:
    """Add the byte counters of all strata to the counts."""
    counters = bytewise.reshape(-1)
    for s in range(ones.shape[0]):
        _flush(counters, s, words, ones)


def count_ones(
    bits: Bytes, k: int, stratum: Integers, strata: int, *, threads: int | None = None
) -> tuple[Int64s, Int64s]:
    """Count set bits per stratum and position.

    bits : u8[N, B], packed reports of k bits; padding bits are not counted
    stratum : integers[N] in 0..strata - 1
    Returns set bits int64[strata, k] and reports int64[strata].

    >>> reports = np.array([[0b011], [0b110], [0b100]], dtype=np.uint8)
    >>> ones, totals = count_ones(reports, 3, np.array([0, 0, 1]), 2)
    >>> ones.tolist(), totals.tolist()
    ([[1, 2, 1], [0, 0, 1]], [2, 1])
    """
    bits = check_packed(bits, k)
    if strata < 1 or stratum.shape != (len(bits),):
        raise InputError(
            f"every one of {len(bits)} reports needs a stratum, and there must be at least 1 "
            f"stratum; got {list(stratum.shape)} strata of {strata}"
        )
    if len(stratum) and not (stratum.min() >= 0 and stratum.max() < strata):
        row = int(np.flatnonzero((stratum < 0) | (stratum >= strata))[0])
        raise InputError(f"strata must be in 0..{strata - 1}, got {stratum[row]} in report {row}")
    workers = thread_count(threads)
    if strata * k > bits.size:
        workers = 1  # a second table of counts would take longer than counting

    def work(start: int, stop: int) -> tuple[Int64s, Int64s]:
        words = (k + 63) // 64
        ones = np.zeros((strata, k), dtype=np.int64)
        totals = np.zeros(strata, dtype=np.int64)
        bytewise = np.zeros((strata * words, 8), dtype=np.uint64)
        # Blocks bound the copy that rows which are not whole words need.
        for first in range(start, stop, ROWS_PER_BLOCK):
            part = slice(first, min(first + ROWS_PER_BLOCK, stop))
            chosen = read_only(stratum[part], np.int32)
            _add(as_words(bits[part]), chosen, bytewise, totals, ones)
        _finish(bytewise, words, ones)
        return ones, totals

    ones, totals = work(0, 0)
    for part_ones, part_totals in over_threads(work, split_range(len(bits), workers), workers):
        ones += part_ones
        totals += part_totals
    return ones, totals
