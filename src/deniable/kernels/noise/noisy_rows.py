"""Packed reports of many clients through the sampler of `sampler`.

`encode_rows` makes whole reports in one pass: bits are looked up as positions and randomised while
they are in the cache, so peak memory is the output itself. A report that is sent once shows only
the permanent and the instantaneous response together, each bit 1 with probability q* or p*, so both
are drawn at once, exactly, at the cost of one (`Response.after_permanent`).
"""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from deniable.errors import InputError
from deniable.kernels.array_types import Bytes, Int32s, UInt16s, Words
from deniable.kernels.chunks import PIECES_PER_THREAD, over_threads, spans, thread_count
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
from deniable.kernels.words import byte_width, check_packed, lane_mask, load_word, store_word

Arrays: TypeAlias = tuple[Int32s, UInt16s, Int32s]

NO_ANSWER = -1
NO_BITS = read_only(np.empty((0, 1)), np.uint8)


@dataclass(frozen=True, eq=False)
class BitPositions:
    """Which bits each report sets: those of table[cohort[i], value[i]].

    value : int32[N], -1 for no answer, which sets no bit
    cohort : u16[N]
    table : int32[C, V, h], bits that value v sets in cohort c, -1 for none
    """

    value: Int32s
    cohort: UInt16s
    table: Int32s

    def __post_init__(self) -> None:
        if self.value.ndim != 1 or self.cohort.shape != self.value.shape:
            raise InputError(
                f"expected one value and one cohort per report, got {list(self.value.shape)} "
                f"values and {list(self.cohort.shape)} cohorts"
            )
        if self.table.ndim != 3:
            raise InputError(f"expected positions[C, V, h], got {self.table.ndim} dimensions")

    def arrays(self, rows: slice) -> Arrays:
        """Return those of some reports, for the kernel."""
        return self.value[rows], self.cohort[rows], self.table

    def checked(self, k: int) -> "BitPositions":
        """Return the arrays as the kernel takes them, if every index is inside its table.

        The kernel checks no bounds.
        """
        value, cohort, table = self.value, self.cohort, self.table
        cohorts, values, _ = table.shape
        if table.size and (table.min() < -1 or table.max() >= k):
            raise InputError(f"expected positions in -1..{k - 1} for {k} bits, got one outside")
        if value.size and (value.min() < NO_ANSWER or value.max() >= values):
            raise InputError(
                f"expected values in -1..{values - 1} (-1 is no answer), "
                f"got {value.min()}..{value.max()}"
            )
        if value.size and (cohort.min() < 0 or cohort.max() >= cohorts):
            raise InputError(f"expected cohorts in 0..{cohorts - 1}, got one of {cohort.max()}")
        return BitPositions(
            read_only(value, np.int32), read_only(cohort, np.uint16), read_only(table, np.int32)
        )


NOWHERE = BitPositions(
    np.empty(0, np.int32), np.empty(0, np.uint16), np.empty((0, 0, 0), np.int32)
).checked(1)


@compiled
def _randomise(
    bits: Bytes, places: Arrays, k: int, limits: Thresholds, levels: int, seed: Words, out: Bytes
) -> None:
    """Randomise the reports `bits`, or, where `bits` is empty, those at `places`."""
    value, cohort, table = places
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
            # A block may start or end inside a wide report, so it sets only its own bits.
            for owner in range(row, (first + count - 1) // words + 1):
                chosen = value[owner]
                for j in range(table.shape[2] if chosen >= 0 else 0):
                    at = table[cohort[owner], chosen, j]
                    place = owner * words + (at >> 6) - first
                    if at >= 0 and 0 <= place < count:
                        work[place] |= np.uint64(1) << np.uint64(at & 63)
        sample_block(work, count, limits, levels)
        row, word = first // words, first % words
        for i in range(count):
            mask = lane_mask(k, word)
            store_word(flat_out, row * width + 8 * word, (row + 1) * width, work[i] & mask)
            word += 1
            if word == words:
                row, word = row + 1, 0


def _noised(
    bits: Bytes,
    places: BitPositions,
    k: int,
    response: Response,
    rng: np.random.Generator,
    out: Bytes,
    threads: int | None,
) -> Bytes:
    """Randomise `bits`, or if they are empty those at `places`, into `out`: one seed per chunk."""
    rows = chunk_rows(out.shape[1])
    seeds = chunk_seeds(len(out), out.shape[1], rng)
    limits, levels = response.limits, response.levels

    def work(start: int, stop: int) -> None:
        for chunk in range(start, stop):
            part = slice(chunk * rows, (chunk + 1) * rows)
            own = places.arrays(part)
            _randomise(bits[part], own, k, limits, levels, seeds[chunk], out[part])

    workers = thread_count(threads)
    over_threads(work, spans(len(seeds), workers * PIECES_PER_THREAD), workers)
    return out


def noise_rows(
    bits: Bytes, k: int, response: Response, rng: np.random.Generator, *, threads: int | None = None
) -> Bytes:
    """Randomise packed reports with simulated randomness, the same on any number of threads.

    bits : u8[N, B], packed reports of width k
    Returns u8[N, B].

    >>> reports = np.zeros((1000, 16), dtype=np.uint8)
    >>> noisy = noise_rows(reports, 128, Response(1 << 30, 3 << 30), np.random.default_rng(1))
    >>> round(float(np.unpackbits(noisy).mean()), 2)
    0.25
    """
    bits = check_packed(bits, k)
    out = np.empty(bits.shape, dtype=np.uint8)
    return _noised(bits, NOWHERE, k, response, rng, out, threads)


def encode_rows(
    positions: BitPositions,
    k: int,
    response: Response,
    rng: np.random.Generator,
    *,
    out: Bytes | None = None,
    threads: int | None = None,
) -> Bytes:
    """Encode one report per client, the same for a given rng on any number of threads.

    response : the instantaneous response, or both (`Response.after_permanent`). Thresholds
        (0, 2^32) draw nothing: they return the permanent response or the Bloom bits, to be given to
        `noise_rows` once per repeated report.
    Returns u8[N, B], `out` if it is given.

    >>> table = np.array([[[0], [1], [2]]], dtype=np.int32)  # three choices, no cohorts
    >>> who = BitPositions(np.array([2, 0, -1], dtype=np.int32), np.zeros(3, np.uint16), table)
    >>> encode_rows(who, 3, Response(0, 1 << 32), np.random.default_rng(1))
    array([[4],
           [1],
           [0]], dtype=uint8)
    """
    places = positions.checked(k)
    shape = (len(places.value), byte_width(k))
    made = np.empty(shape, dtype=np.uint8) if out is None else out
    if made.shape != shape or made.dtype != np.uint8 or not made.flags.c_contiguous:
        raise InputError(
            f"expected out as contiguous uint8{list(shape)}, got {made.dtype}{list(made.shape)}"
        )

    return _noised(NO_BITS, places, k, response, rng, made, threads)
