"""How likely a search by prefixes is to find a string that a given share of clients holds.

A search loses a string in one of four ways. It scores only the likeliest spellings, it keeps only
the likeliest prefixes of each length and the likeliest finished strings, and it accepts a finished
string only if its p-value is below a cut-off. A `PrefixSearch` records where these limits lay. It
then follows strings that did not take part in the search: from their probabilities by the
character model, their mass, and noise drawn at random, it computes the odds that the search would
have given to them, and compares these with the limits.

The limits of a search that was made are known (`discovery.prefixes`); those of a search that is
planned are predicted (`prefix_prediction`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from deniable.inference.power.cutoffs import cutoffs_at
from deniable.inference.power.half_found import half_found_by
from deniable.kernels.array_types import Floats, Int64s, Mask, Singles

EXPECTED_STRINGS = 100.0
"""Number of strings expected a priori; log-odds move by its logarithm."""
SAME_MASS = 0.92
"""Probability that a child has the mass of its parent."""
GRID_MASSES = 15
MAX_CHILDREN = 3_000_000
"""Prefixes scored per length: the likeliest by the character model."""
EARLY_WIDTHS = (20, 16, 10, 6, 4, 2, 1)
"""Factors by which the beam is wider at the first lengths, where little evidence has added up."""
SEARCH_WIDTH = 20_000
"""Prefixes that the last search keeps per length."""
UNLIKELY = -15.0
"""Log-odds below which the last search does not follow prefixes."""
MAX_EXPECTED_LOSS = 2.0
"""Largest expected number of strings among the prefixes of a length that are left out."""
MAX_FINISHED = 20_000
"""Finished strings kept per prefix length."""
MAX_CANDIDATES = 60_000
"""Finished strings that are tested."""
LEARNING_SHARE = 0.25
"""Share of the families of hash functions that help to choose."""
CONFIRMING_SHARE = 0.1
"""Share of α for the tests of strings that are nearly certain, before the last search."""
FOLLOWED = 1_000
"""Strings followed to compute a threshold, each with its own noise."""


def learning_families(families: int) -> int:
    """Return how many families help to choose; at least one is left to test."""
    return min(max(round(LEARNING_SHARE * families), 1), families - 1)


def beam_width(width: int, step: int) -> int:
    """Return how many prefixes a search of this width keeps at its n-th length, from 0."""
    return width * EARLY_WIDTHS[min(step, len(EARLY_WIDTHS) - 1)]


def least_odds(odds: Floats | Singles, count: float, unlikely: float) -> float:
    """Return the log-odds below which prefixes are too unlikely to be followed.

    It is less than `unlikely` if more than a negligible number of strings would be left out: where
    there is little evidence, all prefixes are unlikely.

    odds : float[n]; count : number of prefixes for which each stands

    Examples
    --------
    >>> odds = np.log([0.5, 0.002, 0.001])
    >>> [f"{np.exp(least_odds(odds, n, np.log(0.1))):.3f}" for n in (100, 1000, 10000)]
    ['0.100', '0.002', '0.001']
    """
    order = np.sort(odds)
    expected = count * np.cumsum(np.exp(np.minimum(order, 0), dtype=np.float64))
    most = int(np.searchsorted(expected, MAX_EXPECTED_LOSS))
    return min(float(order[most]), unlikely) if most < len(order) else unlikely


def grid_of_masses(standard_error: float) -> Floats:
    """float64[G]: masses from twice the standard error of all reports, each 1.5 times the last."""
    return np.asarray(2 * standard_error * 1.5 ** np.arange(GRID_MASSES))


def child_weights(weight: Floats | Singles) -> Floats:
    """float64[n, G]: weights over the masses of a child, from those of its parent."""
    lower = weight / np.maximum(np.arange(GRID_MASSES), 1)
    above = lower[:, ::-1].cumsum(axis=1)[:, ::-1] - lower
    return np.asarray(SAME_MASS * weight + (1 - SAME_MASS) * above, np.float64)


def skewed(normal: Floats, skewness: Floats | float) -> Floats:
    """Return standard normal variables, or quantiles, with this skewness (Cornish and Fisher)."""
    return np.asarray(normal + skewness * (normal**2 - 1) / 6)


def likelihood_ratio(
    weight: Floats, masses: Floats, sums: Floats, precision: Floats | float
) -> tuple[Floats, Floats]:
    """Return log-likelihood ratios of evidence averaged over masses, and the weights after it.

    weight : float64[n, G]; sums : float64[n], the evidence; precision : of the evidence
    """
    half = np.broadcast_to(np.asarray(precision) / 2, sums.shape)
    log = np.log(weight + 1e-30) + masses * sums[:, np.newaxis] - masses**2 * half[:, np.newaxis]
    top = log.max(axis=1, keepdims=True)
    share = np.exp(log - top)
    total = share.sum(axis=1)
    return top[:, 0] + np.log(total), share / total[:, np.newaxis]


@dataclass(frozen=True, eq=False)
class Spelled:
    """Strings to follow.

    log_p : float64[n, M], log-probability of each symbol, and of the end after the last one, by a
        character model that has not learnt from the string; 0 behind
    length : int64[n]
    """

    log_p: Floats
    length: Int64s

    def repeated(self, count: int) -> Spelled:
        """Return this many strings, each as often as the others, up to one."""
        each = np.arange(count) % len(self.length)
        return Spelled(self.log_p[each], self.length[each])


@dataclass(eq=False)
class SearchLimits:
    """What a search leaves out; minus infinity where it leaves out nothing.

    spelled : float64[M], least log-probability of the spellings that are scored, by last symbol
    open, finished : float64[L], least log-odds of the prefixes and finished strings that are kept
    candidate : least log-odds of the finished strings that are tested
    scored : number of prefixes scored
    """

    spelled: Floats
    open: Floats
    finished: Floats
    candidate: float = -np.inf
    scored: int = 0

    @classmethod
    def none(cls, max_length: int, levels: int) -> SearchLimits:
        """Return limits that leave out nothing."""
        return cls(
            spelled=np.full(max_length, -np.inf),
            open=np.full(levels, -np.inf),
            finished=np.full(levels, -np.inf),
        )


@dataclass(frozen=True, eq=False)
class PrefixSearch:
    """Where the limits of a search lay.

    lengths : int64[L], prefix lengths
    precision : float64[L], one over the variance of a mass that is estimated from each level
    learning : float64[L], the same of the families that help to choose after the end of a string
    dispersion : float64[L], variance of the evidence for an absent string, over the precision
    skewness : float64[L], of the evidence for an absent string
    masses, later_masses : float64[G], grids up to the end of a string, and after it
    limits : what the search left out
    height : λ of the cut-offs, see `cutoffs`
    """

    lengths: Int64s
    precision: Floats
    learning: Floats
    dispersion: Floats
    skewness: Floats
    masses: Floats
    later_masses: Floats
    limits: SearchLimits
    height: float

    def threshold(self, strings: Spelled) -> float:
        """Return the mass at which half of such strings are found."""
        strings = strings.repeated(FOLLOWED)
        noise = np.random.default_rng(0).standard_normal((3, len(self.lengths), FOLLOWED))
        if not self.precision.sum() > 0:
            return 1.0
        error = 1 / np.sqrt(self.precision.sum())
        return half_found_by(lambda mass: float(self.found(strings, mass, noise).mean()), error)

    def found(self, strings: Spelled, mass: float, noise: Floats) -> Mask:
        """bool[n]: which strings of this mass the search finds.

        noise : float64[3, L, n], standard normal: of the search, of choosing, and of testing
        """
        kept, odds, weight, end = self.finished(strings, mass, noise[0])
        odds, z = self.chosen(odds, weight, end, mass, noise[1])
        testing = self.precision - self.learning
        sums, _ = self.evidence(mass, testing, noise[2], end)
        cutoff = np.maximum(cutoffs_at(self.height, odds, z), 1e-300)
        later, variance = self.later(end), testing * self.dispersion
        spread = np.sqrt(variance @ later)
        third = (self.level_skewness(testing) * variance**1.5) @ later
        needed = spread * skewed(-ndtri(cutoff), third / np.maximum(spread, 1e-100) ** 3)
        return np.asarray(kept & (sums >= needed) & (spread > 0))

    def level_skewness(self, precision: Floats) -> Floats:
        """float64[L]: skewness of the evidence of some families; precision : float64[L], theirs."""
        share = precision / np.maximum(self.precision, 1e-300)
        return np.asarray(self.skewness / np.sqrt(np.maximum(share, 1e-300)))

    def chosen(
        self, odds: Floats, weight: Floats, end: Int64s, mass: float, noise: Floats
    ) -> tuple[Floats, Floats]:
        """Return log-odds of strings with the evidence after their ends, and expected z of tests.

        weight : float64[n, G], over masses; end : int64[n]; noise : float64[L, n]
        """
        sums, precision = self.evidence(mass, self.learning, noise, end)
        ratio, weight = likelihood_ratio(weight, self.later_masses, sums, precision)
        testing = (self.precision - self.learning) @ self.later(end)
        return odds + ratio, weight @ self.later_masses * np.sqrt(testing)

    def later(self, end: Int64s) -> Mask:
        """bool[L, n]: the levels after the end of each string."""
        return np.asarray(end < np.arange(len(self.lengths))[:, np.newaxis])

    def evidence(
        self, mass: float, precision: Floats, noise: Floats, end: Int64s
    ) -> tuple[Floats, Floats]:
        """Return the evidence after the ends of strings, float64[n], and its precision.

        precision : float64[L], of the families that count; noise : float64[L, n]
        """
        later, spread = self.later(end), np.sqrt(precision * self.dispersion)
        noise = skewed(noise, self.level_skewness(precision)[:, np.newaxis])
        each = mass * precision[:, np.newaxis] + spread[:, np.newaxis] * noise
        return (each * later).sum(axis=0), precision @ later

    def finished(
        self, strings: Spelled, mass: float, noise: Floats
    ) -> tuple[Mask, Floats, Floats, Int64s]:
        """Follow strings of this mass to their ends.

        Returns whether the search keeps each, its log-odds, its weights over masses, and the level
        at which it ends.
        """
        count, max_length = strings.log_p.shape
        odds = np.full(count, np.log(EXPECTED_STRINGS))
        weight = np.full((count, GRID_MASSES), 1 / GRID_MASSES)
        kept, end = np.ones(count, bool), np.full(count, -1)
        start = 0
        for level in np.unique(self.lengths, return_index=True)[1]:
            goal, going = int(self.lengths[level]), end < 0
            prior = odds if level == 0 else -np.logaddexp(0, -odds)
            spelled = np.minimum(odds, 0)
            for at in range(start, goal):
                spelled = spelled + strings.log_p[:, at]
                kept &= ~going | (at > strings.length) | (spelled >= self.limits.spelled[at])
            prior = prior + strings.log_p[:, start:goal].sum(axis=1)
            precision = self.precision[level]
            spread = np.sqrt(precision * self.dispersion[level])
            sums = mass * precision + spread * skewed(noise[level], self.skewness[level])
            ratio, after = likelihood_ratio(child_weights(weight), self.masses, sums, precision)
            odds = np.where(going, prior + ratio, odds)
            weight = np.where(going[:, np.newaxis], after, weight)
            ends = (strings.length < goal) | (goal == max_length)
            least = np.where(ends, self.limits.finished[level], self.limits.open[level])
            kept &= ~going | (odds >= least)
            end[going & ends] = level
            start = goal
        return kept & (odds >= self.limits.candidate), odds, weight, end
