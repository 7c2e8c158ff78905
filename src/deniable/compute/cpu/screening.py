"""Screening kernels for CPUs: compiled loops on several threads."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from deniable.compute.screening import Moved, Number, StringRange
from deniable.kernels.array_types import Bytes, DeviceArray, Floats, Int64s, Singles
from deniable.kernels.chunks import over_threads, split_range, thread_count
from deniable.kernels.hashing.positions import hash_fixed_pairs
from deniable.kernels.likelihood.hash_rows import line_support
from deniable.kernels.search import domain_scan as domain
from deniable.kernels.search.cell_sums import cell_sums, log_mixtures

STRINGS_PER_CHUNK = 1 << 16
FREQUENCIES_PER_CHUNK = 1 << 13


class CpuScreening:
    """Screening by compiled loops; see `compute.screening.ScreeningKernels`."""

    def line_support(self, sent: NDArray[Number], lines: Int64s, cells: Int64s) -> NDArray[Number]:
        """Return for each cell the sum over lines of the entry of its number."""
        tables = np.ascontiguousarray(sent).reshape(-1, *sent.shape[-2:])
        out = np.empty((len(tables), len(cells)), sent.dtype)

        def work(start: int, stop: int) -> None:
            for i in range(start, stop):
                line_support(tables[i], lines, cells, out[i])

        _in_threads(work, len(tables), 1)
        return out.reshape(*sent.shape[:-2], -1)

    def evidence(self, header: bytes, rows: Bytes, length: int, tables: Singles) -> Singles:
        """Return the evidence for every string."""
        return hashed_sums(header, rows, length, tables)

    def log_mixtures(
        self, weight: Singles, parent: Int64s, sums: Singles, masses: Singles, precision: float
    ) -> Singles:
        """Return log-likelihood ratios of prefixes from their evidence."""
        out = np.empty(len(sums), np.float32)

        def work(start: int, stop: int) -> None:
            chunk = slice(start, stop)
            arrays = parent[chunk], sums[chunk], masses
            log_mixtures(weight, *arrays, np.float32(precision), out[chunk])

        _in_threads(work, len(sums), STRINGS_PER_CHUNK)
        return out

    def best(self, odds: Singles, count: int) -> Int64s:
        """Return the indices of the largest entries."""
        if len(odds) <= count:
            return np.arange(len(odds))
        return np.asarray(np.argpartition(-odds, count)[:count])

    def transforms(self, lattice: Int64s, size: int) -> DeviceArray:
        """Return Fourier transforms, complex128[P, size/2 + 1]."""
        out = np.empty((len(lattice), size // 2 + 1), np.complex128)

        def work(start: int, stop: int) -> None:
            for i in range(start, stop):
                counts = np.bincount(lattice[i] % size, minlength=size)
                out[i] = np.fft.rfft(counts) / lattice.shape[1]

        _in_threads(work, len(lattice), 1)
        return out

    def convolved(self, transforms: DeviceArray, size: int, moved: Moved | None = None) -> Floats:
        """Return the distribution of the sum of one entry from each row."""
        product = np.ones(transforms.shape[1], np.complex128)
        turn = np.exp(-2j * np.pi * np.arange(size) / size) if moved else np.zeros(0)

        def work(start: int, stop: int) -> None:
            steps = np.arange(start, stop)
            for i, each in enumerate(transforms[:, start:stop]):
                if moved:
                    was, now, share = moved
                    change = turn[steps * now[i] % size] - turn[steps * was[i] % size]
                    each = each + share * change
                product[start:stop] *= each

        _in_threads(work, len(product), FREQUENCIES_PER_CHUNK)
        return np.fft.irfft(product, size)

    def scan(self, header: bytes, strings: StringRange, tables: Singles, least: float) -> Int64s:
        """Return the numbers of the strings with enough evidence."""
        row, first, stop, symbols = strings
        lead = np.frombuffer(header, ">u4").astype(np.uint32)
        kept = np.empty(strings.size, np.int64)
        block = _padded_tail(row, len(header))
        count = domain.scan(lead, block, first, stop, symbols, tables, np.float32(least), kept)
        return kept[:count].copy()


CPU = CpuScreening()


def hashed_sums(header: bytes, rows: Bytes, length: int, tables: Singles) -> Singles:
    """Return float32[n]: the sum of table entries at the cells of every string.

    See `compute.screening.ScreeningKernels.evidence`.
    """
    out = np.empty(len(rows), np.float32)

    def work(start: int, stop: int) -> None:
        chunk = slice(start, stop)
        lengths = np.full(stop - start, length, np.int64)
        x, y = hash_fixed_pairs(header, rows[chunk], lengths, threads=1)
        cell_sums(x, y, tables, out[chunk])

    _in_threads(work, len(rows), STRINGS_PER_CHUNK)
    return out


def _in_threads(work: Callable[[int, int], None], count: int, chunk: int) -> None:
    """Call work(start, stop) for ranges of at most `chunk`, on all processors."""
    over_threads(work, split_range(count, -(-count // chunk)), thread_count(None))


def _padded_tail(row: Bytes, before: int) -> Bytes:
    """Return u8[32]: the row with the padding of SHA-256, after `before` bytes of the message."""
    block = np.zeros(domain.TAIL_BYTES, np.uint8)
    block[: len(row)] = row
    block[len(row)] = 0x80
    block[-2:] = divmod(8 * (before + len(row)), 256)
    return block
