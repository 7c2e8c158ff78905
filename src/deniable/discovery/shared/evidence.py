"""Evidence: tables weighted by their precision, so that a prefix's evidence is a plain sum.

With r the mass in a prefix's cells and 1/P its variance, a mass f against none has log-likelihood
ratio f·e − f²P/2, e = P·r. Entries are cut at four standard deviations: a string that shares a cell
with a heavy one in a single family would look certain otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deniable.discovery.shared.tables import MassTables, Rows

CUT = 4.0


@dataclass(frozen=True, eq=False)
class ScoreTables:
    """entry : float32[L, C, K], 0 in families that take no part; precision : float64[L]."""

    tables: MassTables
    entry: NDArray[np.float32]
    precision: NDArray[np.float64]

    @classmethod
    def of(
        cls,
        tables: MassTables,
        residual: NDArray[np.float32],
        families: NDArray[np.bool_],
    ) -> ScoreTables:
        """Of these families' residual tables."""
        weight = np.where(families, tables.count, 0) / tables.noise
        return cls(tables, entries(tables, residual) * families[:, None], weight.sum(1))

    def sums(self, level: int, rows: Rows) -> NDArray[np.float32]:
        """float32[n]: the evidence for each string's prefix at this level."""
        tables = self.tables
        length = int(tables.lengths[level])
        return tables.loops.evidence(tables.header(level), rows, length, self.entry[level])

    def log_ratios(
        self,
        level: int,
        sums: NDArray[np.float32],
        weight: NDArray[np.float32],
        parent: NDArray[np.int64],
        masses: NDArray[np.float32],
    ) -> NDArray[np.float32]:
        """float32[n]: log-likelihood ratio of each, its mass distributed as weight[parent]."""
        precision = float(self.precision[level])
        return self.tables.loops.log_mixtures(weight, parent, sums, masses, precision)


def entries(tables: MassTables, residual: NDArray[np.float32]) -> NDArray[np.float32]:
    """Cut and weighted by precision."""
    count = tables.count[:, :, np.newaxis]
    limit = CUT * np.sqrt(tables.noise / np.maximum(count, 1))
    return (np.clip(residual, -limit, limit) * (count / tables.noise)).astype(np.float32)
