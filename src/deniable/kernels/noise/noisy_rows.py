"""Randomise the packed reports of many simulated clients.

`encode_rows` makes reports in one pass: bits are looked up as positions and randomised while they
are in the cache, so the output is all the memory that it needs. A report of one-time collection
shows only permanent (PRR) and fresh noise (IRR) together: each bit is 1 with probability q* or p*.
Both are therefore drawn at once, exactly, in the time of one (`Response.after_permanent`).
"""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from deniable.errors import InputError
from deniable.kernels.array_types import Bytes, Int32s, UInt16s, Words
from deniable.kernels.chunks import RANGES_PER_THREAD, over_threads, split_range, thread_count
from deniable.kernels.compiled import compiled, read_only
from deniable.kernels.noise.sampler import (
    BLOCK,
    STATE,
    WORK,
    Response,
    Thresholds,
    chunk_rows,
    chunk_seeds,
    sample_block,
)
from deniable.kernels.words import byte_width, check_packed, load_word, store_word, width_mask

PositionArrays: TypeAlias = tuple[Int32s, UInt16s, Int32s]
"""Value, cohort and table of `BitPositions`."""

NO_ANSWER = -1
NO_BITS = read_only(np.empty((0, 1)), np.uint8)


@dataclass(frozen=True, eq=False)
class BitPositions:
    """Bits that each report sets: report i sets the bits table[cohort[i], value[i]].

    value : int32[N], -1 for no answer, which sets no bit
    cohort : u16[N]
    table : int32[C, V, h], positions of the bits that value v sets in cohort c, -1 for none
    """

    value: Int32s
    cohort: UInt16s
    table: Int32s

    def __post_init__(self) -> None:
        if self.value.ndim != 1 or self.cohort.shape != self.value.shape:
            raise InputError(
                f"every report needs one value and one cohort, got {list(self.value.shape)} "
                f"values and {list(self.cohort.shape)} cohorts"
            )
        if self.table.ndim != 3:
            raise InputError(f"the table must be int32[C, V, h], got {self.table.ndim} dimensions")

    def arrays(self, rows: slice) -> PositionArrays:
        """Return the arrays of a range of reports, as the kernel takes them."""
        return self.value[rows], self.cohort[rows], self.table

    def checked(self, k: int) -> "BitPositions":
        """Return the same with read-only arrays, or raise if an index is out of bounds.

        The kernel itself does not check bounds.
        """
        value, cohort, table = self.value, self.cohort, self.table
        cohorts, values, _ = table.shape
        if table.size and (table.min() < -1 or table.max() >= k):
            raise InputError(
                f"positions must be in -1..{k - 1} for {k} bits, got {table.min()}..{table.max()}"
            )
        if value.size and (value.min() < NO_ANSWER or value.max() >= values):
            raise InputError(
                f"values must be in -1..{values - 1} (-1 means no answer), "
                f"got {value.min()}..{value.max()}"
            )
        if value.size and (cohort.min() < 0 or cohort.max() >= cohorts):
            raise InputError(f"cohorts must be in 0..{cohorts - 1}, got {cohort.max()}")
        return BitPositions(
            read_only(value, np.int32), read_only(cohort, np.uint16), read_only(table, np.int32)
        )


NO_POSITIONS = BitPositions(
    np.empty(0, np.int32), np.empty(0, np.uint16), np.empty((0, 0, 0), np.int32)
).checked(1)


@compiled
def _randomise(
    bits: Bytes,
    positions: PositionArrays,
    k: int,
    limits: Thresholds,
    levels: int,
    seed: Words,
    out: Bytes,
) -> None:
    """Randomise the reports `bits`, or, if `bits` is empty, the reports of `positions`."""
    value, cohort, table = positions
    rows, width = out.shape
    words = (k + 63) // 64
    flat_bits, flat_out = bits.reshape(-1), out.reshape(-1)
    work = np.zeros(WORK, dtype=np.uint64)
    for i in range(4 * BLOCK):
        work[STATE + i] = seed[i]
    for first in range(0, rows * words, BLOCK):
        count = min(BLOCK, rows * words - first)
        row, word = first // words, first % words
        if flat_bits.shape[0]:
            for i in range(count):
                work[i] = load_word(flat_bits, row * width + 8 * word, (row + 1) * width)
                word += 1
                if word == words:
                    row, word = row + 1, 0
        else:
            for i in range(count):
                work[i] = 0
            # A block may start or end within a wide report: set only the bits of this block.
            for report in range(row, (first + count - 1) // words + 1):
                chosen = value[report]
                for j in range(table.shape[2] if chosen >= 0 else 0):
                    at = table[cohort[report], chosen, j]
                    place = report * words + (at >> 6) - first
                    if at >= 0 and 0 <= place < count:
                        work[place] |= np.uint64(1) << np.uint64(at & 63)
        sample_block(work, count, limits, levels)
        row, word = first // words, first % words
        for i in range(count):
            mask = width_mask(k, word)
            store_word(flat_out, row * width + 8 * word, (row + 1) * width, work[i] & mask)
            word += 1
            if word == words:
                row, word = row + 1, 0


def _noised(
    bits: Bytes,
    positions: BitPositions,
    k: int,
    response: Response,
    rng: np.random.Generator,
    out: Bytes,
    threads: int | None,
) -> Bytes:
    """Randomise `bits`, or, if they are empty, the reports of `positions`, into `out`."""
    rows = chunk_rows(out.shape[1])
    seeds = chunk_seeds(len(out), out.shape[1], rng)
    limits, levels = response.limits, response.levels

    def work(start: int, stop: int) -> None:
        for chunk in range(start, stop):
            part = slice(chunk * rows, (chunk + 1) * rows)
            arrays = positions.arrays(part)
            _randomise(bits[part], arrays, k, limits, levels, seeds[chunk], out[part])

    workers = thread_count(threads)
    over_threads(work, split_range(len(seeds), workers * RANGES_PER_THREAD), workers)
    return out


def noise_rows(
    bits: Bytes, k: int, response: Response, rng: np.random.Generator, *, threads: int | None = None
) -> Bytes:
    """Return packed reports after a randomised response, u8[N, B].

    bits : u8[N, B], packed reports of k bits
    The result depends on the state of `rng`, but not on the number of threads.

    >>> reports = np.zeros((1000, 16), dtype=np.uint8)
    >>> noisy = noise_rows(reports, 128, Response(1 << 30, 3 << 30), np.random.default_rng(1))
    >>> round(float(np.unpackbits(noisy).mean()), 2)
    0.25
    """
    bits = check_packed(bits, k)
    out = np.empty(bits.shape, dtype=np.uint8)
    return _noised(bits, NO_POSITIONS, k, response, rng, out, threads)


def encode_rows(
    positions: BitPositions,
    k: int,
    response: Response,
    rng: np.random.Generator,
    *,
    out: Bytes | None = None,
    threads: int | None = None,
) -> Bytes:
    """Return one report per client, u8[N, B]; it is `out` if that is given.

    response : fresh noise, permanent noise, or both (`Response.after_permanent`). Thresholds
        (0, 2^32) add no noise. For repeated collection, encode permanent noise once, and call
        `noise_rows` for each report.
    The result depends on the state of `rng`, but not on the number of threads.

    >>> table = np.array([[[0], [1], [2]]], dtype=np.int32)  # three choices, no cohorts
    >>> value = np.array([2, 0, -1], dtype=np.int32)
    >>> positions = BitPositions(value, np.zeros(3, np.uint16), table)
    >>> encode_rows(positions, 3, Response(0, 1 << 32), np.random.default_rng(1))
    array([[4],
           [1],
           [0]], dtype=uint8)
    """
    positions = positions.checked(k)
    shape = (len(positions.value), byte_width(k))
    reports = np.empty(shape, dtype=np.uint8) if out is None else out
    if reports.shape != shape or reports.dtype != np.uint8 or not reports.flags.c_contiguous:
        raise InputError(
            f"out must be contiguous uint8{list(shape)}, got {reports.dtype}{list(reports.shape)}"
        )

    return _noised(NO_BITS, positions, k, response, rng, reports, threads)
