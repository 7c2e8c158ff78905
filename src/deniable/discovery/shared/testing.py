"""Which candidates are reported: exact p-values from the hash itself, and cut-offs by odds.

If no client holds a string, no report depends on where the string's hashes fall, so in every table
that took no part in choosing it its cell is as good as drawn at random. The exact distribution of
its evidence is then the convolution of those tables' own histograms: collisions, heavy strings,
skewness and whatever the population looks like are all in it. Nothing is assumed about the noise.

A false string may share its first characters with true ones, so only levels count that hold the
whole string; see `prefixes` for which reports choose and which test.

Cut-offs: candidate i is accepted if its p-value is at most w_i, with Σ w_i = α over *all*
candidates, and w_i a function of the data that chose it. The expected number of false strings is
then at most α. To find most, w_i = Φ(−t_i), t_i = (λ − log P_i)/z_i + z_i/2, where P_i is its
probability of being present and z_i its expected test statistic: the likelihood-ratio rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from deniable.discovery.shared.strings import Floats, Rows
from deniable.discovery.shared.tables import ScoreTables

Numbers = NDArray[np.int64]
STEP = 0.004
"""Lattice on which evidence is added up, in standard deviations; both sides of a test use it."""
ROUND_OFF = 1e-13
LEAST_Z, MOST_Z = 0.3, 7.0


@dataclass(frozen=True, eq=False)
class HashTest:
    """The test by these levels and families of scores: one for all strings that were followed up
    to one level."""

    scores: ScoreTables
    levels: tuple[int, ...]
    families: tuple[int, ...]

    @cached_property
    def places(self) -> tuple[Numbers, Numbers]:
        """Level and family of each table that takes part, int64[P] each."""
        level, family = np.meshgrid(self.levels, self.families, indexing="ij")
        return level.ravel(), family.ravel()

    @cached_property
    def precision(self) -> float:
        return float(self.scores.effective[self.places].sum() / self.scores.noise)

    def rounded(self, entry: NDArray[np.float32]) -> Numbers:
        """Return entries on the lattice."""
        return np.asarray(np.rint(entry / (np.sqrt(self.precision) * STEP)), np.int64)

    @cached_property
    def lattice(self) -> Numbers:
        """int64[P, K]."""
        return self.rounded(self.scores.entry[self.places])

    @cached_property
    def size(self) -> int:
        """Length of the transforms: no sum can wrap around."""
        limit = np.abs(self.lattice).max(axis=1).sum() + 8 * len(self.lattice)
        return int(2 ** np.ceil(np.log2(2 * limit + 2)))

    @cached_property
    def transforms(self) -> object:
        """Of each table's histogram; see `compute.screening`."""
        return self.scores.tally.kernels.transforms(self.lattice, self.size)

    @cached_property
    def tail(self) -> Floats:
        """P(sum ≥ i − size/2) at i, for a string that no client holds."""
        return self._tail(None)

    def _tail(self, moved: tuple[Numbers, Numbers, float] | None) -> Floats:
        mass = self.scores.tally.kernels.convolved(self.transforms, self.size, moved)
        mass = np.roll(mass, self.size // 2)
        return np.asarray(np.clip(mass[::-1].cumsum()[::-1], 0.0, 1.0) + ROUND_OFF)

    def evidence_at(self, p: float) -> float:
        """Return the least sum of entries whose p-value is at most this."""
        first = int(np.searchsorted(-self.tail, -p))
        return float((first - self.size // 2) * np.sqrt(self.precision) * STEP)

    def cells(self, rows: Rows) -> Numbers:
        """int64[P, n]: the strings' cells."""
        by_level = [self.scores.tally.positions(level, rows) for level in self.levels]
        return np.concatenate([p[list(self.families)] for p in by_level]).astype(np.int64)

    def p_values(self, rows: Rows) -> Floats:
        """float64[n], for strings whose mass was not taken out of the tables."""
        sums = np.take_along_axis(self.lattice, self.cells(rows), axis=1).sum(axis=0)
        return np.asarray(self.tail[sums + self.size // 2])

    def p_value_put_back(self, row: Rows, mass: float) -> float:
        """Return the p-value of a string whose mass was taken out: it is put back, and the null
        distribution is that of the tables with it."""
        cell, scores = self.cells(row[np.newaxis])[:, 0], self.scores
        removed = self.lattice[np.arange(len(cell)), cell]
        with_mass = scores.estimate[*self.places, cell] + mass
        now = self.rounded(scores.weighted(with_mass, scores.effective[self.places]))
        tail = self._tail((removed, now, 1 / scores.tally.cells))
        return float(tail[now.sum() + self.size // 2])


def tests_from(
    scores: ScoreTables, first: Numbers, families: Iterable[int]
) -> Iterator[tuple[Numbers, HashTest]]:
    """Yield each test of strings that these levels and all longer ones hold whole.

    first : int64[n], a level for each string; with each test come the indices of its strings
    """
    for level in np.unique(first):
        later = tuple(range(int(level), scores.tally.levels))
        if later:
            yield np.flatnonzero(first == level), HashTest(scores, later, tuple(families))


def cutoffs_by_odds(odds: Floats, z: Floats, alpha: float) -> Floats:
    """float64[n]: the largest p-value at which each candidate is accepted; they sum to at most α.

    odds : log-odds of being present; z : expected test statistic if it is
    """
    if not len(odds):
        return np.zeros(0)
    log_p = -np.logaddexp(0, -odds)
    z = np.clip(z, LEAST_Z, MOST_Z)

    def at(height: float) -> Floats:
        return np.asarray(ndtr(-((height - log_p) / z + z / 2)))

    low, high = -200.0, 400.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if at(middle).sum() > alpha else (low, middle)
    return at(high)
