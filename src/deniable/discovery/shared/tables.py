"""Tables of cells: debiased masses, likelihood scores, and the evidence that these give strings.

A client at level l in family c whose prefix has cell v adds 1 to that cell in expectation, and
nothing to the others: Bloom filters with one hash give this bit by bit; local hashing by summing,
for each cell, the reports that agree with it on their own line.

Evidence is a sum of scores weighted by their precision. With r the estimate of the mass in a
prefix's cells and 1/P its variance, a mass f against none has log-likelihood ratio f·e − f²P/2,
e = P·r. Entries are clipped at four standard deviations: a string that shares a cell with a heavy
one in a single family would look certain otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from deniable.discovery.shared.strings import Floats, Rows
from deniable.discovery.shared.tally import Tally

CLIP = 4.0
Singles = NDArray[np.float32]
Counts = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ScoreTables:
    """The likelihood's score of every cell, for strings that are not explained yet.

    estimate : float32[L, C, K], of the mass in each cell; effective : int64[L, C], the number of
    reports that would tell as much if all weighed the same; noise : variance of one such report
    """

    tally: Tally
    estimate: Singles
    effective: Counts
    noise: float

    @property
    def standard_error(self) -> float:
        """Standard error of a rare string's mass, from all reports."""
        return float(np.sqrt(self.noise / max(int(self.effective.sum()), 1)))

    def weighted(self, estimate: Singles, effective: Counts) -> Singles:
        """Clip estimates from so many reports, and weight them by precision."""
        limit = CLIP * np.sqrt(self.noise / np.maximum(effective, 1))
        clipped = np.clip(estimate, -limit, limit)
        return (clipped * (effective / self.noise)).astype(np.float32)

    @cached_property
    def entry(self) -> Singles:
        """float32[L, C, K]: the weighted scores."""
        return self.weighted(self.estimate, self.effective[:, :, np.newaxis])

    def evidence(self, families: NDArray[np.bool_] | None = None) -> StringEvidence:
        """Return the evidence of some families, or of all."""
        chosen = np.ones(self.tally.families, bool) if families is None else families
        precision = np.where(chosen, self.effective, 0) / self.noise
        return StringEvidence(self, self.entry * chosen[:, np.newaxis], precision.sum(axis=1))


@dataclass(frozen=True, eq=False)
class StringEvidence:
    """entry : float32[L, C, K], 0 in families that take no part; precision : float64[L]."""

    scores: ScoreTables
    entry: Singles
    precision: Floats

    @property
    def tally(self) -> Tally:
        return self.scores.tally

    def sums(self, level: int, rows: Rows) -> Singles:
        """float32[n]: the evidence for each string's prefix at this level."""
        tally, length = self.tally, int(self.tally.lengths[level])
        return tally.kernels.evidence(tally.header(level), rows, length, self.entry[level])


@dataclass(frozen=True, eq=False)
class MassTables:
    """mass : float32[L, C, K], unbiased, each family's mean over cells removed."""

    tally: Tally
    mass: Singles

    @classmethod
    def of(cls, tally: Tally) -> MassTables:
        """Return the tables of what was sent."""
        (p, q), count = tally.mechanism.support, tally.reports.sum(axis=2)
        support = tally.by_cell(tally.sent)
        mass = (support / np.maximum(count, 1)[:, :, np.newaxis] - p) / (q - p)
        mass -= mass.mean(axis=2, keepdims=True)
        mass[count == 0] = 0
        return cls(tally, mass.astype(np.float32))

    @cached_property
    def reports(self) -> Counts:
        """int64[L, C]."""
        return np.asarray(self.tally.reports.sum(axis=2))

    @property
    def noise(self) -> float:
        """Variance of one report's contribution to a cell that it does not hold."""
        p, q = self.tally.mechanism.support
        return p * (1 - p) / (q - p) ** 2

    @property
    def own_noise(self) -> float:
        """What is added to that variance for the cell that it holds."""
        p, q = self.tally.mechanism.support
        return q * (1 - q) / (q - p) ** 2 - self.noise

    @property
    def scores(self) -> ScoreTables:
        """The scores of reports that all weigh the same."""
        return ScoreTables(self.tally, self.mass, self.reports, self.noise)

    def effect(self, cells: NDArray[np.int32], masses: Floats) -> Singles:
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
