"""Which candidates are accepted: exact p-values from the hash functions, and cut-offs by odds.

If no client holds a string, no report depends on where the hash functions map the string. In every
table that was not used to choose the string, its cell is therefore as good as drawn at random. The
exact null distribution of its evidence is the convolution of the histograms of those tables, which
contain collisions, common strings, skewness and any other property of the population. Nothing is
assumed about the noise.

A false string may share its first characters with true ones, so only prefix lengths that hold the
whole string count; `prefixes.run` says which reports choose and which test.

Cut-offs: candidate i is accepted if its p-value is at most w_i, with Σ w_i = α over *all*
candidates, and w_i a function of the data that chose it (see `inference.power.cutoffs`). The
expected number of false strings is then at most α.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from deniable.discovery.shared.screening import lattice_transforms, multiplied
from deniable.discovery.shared.strings import Rows, StringTests
from deniable.discovery.shared.tables import ScoreTables
from deniable.kernels.array_types import Complexes, Floats, Int64s, Singles

STEP = 0.004
"""Lattice on which evidence is added up, in standard deviations; both sides of a test use it."""
ROUNDING_ERROR = 1e-13


@dataclass(frozen=True, eq=False)
class LatticeTables:
    """The tables of some prefix lengths and families, in whole steps of a lattice.

    levels : indices of the prefix lengths, ascending; families : those of the families
    """

    scores: ScoreTables
    levels: tuple[int, ...]
    families: tuple[int, ...]

    @cached_property
    def places(self) -> tuple[Int64s, Int64s]:
        """Level and family of each of the P tables, int64[P] each, in the order of the levels."""
        level, family = np.meshgrid(self.levels, self.families, indexing="ij")
        return level.ravel(), family.ravel()

    @cached_property
    def unit(self) -> float:
        """Evidence per step of the lattice; any positive number where no report counts."""
        precision = self.scores.effective[self.places].sum() / self.scores.noise
        return float(np.sqrt(precision) or 1.0) * STEP

    def rounded(self, entry: Singles) -> Int64s:
        """Return entries as steps of the lattice."""
        return np.asarray(np.rint(entry / self.unit), np.int64)

    @cached_property
    def steps(self) -> Int64s:
        """int64[P, K]: the entries of the tables."""
        return self.rounded(self.scores.entry[self.places])

    @cached_property
    def size(self) -> int:
        """Length of the transforms, chosen such that no sum can wrap around."""
        limit = np.abs(self.steps).max(axis=1).sum() + 8 * len(self.steps)
        return int(2 ** np.ceil(np.log2(2 * limit + 2)))

    @cached_property
    def transforms(self) -> Complexes:
        """Fourier transforms of the histograms of the tables."""
        return lattice_transforms(self.steps, self.size)

    @cached_property
    def products(self) -> list[Complexes]:
        """Products of the transforms of each level and all later ones."""
        count = len(self.families)
        out: list[Complexes] = []
        for start in reversed(range(0, len(self.steps), count)):
            own = multiplied(self.transforms[start : start + count], self.size)
            out.append(own * out[-1] if out else own)
        return out[::-1]

    def from_level(self, level: int) -> HashTest:
        """Return the test by this level and all later ones."""
        return HashTest(self, self.levels.index(level) * len(self.families))


@dataclass(frozen=True, eq=False)
class HashTest:
    """Test of strings by tables, from the one with index `start` on: the first of a level."""

    tables: LatticeTables
    start: int = 0

    @property
    def scores(self) -> ScoreTables:
        """The scores in the tables."""
        return self.tables.scores

    @property
    def places(self) -> tuple[Int64s, Int64s]:
        """Level and family of each table."""
        level, family = self.tables.places
        return level[self.start :], family[self.start :]

    @cached_property
    def precision(self) -> float:
        """One over the variance of a mass that is estimated from these tables."""
        return float(self.scores.effective[self.places].sum() / self.scores.noise)

    @cached_property
    def tail(self) -> Floats:
        """float64[size]: P(sum ≥ i − size/2) at i, for a string that no client holds."""
        return self._tail(self.tables.products[self.start // len(self.tables.families)])

    def _tail(self, product: Complexes) -> Floats:
        """Return the same from the product of the transforms."""
        size = self.tables.size
        mass = np.roll(np.fft.irfft(product, size), size // 2)
        return np.asarray(np.clip(mass[::-1].cumsum()[::-1], 0.0, 1.0) + ROUNDING_ERROR)

    def evidence_at(self, p: Floats | float) -> Floats:
        """Return the smallest sums of entries whose p-values are at most `p`."""
        first = np.searchsorted(-self.tail, -np.asarray(p))
        return np.asarray((first - self.tables.size // 2) * self.tables.unit)

    def mass_at(self, p: Floats | float) -> Floats:
        """Return the masses, estimated from these tables, whose p-values are `p`."""
        return np.asarray(self.evidence_at(p) / max(self.precision, 1e-300))

    def cells(self, rows: Rows) -> Int64s:
        """int64[P, n]: the cell of each string in each table."""
        families, levels = list(self.tables.families), np.unique(self.places[0])
        by_level = [self.scores.tally.positions(int(level), rows) for level in levels]
        return np.concatenate([p[families] for p in by_level]).astype(np.int64)

    def sums(self, rows: Rows) -> Int64s:
        """int64[n]: evidence for strings, in steps of the lattice."""
        steps = self.tables.steps[self.start :]
        return np.asarray(np.take_along_axis(steps, self.cells(rows), axis=1).sum(axis=0))

    def p_values(self, rows: Rows) -> Floats:
        """float64[n]: p-values of strings whose masses are still in the tables."""
        return np.asarray(self.tail[self.sums(rows) + self.tables.size // 2])

    def masses(self, rows: Rows) -> Floats:
        """float64[n]: masses that these tables give to strings."""
        return np.asarray(self.sums(rows) * self.tables.unit / max(self.precision, 1e-300))

    def p_value_put_back(self, row: Rows, mass: float) -> float:
        """Return the p-value of a string whose mass was removed from the tables.

        The mass is put back, and the null distribution is that of the tables with it.
        """
        tables, scores = self.tables, self.scores
        cell = self.cells(row[np.newaxis])[:, 0]
        removed = tables.steps[self.start :][np.arange(len(cell)), cell]
        with_mass = scores.estimate[*self.places, cell] + mass
        restored = tables.rounded(scores.weighted(with_mass, scores.effective[self.places]))
        moved = removed, restored, 1 / scores.tally.cells
        size = tables.size
        tail = self._tail(multiplied(tables.transforms[self.start :], size, moved))
        return float(tail[restored.sum() + size // 2])


def tests_from(
    scores: ScoreTables, first: Int64s, families: Iterable[int]
) -> Iterator[tuple[Int64s, HashTest]]:
    """Yield the test for each distinct first level, with the indices of its strings.

    first : int64[n], the first level whose reports test each string; longer ones do too. Strings
        without any such level are left out.
    """
    levels = tuple(range(int(first.min(initial=scores.tally.levels)), scores.tally.levels))
    tables = LatticeTables(scores, levels, tuple(families))
    for level in np.unique(first[first < scores.tally.levels]):
        yield np.flatnonzero(first == level), tables.from_level(int(level))


@dataclass(frozen=True, eq=False)
class TableTests(StringTests):
    """Strings that passed tests by tables; float64[n] each.

    mass : estimate from the tables that test; height : the one at which the string is accepted
    precision : one over the variance of that mass if no client holds the string
    reports : number of reports in these tables
    odds : log-odds before the test, from which the cut-off follows
    expected, variance : mass expected before the test, and the variance of that expectation; 0 if
        the cut-off does not depend on the odds
    """

    mass: Floats
    height: Floats
    precision: Floats
    reports: Floats
    odds: Floats
    expected: Floats
    variance: Floats


@dataclass(frozen=True, eq=False)
class PlannedTests:
    """Strings, and the test of each; strings without any report that tests have no test."""

    rows: Rows
    tests: tuple[tuple[Int64s, HashTest], ...]

    @classmethod
    def of(
        cls, scores: ScoreTables, rows: Rows, first: Int64s, families: Iterable[int]
    ) -> PlannedTests:
        """Return the tests from each string's first level on; see `tests_from`."""
        return cls(rows, tuple(tests_from(scores, first, families)))

    def p_values(self) -> Floats:
        """float64[n]: p-values, 1 where no report tests."""
        p = np.ones(len(self.rows))
        for chosen, test in self.tests:
            p[chosen] = test.p_values(self.rows[chosen])
        return p

    def z(self, mass: Floats) -> Floats:
        """float64[n]: test statistics expected at these masses."""
        z = np.zeros(len(self.rows))
        for chosen, test in self.tests:
            z[chosen] = mass[chosen] * np.sqrt(test.precision)
        return z

    def passed(
        self,
        p_value: Floats,
        cutoff: Floats,
        odds: Floats,
        expected: Floats,
        variance: Floats,
    ) -> TableTests:
        """Return the strings that pass; see `TableTests` for the arguments, float64[n] each."""
        mass, height, precision, reports = np.zeros((4, len(self.rows)))
        passed = p_value <= cutoff
        for chosen, test in self.tests:
            chosen = chosen[passed[chosen]]
            mass[chosen] = test.masses(self.rows[chosen])
            height[chosen] = test.mass_at(cutoff[chosen])
            precision[chosen] = test.precision
            reports[chosen] = test.scores.tally.reports.sum(axis=2)[test.places].sum()
        before = odds, expected, variance
        tests = TableTests(self.rows, p_value, cutoff, mass, height, precision, reports, *before)
        return tests.take(passed)
