"""Whole crowds of simulated reports in one pass: Bloom bits and both randomised responses.

A value's bits are looked up as positions, so nothing but the packed output is written, and peak
memory is the output itself. A report that is sent once shows only the two responses together, each
bit 1 with probability q* or p*, so both are drawn at once, exactly, at the cost of one.
"""

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.kernels.chunks import PIECES_PER_THREAD, over_threads, spans, thread_count
from deniable.kernels.compiled import compiled, read_only
from deniable.kernels.noise.noisy_rows import output_rows
from deniable.kernels.noise.sampler import (
    BLOCK,
    CERTAIN,
    STATE,
    WORK,
    Thresholds,
    chunk_rows,
    chunk_seeds,
    random_levels,
    sample_block,
    thresholds,
)
from deniable.kernels.words import byte_width, lane_mask, store_word

NO_ANSWER = -1
WHOLE = CERTAIN * CERTAIN


@compiled
def _encode(
    value: NDArray[np.int32],
    cohort: NDArray[np.uint16],
    positions: NDArray[np.int32],
    k: int,
    limits: Thresholds,
    levels: int,
    seed: NDArray[np.uint64],
    out: NDArray[np.uint8],
) -> None:
    rows, width = out.shape
    words = (k + 63) // 64
    flat, nothing = out.reshape(-1), np.empty(0, dtype=np.uint8)
    work = np.zeros(WORK, dtype=np.uint64)
    for i in range(4 * BLOCK):
        work[STATE + i] = seed[i]
    for first in range(0, rows * words, BLOCK):
        count = min(BLOCK, rows * words - first)
        for i in range(count):
            work[i] = 0
        # A block may start or end inside a wide report, so it sets only the bits that are its own.
        for row in range(first // words, (first + count - 1) // words + 1):
            chosen = value[row]
            for j in range(positions.shape[2] if chosen >= 0 else 0):
                at = positions[cohort[row], chosen, j]
                place = row * words + (at >> 6) - first
                if at >= 0 and 0 <= place < count:
                    work[place] |= np.uint64(1) << np.uint64(at & 63)
        sample_block(work, count, limits, levels, nothing, first, words, width)
        row, word = first // words, first % words
        for i in range(count):
            noisy = work[i] & lane_mask(k, word)
            store_word(flat, row * width + 8 * word, (row + 1) * width, noisy)
            word += 1
            if word == words:
                row, word = row + 1, 0


def _check_inputs(
    value: NDArray[np.int32], cohort: NDArray[np.uint16], positions: NDArray[np.int32], k: int
) -> None:
    """Raise unless every index stays inside its table: the kernel checks no bounds."""
    if value.ndim != 1 or cohort.shape != value.shape:
        raise InputError(
            f"expected one value and one cohort per report, got {list(value.shape)} values "
            f"and {list(cohort.shape)} cohorts"
        )
    if positions.ndim != 3:
        raise InputError(f"expected positions[C, V, h], got {positions.ndim} dimensions")
    cohorts, values, _ = positions.shape
    if positions.size and (positions.min() < -1 or positions.max() >= k):
        raise InputError(f"expected positions in -1..{k - 1} for {k} bits, got one outside")
    if not value.size:
        return
    if value.min() < NO_ANSWER or value.max() >= values:
        raise InputError(
            f"expected values in -1..{values - 1} (-1 is no answer), "
            f"got {value.min()}..{value.max()}"
        )
    if cohort.min() < 0 or cohort.max() >= cohorts:
        raise InputError(f"expected cohorts in 0..{cohorts - 1}, got one of {cohort.max()}")


def both_responses(phi: int, if_zero: int, if_one: int) -> tuple[int, int]:
    """Return the thresholds, of 2^64, of the permanent response followed by the instantaneous.

    They are exact: p* = (1 - f/2) p + (f/2) q has 64 binary digits if f/2, p and q have 32.

    >>> both_responses(0, 1 << 30, 3 << 30) == (1 << 62, 3 << 62)
    True
    """
    if not 0 <= phi <= CERTAIN:
        raise InputError(f"expected phi (f/2) in 0..2^32, got {phi}")
    random_levels(if_zero, if_one)  # refuses thresholds outside 0..2^32
    kept = CERTAIN - phi
    return kept * if_zero + phi * if_one, kept * if_one + phi * if_zero


def encode_rows(
    value: NDArray[np.int32],
    cohort: NDArray[np.uint16],
    positions: NDArray[np.int32],
    k: int,
    *,
    if_zero: int,
    if_one: int,
    rng: np.random.Generator,
    phi: int = 0,
    out: NDArray[np.uint8] | None = None,
    threads: int | None = None,
) -> NDArray[np.uint8]:
    """Encode one report per client, the same for a given rng on any number of threads.

    value : int32[N], index into the table, -1 for no answer (no bit set before the noise)
    cohort : u16[N]
    positions : int32[C, V, h], bits that value v sets in cohort c, -1 for none
    if_zero, if_one : the instantaneous response's thresholds P, Q in 0..2^32
    phi : threshold of f/2 for the permanent response; 0 leaves it out
    Returns u8[N, B]. Thresholds (0, 2^32) draw nothing: they return the permanent response
    (or, with phi = 0, the Bloom bits), to be given to `noise_rows` once per repeated report.

    >>> table = np.array([[[0], [1], [2]]], dtype=np.int32)  # three choices, no cohorts
    >>> who = np.array([2, 0, -1], dtype=np.int32)
    >>> rng = np.random.default_rng(1)
    >>> encode_rows(who, np.zeros(3, np.uint16), table, 3, if_zero=0, if_one=1 << 32, rng=rng)
    array([[4],
           [1],
           [0]], dtype=uint8)
    """
    width = byte_width(k)
    out = output_rows(len(value), k, out)
    _check_inputs(value, cohort, positions, k)
    value = read_only(value, np.int32)
    cohort = read_only(cohort, np.uint16)
    positions = read_only(positions, np.int32)
    zero, one = both_responses(phi, if_zero, if_one)
    limits, levels = thresholds(zero, one, WHOLE), random_levels(zero, one, WHOLE)
    rows = chunk_rows(width)
    seeds = chunk_seeds(len(value), width, rng)
    workers = thread_count(threads)

    def work(start: int, stop: int) -> None:
        for chunk in range(start, stop):
            part = slice(chunk * rows, (chunk + 1) * rows)
            picked = value[part], cohort[part]
            _encode(*picked, positions, k, limits, levels, seeds[chunk], out[part])

    over_threads(work, spans(len(seeds), workers * PIECES_PER_THREAD), workers)
    return out
