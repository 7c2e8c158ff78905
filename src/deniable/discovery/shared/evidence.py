"""Scores of cells, and the evidence for strings: sums of scores weighted by their precision.

With r the estimate of the mass in a prefix's cells and 1/P its variance, a mass f against none has
log-likelihood ratio f·e − f²P/2, e = P·r. Entries are clipped at four standard deviations: a string
that shares a cell with a heavy one in a single family would look certain otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from deniable.discovery.shared.strings import Rows
from deniable.discovery.shared.tally import Tally

CLIP = 4.0
Singles = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class ScoreTables:
    """The likelihood's score of every cell, for strings that are not explained yet.

    estimate : float32[L, C, K], of the mass in each cell; effective : int64[L, C], the number of
    reports that would tell as much if all weighed the same; noise : variance of one such report
    """

    tally: Tally
    estimate: Singles
    effective: NDArray[np.int64]
    noise: float

    @property
    def standard_error(self) -> float:
        """Standard error of a rare string's mass, from all reports."""
        return float(np.sqrt(self.noise / max(int(self.effective.sum()), 1)))

    def weighted(self, estimate: Singles, effective: NDArray[np.int64]) -> Singles:
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
    precision: NDArray[np.float64]

    @property
    def tally(self) -> Tally:
        return self.scores.tally

    def sums(self, level: int, rows: Rows) -> Singles:
        """float32[n]: the evidence for each string's prefix at this level."""
        tally, length = self.tally, int(self.tally.lengths[level])
        return tally.kernels.evidence(tally.header(level), rows, length, self.entry[level])
