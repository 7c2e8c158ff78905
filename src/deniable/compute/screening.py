"""Who screens candidates: processors, or whatever else an executor brings as its `loops`.

Discovery looks at millions of strings and at every cell of its tables. Those loops, and only those,
go through here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from deniable.kernels.chunks import over_threads, spans, thread_count
from deniable.kernels.hashing.positions import hash_fixed_pairs
from deniable.kernels.likelihood.hash_rows import line_support
from deniable.kernels.search import domain_scan as domain
from deniable.kernels.search.cell_sums import cell_sums, log_mixtures

Singles = NDArray[np.float32]
Numbers = NDArray[np.int64]
Floats = NDArray[np.float64]
Rows = NDArray[np.uint8]
Moved = tuple[Numbers, Numbers, float]
CHUNK = 1 << 16
ENDING = 9
"""Bytes that SHA-256 adds to a message at least: a bit, and the length."""


class ScreeningKernels(Protocol):
    """The loops that are long enough to be worth another processor's while."""

    def line_support(self, sent: NDArray[Any], lines: Numbers, cells: Numbers) -> NDArray[Any]:
        """[…, K] of sent[…, L, g]: for each cell, the sum over lines of its number's entry.

        lines : int64[L, d - 1], digits; cells : int64[K, d], digits
        """
        ...

    def evidence(self, header: bytes, rows: Rows, length: int, tables: Singles) -> Singles:
        """float32[n]: for the first `length` symbols of every row u8[n, M], the sum over families
        of tables[C, K] at their cells."""
        ...

    def log_mixtures(
        self, weight: Singles, parent: Numbers, sums: Singles, masses: Singles, precision: float
    ) -> Singles:
        """float32[n]: see `kernels.search.cell_sums.log_mixtures`."""
        ...

    def best(self, odds: Singles, count: int) -> Numbers:
        """Which entries of odds[n] are the largest, `count` of them or all; equals in any order."""
        ...

    def transforms(self, lattice: Numbers, size: int) -> Any:
        """Fourier transforms of the distribution of each row of lattice[P, K], modulo `size`; kept
        for `convolved`."""
        ...

    def convolved(self, transforms: Any, size: int, moved: Moved | None = None) -> Floats:
        """float64[size]: the distribution of the sum of one entry from each row, modulo `size`.

        moved : one entry of each row as it was and as it shall be, int64[P] each, and its share
        """
        ...

    def scan(
        self, header: bytes, row: Rows, first: int, stop: int, symbols: int, tables: Singles,
        least: float,
    ) -> Numbers:  # fmt: skip
        """Which of the strings that differ from `row` at first … stop have evidence ≥ least.

        Numbers of the symbols there, to the base of their number; see
        `kernels.search.domain_scan.scan`.
        """
        ...


class CpuScreening:
    """Compiled loops on this machine's processors."""

    def line_support(self, sent: NDArray[Any], lines: Numbers, cells: Numbers) -> NDArray[Any]:
        """Table by table."""
        tables = np.ascontiguousarray(sent).reshape(-1, *sent.shape[-2:])
        out = np.empty((len(tables), len(cells)), sent.dtype)

        def work(start: int, stop: int) -> None:
            for i in range(start, stop):
                line_support(tables[i], lines, cells, out[i])

        over_threads(work, spans(len(tables), len(tables)), thread_count(None))
        return out.reshape(*sent.shape[:-2], -1)

    def evidence(self, header: bytes, rows: Rows, length: int, tables: Singles) -> Singles:
        """Hashed and looked up, never stored."""
        out = np.empty(len(rows), np.float32)

        def work(start: int, stop: int) -> None:
            some = slice(start, stop)
            lengths = np.full(stop - start, length, np.int64)
            x, y = hash_fixed_pairs(header, rows[some], lengths, threads=1)
            cell_sums(x, y, tables, out[some])

        _in_threads(work, len(rows))
        return out

    def log_mixtures(
        self, weight: Singles, parent: Numbers, sums: Singles, masses: Singles, precision: float
    ) -> Singles:
        """Some at a time."""
        out = np.empty(len(sums), np.float32)

        def work(start: int, stop: int) -> None:
            some = slice(start, stop)
            log_mixtures(weight, parent[some], sums[some], masses, np.float32(precision), out[some])

        _in_threads(work, len(sums))
        return out

    def best(self, odds: Singles, count: int) -> Numbers:
        """By partition."""
        if len(odds) <= count:
            return np.arange(len(odds))
        return np.asarray(np.argpartition(-odds, count)[:count])

    def transforms(self, lattice: Numbers, size: int) -> Any:
        """complex[P, size/2 + 1]."""
        out = np.empty((len(lattice), size // 2 + 1), np.complex128)

        def work(start: int, stop: int) -> None:
            for i in range(start, stop):
                counts = np.bincount(lattice[i] % size, minlength=size)
                out[i] = np.fft.rfft(counts) / lattice.shape[1]

        over_threads(work, spans(len(lattice), len(lattice)), thread_count(None))
        return out

    def convolved(self, transforms: Any, size: int, moved: Moved | None = None) -> Floats:
        """Some frequencies at a time."""
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

        _in_threads(work, len(product), 1 << 13)
        return np.fft.irfft(product, size)

    def scan(
        self, header: bytes, row: Rows, first: int, stop: int, symbols: int, tables: Singles,
        least: float,
    ) -> Numbers:  # fmt: skip
        """Hashed and looked up, sixteen side by side."""
        lead = np.frombuffer(header, ">u4").astype(np.uint32)
        kept = np.empty(symbols ** (stop - first), np.int64)
        block = _ended(row, len(header))
        found = domain.scan(lead, block, first, stop, symbols, tables, np.float32(least), kept)
        return kept[:found].copy()


CPU = CpuScreening()


def loops_of(executor: Any) -> ScreeningKernels:
    """Who screens for this executor: its own `loops`, if it has any."""
    found: ScreeningKernels = getattr(executor, "loops", CPU)
    return found


def _in_threads(work: Callable[[int, int], None], count: int, chunk: int = CHUNK) -> None:
    over_threads(work, spans(count, -(-count // chunk)), thread_count(None))


def _ended(row: Rows, before: int) -> Rows:
    """u8[32]: the row as SHA-256 ends a message, with so many bytes before it."""
    block = np.zeros(domain.TAIL, np.uint8)
    block[: len(row)] = row
    block[len(row)] = 0x80
    block[-2:] = divmod(8 * (before + len(row)), 256)
    return block
