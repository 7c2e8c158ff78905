"""Screen many strings or cells at once, on several threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from deniable.kernels.array_types import Bytes, Complexes, Int64s, Singles
from deniable.kernels.chunks import over_threads, split_range, thread_count
from deniable.kernels.hashing.positions import hash_row_pairs
from deniable.kernels.likelihood.hash_rows import support_of_all
from deniable.kernels.search import cell_sums

STRINGS_PER_CHUNK = 1 << 14
FREQUENCIES_PER_CHUNK = 1 << 13
TRANSFORMS_PER_CHUNK = 8
SAMPLED, SAMPLE_MARGIN = 1 << 16, 5.0
"""Size of the sample of `_least_of_best`, and standard errors by which its rank is too large."""

Number = TypeVar("Number", bound=np.generic)


def line_support(sent: NDArray[Number], lines: Int64s) -> NDArray[Number]:
    """Return for each of the g^d cells the sum over lines of the entry of its number, […, g^d].

    sent : […, L, g], entries per line and number; lines : int64[L, d - 1], digits
    """
    tables = np.ascontiguousarray(sent).reshape(-1, *sent.shape[-2:])
    out = np.empty((len(tables), sent.shape[-1] ** (1 + lines.shape[1])), sent.dtype)

    def work(start: int, stop: int) -> None:
        for i in range(start, stop):
            support_of_all(tables[i], lines, out[i])

    _in_threads(work, len(tables), 1)
    return out.reshape(*sent.shape[:-2], -1)


def hashed_sums(header: bytes, rows: Bytes, length: int, tables: Singles) -> Singles:
    """Return for every string the sum over families of the entry at its cell, float32[n].

    A string is the first `length` symbols of a row u8[n, M]; tables : float32[C, K]
    """
    out = np.empty(len(rows), np.float32)

    def work(start: int, stop: int) -> None:
        x, y = hash_row_pairs(header, rows[start:stop], length, threads=1)
        cell_sums.cell_sums(x, y, tables, out[start:stop])

    _in_threads(work, len(rows), STRINGS_PER_CHUNK)
    return out


def log_mixtures(
    weight: Singles, parent: Int64s, sums: Singles, masses: Singles, precision: float
) -> Singles:
    """Return log-likelihood ratios float32[n]; see `kernels.search.cell_sums.log_mixtures`."""
    out = np.empty(len(sums), np.float32)

    def work(start: int, stop: int) -> None:
        chunk = slice(start, stop)
        arrays = parent[chunk], sums[chunk], masses
        cell_sums.log_mixtures(weight, *arrays, np.float32(precision), out[chunk])

    _in_threads(work, len(sums), STRINGS_PER_CHUNK)
    return out


def largest(odds: Singles, count: int) -> Int64s:
    """Return the indices of the `count` largest entries of odds[n], in any order."""
    if len(odds) <= count:
        return np.arange(len(odds))
    chosen = odds >= _least_of_best(odds, count)
    # Ties with the least are kept only while there is room.
    if extra := np.count_nonzero(chosen) - count:
        chosen[np.flatnonzero(odds == odds[chosen].min())[-extra:]] = False
    return np.flatnonzero(chosen)


def _least_of_best(odds: Singles, count: int) -> np.float32:
    """Return the least of the `count` largest entries of odds[n], where n > count."""
    # A sample says which entries are certainly smaller, so that they need not be partitioned.
    sample = odds[:: max(len(odds) // SAMPLED, 1)]
    expected = count / len(odds) * len(sample)
    rank = min(int(expected + SAMPLE_MARGIN * np.sqrt(expected)) + 1, len(sample))
    among = odds[odds >= np.partition(sample, -rank)[-rank]]
    if len(among) < count:
        among = odds
    return np.float32(np.partition(among, -count)[-count])


def lattice_transforms(lattice: Int64s, size: int) -> Complexes:
    """Return Fourier transforms, complex128[P, size/2 + 1], of the rows' distributions.

    lattice : int64[P, K], equally likely entries, which are added modulo size
    """
    out = np.empty((len(lattice), size // 2 + 1), np.complex128)

    def work(start: int, stop: int) -> None:
        counts = np.empty(size)
        for i in range(start, stop):
            counts[:] = 0
            cell_sums.count_modulo(lattice[i], counts)
            out[i] = np.fft.rfft(counts)
            out[i] /= lattice.shape[1]

    _in_threads(work, len(lattice), TRANSFORMS_PER_CHUNK)
    return out


def multiplied(
    transforms: Complexes, size: int, moved: tuple[Int64s, Int64s, float] | None = None
) -> Complexes:
    """Return the product of the transforms: that of the distribution of the rows' sum.

    moved : old and new value of one entry per row, int64[P] each, and the share of that entry
    """
    product = np.ones(transforms.shape[1], np.complex128)
    turns = np.empty(0, np.complex128)
    if moved:
        turns = moved[2] * np.exp(-2j * np.pi * np.arange(size) / size)

    def work(start: int, stop: int) -> None:
        chunk, out = transforms[:, start:stop], product[start:stop]
        if moved:
            cell_sums.multiply_moved(chunk, start, *moved[:2], turns, out)
        else:
            np.multiply.reduce(chunk, axis=0, out=out)

    _in_threads(work, len(product), FREQUENCIES_PER_CHUNK)
    return product


def _in_threads(work: Callable[[int, int], None], count: int, chunk: int) -> None:
    """Call work(start, stop) for ranges of at most `chunk`, on all processors."""
    over_threads(work, split_range(count, -(-count // chunk)), thread_count(None))
