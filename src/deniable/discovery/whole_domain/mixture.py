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

from deniable.discovery.shared.tables import MassTables, Rows
from deniable.discovery.shared.tally import Tally

ROUNDS = 30
CLOSE = 1e-3
"""Steps, in standard errors, below which a fit is done."""


@dataclass(frozen=True, eq=False)
class Mixture:
    """Of one level's reports: strings of these masses, and an even background.

    tally, tables : of one level, the same reports; rows : u8[n, M]; mass : float64[n]
    place : int64[n, strata], where in the tally, flat, the numbers of each string stand; a stratum
    is a family and a line
    """

    tally: Tally
    tables: MassTables
    rows: Rows
    place: NDArray[np.int64]
    mass: NDArray[np.float64]

    @property
    def values(self) -> int:
        """Numbers, or bits."""
        return int(self.tally.sent.shape[3])

    @property
    def gain(self) -> float:
        return self.tally.q - self.tally.p

    @cached_property
    def probability(self) -> NDArray[np.float64]:
        """float64[strata, V]: of each number (or bit) in a report."""
        tally = self.tally
        mean = tally.sent.sum() / max(int(tally.reports.sum()), 1) / self.values
        each = np.repeat(self.mass, self.place.shape[1])
        load = np.bincount(self.place.ravel(), each, minlength=tally.sent.size)
        uneven = load.reshape(-1, self.values) - self.mass.sum() / self.values
        low, high = sorted((tally.p, tally.q))
        return np.asarray(np.clip(mean + self.gain * uneven, low / 2, (1 + high) / 2))

    @cached_property
    def slope(self) -> NDArray[np.float64]:
        """float64[strata, V]: of the log-likelihood, by each number's probability."""
        sent, p = self.tally.sent.reshape(-1, self.values), self.probability
        if self.tally.exclusive:
            return np.asarray(sent / p)
        return np.asarray(sent / p - (self.tally.reports.reshape(-1, 1) - sent) / (1 - p))

    @cached_property
    def curvature(self) -> NDArray[np.float64]:
        """float64[strata, V]: Fisher information about each number's probability."""
        p, reports = self.probability, self.tally.reports.reshape(-1, 1)
        return np.asarray(reports / p if self.tally.exclusive else reports / (p * (1 - p)))

    @cached_property
    def score(self) -> NDArray[np.float64]:
        """float64[n]: the slope by each mass, which is taken from the background."""
        own = self.slope.ravel()[self.place].sum(axis=1)
        return np.asarray(self.gain * (own - self.slope.sum() / self.values))

    @cached_property
    def covariance(self) -> NDArray[np.float64]:
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
    def scores(self) -> MassTables:
        """Tables in which a string that is not in the mixture has its evidence: estimates of its
        mass, each report weighed as the likelihood weighs it, and as many reports as would tell as
        much without the weights."""
        shape = self.tally.sent.shape
        each = self.curvature.reshape(*shape[:2], -1).sum(axis=2)
        precision = self.gain**2 * each / self.values * (1 - 1 / self.values)
        entry = self.gain * (self.slope - self.slope.mean(axis=1, keepdims=True))
        by_cell = self.tally.by_cell(entry.reshape(shape))
        mass = by_cell / np.maximum(precision, 1e-300)[:, :, np.newaxis]
        count = np.rint(precision * self.tables.noise).astype(np.int64)
        return replace(self.tables, mass=mass.astype(np.float32), count=count)


def mixture_of(tally: Tally, tables: MassTables, rows: Rows, mass: NDArray[np.float64]) -> Mixture:
    """The mixture of strings with these masses."""
    levels, families, lines, values = tally.sent.shape
    place = np.empty((len(rows), levels, families, lines), np.int64)
    for level in range(levels):
        cells = tables.positions(level, rows).T
        for line in range(lines):
            place[:, level, :, line] = tally.number(cells, line)
    strata = levels * families * lines
    place = place.reshape(len(rows), strata) + np.arange(strata) * values
    return Mixture(tally, tables, rows, place, mass)


def fitted(tally: Tally, tables: MassTables, rows: Rows, start: NDArray[np.float64]) -> Mixture:
    """The mixture of these strings with the largest likelihood, from masses to start with."""
    mixture = mixture_of(tally, tables, rows, start)
    for _ in range(ROUNDS if len(rows) else 0):
        step = mixture.covariance @ mixture.score
        done = (np.abs(step) < CLOSE * np.sqrt(np.diag(mixture.covariance))).all()
        mixture = replace(mixture, mass=mixture.mass + step)
        if done:
            break
    return mixture
