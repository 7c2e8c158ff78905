"""Packed reports through the sampler of `noise`: with the caller's bytes, or simulated."""

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.kernels.chunks import PIECES_PER_THREAD, over_threads, spans, thread_count
from deniable.kernels.compiled import compiled, read_only
from deniable.kernels.noise.sampler import (
    BLOCK,
    STATE,
    UNDECIDED,
    WORK,
    Thresholds,
    chunk_rows,
    chunk_seeds,
    random_levels,
    sample_block,
    thresholds,
)
from deniable.kernels.words import byte_width, check_packed, lane_mask, load_word, store_word

NO_BYTES = read_only(np.empty(0, dtype=np.uint8), np.uint8)
NO_SEED = np.zeros(4 * BLOCK, dtype=np.uint64)


@compiled
def _randomise(
    bits: NDArray[np.uint8],
    k: int,
    limits: Thresholds,
    levels: int,
    rand: NDArray[np.uint8],
    seed: NDArray[np.uint64],
    out: NDArray[np.uint8],
    undecided: NDArray[np.bool_],
) -> None:
    rows, width = bits.shape
    words = (k + 63) // 64
    flat_bits, flat_out = bits.reshape(-1), out.reshape(-1)
    work = np.zeros(WORK, dtype=np.uint64)
    for i in range(4 * BLOCK):
        work[STATE + i] = seed[i]
    for first in range(0, rows * words, BLOCK):
        count = min(BLOCK, rows * words - first)
        row, word = first // words, first % words
        for i in range(count):
            work[i] = load_word(flat_bits, row * width + 8 * word, (row + 1) * width)
            word += 1
            if word == words:
                row, word = row + 1, 0
        sample_block(work, count, limits, levels, rand, first, words, width)
        row, word = first // words, first % words
        for i in range(count):
            mask = lane_mask(k, word)
            store_word(flat_out, row * width + 8 * word, (row + 1) * width, work[i] & mask)
            undecided[row] |= (work[UNDECIDED + i] & mask) != 0
            word += 1
            if word == words:
                row, word = row + 1, 0


def randomise_undecided(
    bits: NDArray[np.uint8], k: int, if_zero: int, if_one: int, rand: NDArray[np.uint8]
) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """Like `randomise_rows` on one thread, from as many levels as `rand` has, of the L there are.

    rand : u8[N, l * B], l <= L
    Returns u8[N, B] and bool[N]: the rows that some further level would still settle.
    """
    bits = check_packed(bits, k)
    levels = random_levels(if_zero, if_one)
    rows, width = bits.shape
    given, rest = divmod(rand.shape[1] if rand.ndim == 2 else 0, width)
    if rand.dtype != np.uint8 or rand.ndim != 2 or len(rand) != rows or rest or given > levels:
        raise InputError(
            f"expected random bytes as uint8[{rows}, up to {levels} levels of {width}], "
            f"got {rand.dtype}{list(rand.shape)}"
        )
    out = np.empty(bits.shape, dtype=np.uint8)
    undecided = np.zeros(rows, dtype=np.bool_)
    flat = read_only(rand, np.uint8).reshape(-1)
    limits = thresholds(if_zero, if_one)
    _randomise(bits, k, limits, given, flat, NO_SEED, out, undecided)
    return out, undecided & (given < levels)


def randomise_rows(
    bits: NDArray[np.uint8],
    k: int,
    if_zero: int,
    if_one: int,
    rand: NDArray[np.uint8],
    *,
    threads: int | None = None,
) -> NDArray[np.uint8]:
    """Randomise packed reports with the caller's random bytes, as a client does with its own.

    bits : u8[N, B], packed reports of width k
    if_zero, if_one : thresholds in 0..2^32 for bits that are 0 and 1
    rand : u8[N, L * B], level-major, L = random_levels(if_zero, if_one)
    Returns u8[N, B].

    >>> report = np.array([[0b0101]], dtype=np.uint8)
    >>> randomise_rows(report, 4, 0, 1 << 31, np.array([[0b0001]], dtype=np.uint8))
    array([[4]], dtype=uint8)
    """
    bits = check_packed(bits, k)
    needed = random_levels(if_zero, if_one) * bits.shape[1]
    if rand.shape != (len(bits), needed) or rand.dtype != np.uint8:
        raise InputError(
            f"expected random bytes as uint8[{len(bits)}, {needed}], "
            f"got {rand.dtype}{list(rand.shape)}"
        )
    out = np.empty(bits.shape, dtype=np.uint8)
    workers = thread_count(threads)

    def work(start: int, stop: int) -> None:
        part = randomise_undecided(bits[start:stop], k, if_zero, if_one, rand[start:stop])
        out[start:stop] = part[0]

    # Pieces of a chunk each keep the temporary arrays small beside `out`.
    over_threads(work, spans(len(bits), -(-len(bits) // chunk_rows(bits.shape[1]))), workers)
    return out


def noise_rows(
    bits: NDArray[np.uint8],
    k: int,
    if_zero: int,
    if_one: int,
    rng: np.random.Generator,
    *,
    out: NDArray[np.uint8] | None = None,
    threads: int | None = None,
) -> NDArray[np.uint8]:
    """Randomise packed reports with simulated randomness, the same on any number of threads.

    bits : u8[N, B], packed reports of width k
    if_zero, if_one : thresholds in 0..2^32 for bits that are 0 and 1
    out : u8[N, B] to write into, may be `bits` itself
    Returns `out`, u8[N, B].

    >>> reports = np.zeros((1000, 16), dtype=np.uint8)
    >>> noisy = noise_rows(reports, 128, 1 << 30, 3 << 30, np.random.default_rng(1))
    >>> round(float(np.unpackbits(noisy).mean()), 2)
    0.25
    """
    bits = check_packed(bits, k)
    levels = random_levels(if_zero, if_one)
    out = output_rows(len(bits), k, out)
    rows = chunk_rows(bits.shape[1])
    seeds = chunk_seeds(len(bits), bits.shape[1], rng)
    workers = thread_count(threads)
    limits = thresholds(if_zero, if_one)

    def work(start: int, stop: int) -> None:
        undecided = np.zeros(rows, dtype=np.bool_)
        for chunk in range(start, stop):
            part = slice(chunk * rows, (chunk + 1) * rows)
            seed = seeds[chunk]
            _randomise(bits[part], k, limits, levels, NO_BYTES, seed, out[part], undecided)

    over_threads(work, spans(len(seeds), workers * PIECES_PER_THREAD), workers)
    return out


def output_rows(count: int, k: int, out: NDArray[np.uint8] | None) -> NDArray[np.uint8]:
    """Return `out` if it can hold `count` packed reports of width k in place, or a new array."""
    shape = (count, byte_width(k))
    if out is None:
        return np.empty(shape, dtype=np.uint8)
    if out.shape != shape or out.dtype != np.uint8 or not out.flags.c_contiguous:
        raise InputError(
            f"expected out as contiguous uint8{list(shape)}, got {out.dtype}{list(out.shape)}"
        )
    return out
