"""The crowd as a mixture: known strings, each with its share, and everything else spread evenly.

Once heavy strings are known, most reports are explained. A number that no heavy string has in a
cohort is then sent with little more than the noise's own probability, and a report of it says much
more about a new string than a report of a heavy string's number. The score of the likelihood weighs
them so: a cohort's reports of number y by 1/P(y), P the mixture's probability.

Local hashing into g ≈ e^ε + 1 numbers has half its noise from other clients' true numbers; with
those explained, the standard deviation of a new string's mass falls by up to √2. With Zipf weights
it falls by 1.2, and strings found rise from 82 to 92 of 100. A Bloom filter gains little: its noise
is in its bits.

A mixture needs the tally alone, and its scores are tables like any others, summed over cells.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import csc_array

from deniable.discovery.shared.strings import Floats, Rows
from deniable.discovery.shared.tables import MassTables, ScoreTables
from deniable.discovery.shared.tally import Tally

ROUNDS = 30
CLOSE = 1e-3
"""Steps, in standard errors, below which a fit is done."""


@dataclass(frozen=True, eq=False)
class Mixture:
    """Strings of these masses, and an even background.

    rows : u8[n, M]; mass : float64[n]; place : int64[n, strata], where in the tally, flat, the
    numbers of each string stand; a stratum is a level, a family and a line
    """

    tables: MassTables
    rows: Rows
    place: NDArray[np.int64]
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
        return self.tables.tally

    @property
    def values(self) -> int:
        """Numbers, or bits."""
        return int(self.tally.sent.shape[3])

    @property
    def gain(self) -> float:
        return self.tally.q - self.tally.p

    @cached_property
    def probability(self) -> Floats:
        """float64[strata, V]: of each number (or bit) in a report."""
        tally = self.tally
        mean = tally.sent.sum() / max(int(tally.reports.sum()), 1) / self.values
        each = np.repeat(self.mass, self.place.shape[1])
        load = np.bincount(self.place.ravel(), each, minlength=tally.sent.size)
        uneven = load.reshape(-1, self.values) - self.mass.sum() / self.values
        low, high = sorted((tally.p, tally.q))
        return np.asarray(np.clip(mean + self.gain * uneven, low / 2, (1 + high) / 2))

    @cached_property
    def slope(self) -> Floats:
        """float64[strata, V]: of the log-likelihood, by each number's probability."""
        return self.tally.slope(self.probability)

    @cached_property
    def curvature(self) -> Floats:
        """float64[strata, V]: Fisher information about each number's probability."""
        return self.tally.curvature(self.probability)

    @cached_property
    def score(self) -> Floats:
        """float64[n]: the slope by each mass, which is taken from the background."""
        own = self.slope.ravel()[self.place].sum(axis=1)
        return np.asarray(self.gain * (own - self.slope.sum() / self.values))

    @cached_property
    def covariance(self) -> Floats:
        """float64[n, n], of the masses: the inverse of their Fisher information."""
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
        """Scores of strings that are not in the mixture: estimates of their mass, each report
        weighed as the likelihood weighs it."""
        shape = self.tally.sent.shape
        each = self.curvature.reshape(*shape[:2], -1).sum(axis=2)
        precision = self.gain**2 * each / self.values * (1 - 1 / self.values)
        entry = self.gain * (self.slope - self.slope.mean(axis=1, keepdims=True))
        by_cell = self.tally.by_cell(entry.reshape(shape))
        estimate = by_cell / np.maximum(precision, 1e-300)[:, :, np.newaxis]
        effective = np.rint(precision * self.tables.noise).astype(np.int64)
        return ScoreTables(self.tally, estimate.astype(np.float32), effective, self.tables.noise)

    def fitted(self) -> Mixture:
        """Return the mixture of the same strings with the largest likelihood."""
        mixture = self
        for _ in range(ROUNDS if len(self.rows) else 0):
            step = mixture.covariance @ mixture.score
            done = (np.abs(step) < CLOSE * np.sqrt(np.diag(mixture.covariance))).all()
            mixture = replace(mixture, mass=mixture.mass + step)
            if done:
                break
        return mixture
