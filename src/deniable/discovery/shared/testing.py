"""Which candidates are reported: exact p-values from the hash itself, and thresholds by odds.

If no client holds a string, no report depends on where the string's hashes fall, so in every table
that took no part in choosing it its cell is as good as drawn at random. The exact distribution of
its evidence is then the convolution of those tables' own histograms: collisions, heavy strings,
skewness and whatever the population looks like are all in it. Nothing is assumed about the noise.

A false string may share its first characters with true ones, so only levels count that hold the
whole string; see `prefixes` for which reports choose and which test.

Thresholds: candidate i is accepted if its p-value is at most w_i, with Σ w_i = α over *all*
candidates, and w_i a function of the data that chose it. The expected number of false strings is
then at most α. To find most, w_i = Φ(−t_i), t_i = (λ − log P_i)/z_i + z_i/2, where P_i is its
probability of being present and z_i its expected test statistic: the likelihood-ratio rule.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from deniable.discovery.shared.evidence import entries
from deniable.discovery.shared.tables import MassTables, Rows

STEP = 0.004
"""Lattice on which evidence is added up, in standard deviations; both sides of a test use it."""
ROUND_OFF = 1e-13
LEAST_Z, MOST_Z = 0.3, 7.0


@dataclass(frozen=True, eq=False)
class Accepted:
    """Strings that passed, their p-values, and what these had to stay below.

    rows : u8[n, M]; p_value, allowed : float64[n]
    """

    rows: Rows
    p_value: NDArray[np.float64]
    allowed: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.rows)

    @classmethod
    def joined(cls, parts: Iterable[Accepted]) -> Accepted:
        """All of them in one."""
        rows, p_value, allowed = zip(*((a.rows, a.p_value, a.allowed) for a in parts), strict=True)
        return cls(np.concatenate(rows), np.concatenate(p_value), np.concatenate(allowed))


@dataclass(frozen=True, eq=False)
class HashTest:
    """The test by these levels and families of residual tables: one for all strings that were
    followed up to one level."""

    tables: MassTables
    residual: NDArray[np.float32]
    levels: tuple[int, ...]
    families: tuple[int, ...]

    @cached_property
    def precision(self) -> float:
        count = self.tables.count[np.ix_(self.levels, self.families)]
        return float(count.sum() / self.tables.noise)

    @cached_property
    def places(self) -> list[tuple[int, int]]:
        return [(level, family) for level in self.levels for family in self.families]

    def rounded(self, entry: NDArray[np.float32]) -> NDArray[np.int64]:
        """Entries on the lattice."""
        return np.asarray(np.rint(entry / (np.sqrt(self.precision) * STEP)), np.int64)

    @cached_property
    def lattice(self) -> NDArray[np.int64]:
        """int64[places, K]."""
        entry = entries(self.tables, self.residual)
        return np.stack([self.rounded(entry[place]) for place in self.places])

    @cached_property
    def size(self) -> int:
        """Length of the transforms: no sum can wrap around."""
        limit = np.abs(self.lattice).max(axis=1).sum() + 8 * len(self.places)
        return int(2 ** np.ceil(np.log2(2 * limit + 2)))

    @cached_property
    def transforms(self) -> Any:
        """Of each table's histogram; see `compute.screening`."""
        return self.tables.loops.transforms(self.lattice, self.size)

    @cached_property
    def tail(self) -> NDArray[np.float64]:
        """P(sum ≥ i − size/2) at i, for a string that no client holds."""
        return self._tail(self.tables.loops.convolved(self.transforms, self.size))

    def evidence_at(self, p: float) -> float:
        """The least sum of entries whose p-value is at most this."""
        first = int(np.searchsorted(-self.tail, -p))
        return float((first - self.size // 2) * np.sqrt(self.precision) * STEP)

    def _tail(self, mass: NDArray[np.float64]) -> NDArray[np.float64]:
        mass = np.roll(mass, self.size // 2)
        return np.asarray(np.clip(mass[::-1].cumsum()[::-1], 0.0, 1.0) + ROUND_OFF)

    def cells(self, rows: Rows) -> NDArray[np.int64]:
        """int64[places, n]: the strings' cells."""
        by_level = [self.tables.positions(level, rows) for level in self.levels]
        return np.concatenate([p[list(self.families)] for p in by_level]).astype(np.int64)

    def p_values(self, rows: Rows) -> NDArray[np.float64]:
        """float64[n], for strings whose mass was not taken out of the tables."""
        sums = np.take_along_axis(self.lattice, self.cells(rows), axis=1).sum(axis=0)
        return np.asarray(self.tail[sums + self.size // 2])

    def p_value_put_back(self, row: Rows, mass: float) -> float:
        """For a string whose mass was taken out: it is put back, and the null distribution is that
        of the tables with it."""
        cell = self.cells(row[np.newaxis])[:, 0]
        was = self.lattice[np.arange(len(cell)), cell]
        now = self._with(cell, mass)
        moved = was, now, 1 / self.tables.cells
        sums = self.tables.loops.convolved(self.transforms, self.size, moved)
        return float(self._tail(sums)[now.sum() + self.size // 2])

    def _with(self, cell: NDArray[np.int64], mass: float) -> NDArray[np.int64]:
        """int64[places]: the lattice values of these cells with the mass in them."""
        value = np.empty(len(cell), np.int64)
        lone = np.zeros(1, np.float32)
        for i, (level, family) in enumerate(self.places):
            count = self.tables.count[level, family]
            limit = 4.0 * np.sqrt(self.tables.noise / max(int(count), 1))
            lone[0] = np.clip(self.residual[level, family, cell[i]] + mass, -limit, limit)
            value[i] = self.rounded(lone * np.float32(count / self.tables.noise))[0]
        return value


def allowances(
    odds: NDArray[np.float64], z: NDArray[np.float64], alpha: float
) -> NDArray[np.float64]:
    """float64[n]: the largest p-value at which each candidate is accepted; they sum to at most α.

    odds : log-odds of being present; z : expected test statistic if it is
    """
    if not len(odds):
        return np.zeros(0)
    log_p = -np.logaddexp(0, -odds)
    z = np.clip(z, LEAST_Z, MOST_Z)

    def at(height: float) -> NDArray[np.float64]:
        return np.asarray(ndtr(-((height - log_p) / z + z / 2)))

    low, high = -200.0, 400.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if at(middle).sum() > alpha else (low, middle)
    return at(high)
