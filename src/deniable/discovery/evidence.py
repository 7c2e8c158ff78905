"""Evidence: tables weighted by their precision, so that a prefix's evidence is a plain sum.

With r the mass in a prefix's cells and 1/P its variance, a mass f against none has log-likelihood
ratio f·e − f²P/2, e = P·r. Entries are cut at four standard deviations: a string that shares a cell
with a heavy one in a single family would look certain otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deniable.discovery.tables import Rows, Tables
from deniable.kernels.cells import cell_sums, log_mixtures
from deniable.kernels.chunks import over_threads, spans, thread_count

CUT = 4.0
CHUNK = 1 << 16


@dataclass(frozen=True, eq=False)
class Evidence:
    """entry : float32[L, C, K], 0 in families that take no part; precision : float64[L]."""

    tables: Tables
    entry: NDArray[np.float32]
    precision: NDArray[np.float64]

    @classmethod
    def of(
        cls,
        tables: Tables,
        residual: NDArray[np.float32],
        families: NDArray[np.bool_],
    ) -> Evidence:
        """Of these families' residual tables."""
        weight = np.where(families, tables.count, 0) / tables.noise
        return cls(tables, entries(tables, residual) * families[:, None], weight.sum(1))

    def sums(self, level: int, rows: Rows) -> NDArray[np.float32]:
        """float32[n]: the evidence for each string's prefix at this level."""
        out = np.empty(len(rows), np.float32)

        def work(start: int, stop: int) -> None:
            some = slice(start, stop)
            x, y = self.tables.pairs(level, rows[some], threads=1)
            cell_sums(x, y, self.entry[level], out[some])

        _in_threads(work, len(rows))
        return out

    def log_ratios(
        self,
        level: int,
        sums: NDArray[np.float32],
        weight: NDArray[np.float32],
        parent: NDArray[np.int64],
        masses: NDArray[np.float32],
    ) -> NDArray[np.float32]:
        """float32[n]: log-likelihood ratio of each, its mass distributed as weight[parent]."""
        out = np.empty(len(sums), np.float32)
        precision = np.float32(self.precision[level])

        def work(start: int, stop: int) -> None:
            some = slice(start, stop)
            log_mixtures(weight, parent[some], sums[some], masses, precision, out[some])

        _in_threads(work, len(sums))
        return out


def entries(tables: Tables, residual: NDArray[np.float32]) -> NDArray[np.float32]:
    """Cut and weighted by precision."""
    count = tables.count[:, :, np.newaxis]
    limit = CUT * np.sqrt(tables.noise / np.maximum(count, 1))
    return (np.clip(residual, -limit, limit) * (count / tables.noise)).astype(np.float32)


def _in_threads(work: Callable[[int, int], None], count: int) -> None:
    over_threads(work, spans(count, -(-count // CHUNK)), thread_count(None))
