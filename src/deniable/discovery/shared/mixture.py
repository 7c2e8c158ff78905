"""The population as a mixture: known strings, each with its share, and an even background.

Once common strings are known, most reports are explained. A number that no common string has in a
cohort is then sent with little more than the probability of the noise, and a report of it is much
stronger evidence for a new string than a report of a common string's number. The score of the
likelihood weights reports accordingly: a report of number y in a cohort counts by 1/P(y), where P
is the probability under the mixture.

Local hashing into g ≈ e^ε + 1 numbers has half of its noise from the true numbers of other clients.
With those explained, the standard deviation of a new string's mass falls by up to √2. With Zipf
weights it falls by 1.2, and the discovered strings rise from 82 to 92 of 100. A Bloom filter gains
little: its noise is in its bits.

A mixture needs only the tally, and its scores are summed over cells like any other tables.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import csc_array

from deniable.discovery.shared.strings import Rows
from deniable.discovery.shared.tables import MassTables, ScoreTables
from deniable.discovery.shared.tally import Tally
from deniable.kernels.array_types import Floats, Int64s

MAX_STEPS = 30
STEP_TOLERANCE = 1e-3
"""Steps, in standard errors, below which the fit has converged."""

MIN_EFFECTIVE = 0.1
"""Effective reports per report below which another unit of noise is chosen."""
COUNTED_PER_REPORT = 100
"""Effective reports per report in that unit, such that rounding them loses nothing."""


@dataclass(frozen=True, eq=False)
class Mixture:
    """Strings of these masses, and an even background.

    rows : u8[n, M]; mass : float64[n]
    place : int64[n, strata], where the numbers of each string stand in the flat tally; a stratum
        is a prefix length, a family and a line
    """

    tables: MassTables
    rows: Rows
    place: Int64s
    mass: Floats

    @classmethod
    def of(cls, tables: MassTables, rows: Rows, mass: Floats) -> Mixture:
        """Return the mixture of strings with these masses."""
        tally = tables.tally
        levels, families, lines, values = tally.sent.shape
        place = np.empty((len(rows), levels, families, lines), np.int64)
        for level in range(levels):
            place[:, level] = tally.numbers(tally.positions(level, rows).T)
        strata = levels * families * lines
        place = place.reshape(len(rows), strata) + np.arange(strata) * values
        return cls(tables, rows, place, mass)

    @property
    def tally(self) -> Tally:
        """The counts that the mixture is fitted to."""
        return self.tables.tally

    @property
    def values(self) -> int:
        """How many numbers, or bits, a report can have."""
        return int(self.tally.sent.shape[3])

    @property
    def noise(self) -> tuple[float, float]:
        """Probabilities p* and q* of a number, or bit, that is not the client's, and that is."""
        noise = self.tally.mechanism.noise
        return float(noise.p_star), float(noise.q_star)

    @property
    def gain(self) -> float:
        """Probability of the client's own number, less that of another."""
        p, q = self.noise
        return q - p

    @cached_property
    def probability(self) -> Floats:
        """float64[strata, V]: probability of each number (or bit) in a report."""
        tally = self.tally
        mean = tally.sent.sum() / max(int(tally.reports.sum()), 1) / self.values
        each = np.repeat(self.mass, self.place.shape[1])
        load = np.bincount(self.place.ravel(), each, minlength=tally.sent.size)
        uneven = load.reshape(-1, self.values) - self.mass.sum() / self.values
        low, high = sorted(self.noise)
        return np.asarray(np.clip(mean + self.gain * uneven, low / 2, (1 + high) / 2))

    @cached_property
    def slope(self) -> Floats:
        """float64[strata, V]: slope of the log-likelihood by each number's probability."""
        return self.tally.slope(self.probability)

    @cached_property
    def curvature(self) -> Floats:
        """float64[strata, V]: Fisher information about each number's probability."""
        return self.tally.curvature(self.probability)

    @cached_property
    def score(self) -> Floats:
        """float64[n]: slope of the log-likelihood by each mass, which the background loses."""
        own = self.slope.ravel()[self.place].sum(axis=1)
        return np.asarray(self.gain * (own - self.slope.sum() / self.values))

    @cached_property
    def covariance(self) -> Floats:
        """float64[n, n]: covariance of the masses, the inverse of their Fisher information."""
        count, strata = self.place.shape
        weight = self.curvature.ravel()
        ends = np.arange(0, self.place.size + 1, strata)
        shape = (weight.size, count)
        design = csc_array((np.ones(self.place.size), self.place.ravel(), ends), shape=shape)
        weighted = csc_array((weight[self.place.ravel()], self.place.ravel(), ends), shape=shape)
        own = weight[self.place].sum(axis=1)
        away = np.add.outer(own, own) / self.values - weight.sum() / self.values**2
        information = self.gain**2 * ((design.T @ weighted).toarray() - away)
        return np.asarray(cho_solve(cho_factor(information), np.eye(count)))

    @cached_property
    def scores(self) -> ScoreTables:
        """Scores of strings that are not in the mixture, reports weighted by the likelihood."""
        shape = self.tally.sent.shape
        each = self.curvature.reshape(*shape[:2], -1).sum(axis=2)
        precision = self.gain**2 * each / self.values * (1 - 1 / self.values)
        entry = self.gain * (self.slope - self.slope.mean(axis=1, keepdims=True))
        by_cell = self.tally.by_cell(entry.reshape(shape))
        estimate = by_cell / np.maximum(precision, 1e-300)[:, :, np.newaxis]
        noise, reports = self.tables.noise, int(self.tally.reports.sum())
        if noise * precision.sum() < MIN_EFFECTIVE * reports:
            # At a large ε hardly any variance is noise: in units of it, most counts would be 0.
            noise = COUNTED_PER_REPORT * reports / precision.sum()
        effective = np.rint(precision * noise).astype(np.int64)
        return ScoreTables(self.tally, estimate.astype(np.float32), effective, noise)

    def fitted(self) -> Mixture:
        """Return the mixture of the same strings with the largest likelihood, by Fisher scoring."""
        mixture = self
        for _ in range(MAX_STEPS if len(self.rows) else 0):
            step = mixture.covariance @ mixture.score
            standard_error = np.sqrt(np.diag(mixture.covariance))
            mixture = replace(mixture, mass=mixture.mass + step)
            if (np.abs(step) < STEP_TOLERANCE * standard_error).all():
                break
        return mixture
