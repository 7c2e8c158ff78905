"""Debiased tables: for every level and family of hash functions, the mass that fell in each cell.

A client at level l in family c whose prefix has cell v adds 1 to that cell in expectation, and
nothing to the others: Bloom filters with one hash give this bit by bit; local hashing by summing,
for each cell, the reports that agree with it on their own line.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from deniable.discovery.shared.evidence import ScoreTables
from deniable.discovery.shared.strings import Floats, Rows
from deniable.discovery.shared.tally import Tally


@dataclass(frozen=True, eq=False)
class MassTables:
    """mass : float32[L, C, K], unbiased, each family's mean over cells removed."""

    tally: Tally
    mass: NDArray[np.float32]

    @classmethod
    def of(cls, tally: Tally) -> MassTables:
        """Return the tables of what was sent."""
        (p, q), count = tally.support, tally.reports.sum(axis=2)
        support = tally.by_cell(tally.sent)
        mass = (support / np.maximum(count, 1)[:, :, np.newaxis] - p) / (q - p)
        mass -= mass.mean(axis=2, keepdims=True)
        mass[count == 0] = 0
        return cls(tally, mass.astype(np.float32))

    @cached_property
    def reports(self) -> NDArray[np.int64]:
        """int64[L, C]."""
        return np.asarray(self.tally.reports.sum(axis=2))

    @property
    def noise(self) -> float:
        """Variance of one report's contribution to a cell that it does not hold."""
        p, q = self.tally.support
        return p * (1 - p) / (q - p) ** 2

    @property
    def own_noise(self) -> float:
        """What is added to that variance for the cell that it holds."""
        p, q = self.tally.support
        return q * (1 - q) / (q - p) ** 2 - self.noise

    @property
    def scores(self) -> ScoreTables:
        """The scores of reports that all weigh the same."""
        return ScoreTables(self.tally, self.mass, self.reports, self.noise)

    def effect(self, cells: NDArray[np.int32], masses: Floats) -> NDArray[np.float32]:
        """float32[K]: what strings of these masses in these cells add to one family's table."""
        load = np.bincount(cells, weights=masses, minlength=self.tally.cells)
        fit = self.tally.effect(load.astype(np.float64, copy=False))
        return np.asarray(fit - fit.mean(), np.float32)

    def without(self, rows: Rows, masses: Floats) -> MassTables:
        """Return the tables less what strings of these masses add to them."""
        residual = self.mass.copy()
        for level in range(self.tally.levels if len(rows) else 0):
            for family, cells in enumerate(self.tally.positions(level, rows)):
                residual[level, family] -= self.effect(cells, masses)
        return replace(self, mass=residual)
