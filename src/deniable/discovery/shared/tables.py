"""Tables of cells: debiased masses, likelihood scores, and the evidence that they give for strings.

The *mass* of a string is the share of clients that hold it. A client with prefix length l in
family c adds 1, in expectation, to the cell of its prefix, and nothing to other cells. A Bloom
filter with one hash gives this bit by bit. Local hashing gives it by summing, for each cell, the
reports that agree with it on their own line.

Evidence is a sum of scores weighted by their precision. With r the estimate of the mass in the
cells of a prefix and 1/P its variance, the log-likelihood ratio of mass f against none is
f·e − f²P/2 with e = P·r. Entries are clipped at four standard deviations: otherwise a string that
shares a cell with a common one in a single family would look certain.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from deniable.discovery.shared.screening import hashed_sums
from deniable.discovery.shared.strings import Rows
from deniable.discovery.shared.tally import Tally
from deniable.kernels.array_types import Floats, Int32s, Int64s, Mask, Singles
from deniable.protocols.alphabet import PAD

MAX_DEVIATIONS = 4.0
"""Standard deviations at which the entry of a cell is clipped."""
MAX_REFITS = 30
REFIT_TOLERANCE = 1e-7


@dataclass(frozen=True, eq=False)
class ScoreTables:
    """Scores of the likelihood in every cell, for strings that are not explained yet.

    estimate : float32[L, C, K], estimate of the mass in each cell
    effective : int64[L, C], number of equally weighted reports with the same information
    noise : variance of one such report
    """

    tally: Tally
    estimate: Singles
    effective: Int64s
    noise: float

    @property
    def standard_error(self) -> float:
        """Standard error of the mass of a rare string, from all reports."""
        return float(np.sqrt(self.noise / max(int(self.effective.sum()), 1)))

    def weighted(self, estimate: Singles, effective: Int64s) -> Singles:
        """Clip estimates from this many reports, and weight them by their precision."""
        limit = MAX_DEVIATIONS * np.sqrt(self.noise / np.maximum(effective, 1))
        clipped = np.clip(estimate, -limit, limit)
        return (clipped * (effective / self.noise)).astype(np.float32)

    @cached_property
    def entry(self) -> Singles:
        """float32[L, C, K]: the weighted scores."""
        return self.weighted(self.estimate, self.effective[:, :, np.newaxis])

    def evidence(self, families: Mask | None = None) -> StringEvidence:
        """Return the evidence of these families, bool[C], or of all."""
        chosen = np.ones(self.tally.families, bool) if families is None else families
        precision = np.where(chosen, self.effective, 0) / self.noise
        return StringEvidence(self, self.entry * chosen[:, np.newaxis], precision.sum(axis=1))


@dataclass(frozen=True, eq=False)
class StringEvidence:
    """Evidence for strings from some of the families.

    entry : float32[L, C, K], 0 in families that are not used; precision : float64[L]
    """

    scores: ScoreTables
    entry: Singles
    precision: Floats

    @property
    def tally(self) -> Tally:
        """The counts behind the scores."""
        return self.scores.tally

    def sums(self, level: int, rows: Rows) -> Singles:
        """float32[n]: the evidence for each string's prefix of this length."""
        tally, length = self.tally, int(self.tally.lengths[level])
        return hashed_sums(tally.header(level), rows, length, self.entry[level])


@dataclass(frozen=True, eq=False)
class MassTables:
    """Unbiased estimates of the mass in every cell.

    mass : float32[L, C, K], less the mean over the cells of each family
    """

    tally: Tally
    mass: Singles

    @classmethod
    def of(cls, tally: Tally) -> MassTables:
        """Estimate the masses from the counts of reports."""
        (p, q), count = tally.mechanism.support, tally.reports.sum(axis=2)
        support = tally.by_cell(tally.sent)
        mass = (support / np.maximum(count, 1)[:, :, np.newaxis] - p) / (q - p)
        mass -= mass.mean(axis=2, keepdims=True)
        mass[count == 0] = 0
        return cls(tally, mass.astype(np.float32))

    @cached_property
    def reports(self) -> Int64s:
        """int64[L, C]: number of reports."""
        return np.asarray(self.tally.reports.sum(axis=2))

    @property
    def noise(self) -> float:
        """Variance of what one report adds to a cell that its client does not hold."""
        p, q = self.tally.mechanism.support
        return p * (1 - p) / (q - p) ** 2

    @property
    def scores(self) -> ScoreTables:
        """The scores of reports that all weigh the same."""
        return ScoreTables(self.tally, self.mass, self.reports, self.noise)

    def effect(self, cells: Int32s, masses: Floats) -> Singles:
        """float32[K]: what strings of these masses in these cells add to the table of a family."""
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

    def fit(self, rows: Rows, readable: Mask | None = None) -> tuple[Floats, Floats]:
        """Estimate the masses of known strings jointly.

        Each mass comes from the prefix lengths that hold the whole string: a prefix that is not
        longer than the string may belong to other strings. Cells collide seldom, so correcting
        each string by what the others leave in its cells converges in a few rounds.

        readable : bool[n, L, C], the tables that each string may be read in; None for all of them

        Returns masses and their standard errors, float64[n] each.
        """
        if not len(rows):
            return np.zeros(0), np.zeros(0)
        count = self.whole(rows)[:, :, np.newaxis] * self.reports.astype(np.float64)
        if readable is not None:
            count *= readable
        read = np.argwhere(count.any(axis=0))
        cells = {level: self.tally.positions(level, rows) for level in np.unique(read[:, 0])}
        weight = np.maximum(count.sum(axis=(1, 2)), 1)
        mass, largest = np.zeros(len(rows)), np.inf
        for _ in range(MAX_REFITS):
            excess, spread = np.zeros(len(rows)), np.zeros(len(rows))
            for level, family in read:
                cell, reports = cells[level][family], count[:, level, family]
                residual = self.mass[level, family] - self.effect(cell, mass)
                excess += reports * residual[cell]
                spread += reports**2 * float(residual.var())
            step = excess / weight
            # In a few reports many strings share all cells: corrections that grow are left out.
            if np.abs(step).max() > largest:
                break
            mass, largest = mass + step, np.abs(step).max()
            if largest < REFIT_TOLERANCE:
                break
        # The spread of the residuals holds the noise, and collisions with unknown strings. Clients
        # that hold the string add noise of another variance, and their number varies.
        return mass, np.sqrt(spread / weight**2 + self.holders_variance(mass) / weight)

    def whole(self, rows: Rows) -> Mask:
        """bool[n, L]: which prefix lengths hold each string whole."""
        length, lengths = (rows != PAD).sum(axis=1), self.tally.lengths
        return np.asarray((lengths > length[:, np.newaxis]) | (lengths == rows.shape[1]))

    def holders_variance(self, mass: Floats) -> Floats:
        """Return the variance per report that clients add who hold strings of these masses."""
        p, q = self.tally.mechanism.support
        share = np.clip(mass, 0, 1)
        return np.asarray((q * (1 - q) / (q - p) ** 2 - self.noise) * share + share * (1 - share))
