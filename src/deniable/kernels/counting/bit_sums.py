"""Count how often each bit is set, per stratum.

These counts are all that `decode` reads from the reports. A stratum is a group of reports with the
same clear fields, such as a cohort, or a position and a cohort. Many reports are counted by a
compiled kernel (`byte_counters`), few by NumPy.
"""

from typing import Any

import numpy as np

from deniable.errors import InputError
from deniable.kernels.array_types import Bytes, Int64s, Integers
from deniable.kernels.chunks import over_threads, split_range, thread_count
from deniable.kernels.compiled import pays_off, read_only
from deniable.kernels.words import as_words, check_packed

ROWS_PER_BLOCK = 1 << 16
"""Reports that are copied at once, if rows are not whole words."""
NUMPY_SECONDS = 3e-9
"""Time that NumPy takes to count one byte of a report, or to read one counter."""
MAX_NUMPY_STRATA = 1 << 12
"""Number of strata up to which the tables of NumPy's way, 4 kB per stratum, are small."""
BIT_OF_BYTE = (np.arange(256)[:, None] >> np.arange(8) & 1).astype(np.float64)
"""The bits of every byte, [256, 8]."""


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
    if strata <= MAX_NUMPY_STRATA and not pays_off(
        NUMPY_SECONDS * bits.shape[1] * (len(bits) + 256 * strata)
    ):
        return _count_bytes(bits, stratum, strata)[:, :k], np.bincount(stratum, minlength=strata)
    workers = thread_count(threads)
    if strata * k > bits.size:
        workers = 1  # a second table of counts would take longer than counting

    def work(start: int, stop: int) -> tuple[Int64s, Int64s]:
        return _count_compiled(bits[start:stop], k, stratum[start:stop], strata)

    ones, totals = work(0, 0)
    for part_ones, part_totals in over_threads(work, split_range(len(bits), workers), workers):
        ones += part_ones
        totals += part_totals
    return ones, totals


def _count_bytes(bits: Bytes, stratum: Integers, strata: int) -> Int64s:
    """Count how often each byte has each value, and with that its bits, int64[strata, 8 B]."""
    first, ones = stratum.astype(np.int64) * 256, np.empty((strata, 8 * bits.shape[1]), np.int64)
    for i, column in enumerate(np.ascontiguousarray(bits.T)):
        values = np.bincount(first + column, minlength=256 * strata).reshape(strata, 256)
        ones[:, 8 * i : 8 * i + 8] = values.astype(np.float64) @ BIT_OF_BYTE
    return ones


def _count_compiled(bits: Bytes, k: int, stratum: Integers, strata: int) -> tuple[Int64s, Int64s]:
    """Count set bits, int64[strata, k], and reports, int64[strata], with a compiled kernel."""
    from deniable.kernels.counting.byte_counters import add_counters, add_reports, empty_counters

    words = (k + 63) // 64
    ones, totals = np.zeros((strata, k), np.int64), np.zeros((2, strata), np.int64)
    counters = empty_counters(strata, words)
    number: type[np.integer[Any]] = np.uint16 if strata <= 1 << 16 else np.int32
    # Blocks bound the copy that rows which are not whole words need.
    for first in range(0, len(bits), ROWS_PER_BLOCK):
        part = slice(first, first + ROWS_PER_BLOCK)
        chosen = read_only(stratum[part], number)
        add_reports(as_words(bits[part]), chosen, counters, totals, ones)
    add_counters(counters, words, ones)
    return ones, totals.sum(axis=0)
