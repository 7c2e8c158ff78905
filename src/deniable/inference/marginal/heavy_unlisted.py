"""Tests and intervals beside heavy unlisted strings, which can look like candidates.

With many strata, an unlisted string shares only a few of the bits of a given candidate, and the
scatter of all bits tells how far it can move the candidate's estimate. But an unlisted string that
stands out from everything else, say 30% of the clients, looks like the most similar of 1,000
candidates with any number of strata. One thing is known nevertheless: the bits of an absent
candidate are random.

*Tests* rank the residuals of each stratum, with the candidate itself taken out of the fit, and turn
ranks into scores, so that one heavy string counts no more than one bit. They compare the
sum of the scores of the candidate's bits with that of random bits. The detection threshold is that
of this test (`power.random_bits`).

*Intervals* use the distribution of the mean residual of random bits in place of the normal one.
They do so up to 63 strata: there a heavy unlisted string shares no bit with most candidates, and
with the others so many of their few bits that it moves them by much more than a standard error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from deniable.formatting import Z95
from deniable.inference.distributions import pearson3_quantile
from deniable.inference.marginal.design import BloomDesign
from deniable.inference.marginal.regression import BitTable, RegressionFit, fit_columns
from deniable.inference.marginal.tails import IntegerSum, fast_length
from deniable.inference.power.random_bits import weight_half_found
from deniable.kernels.array_types import Floats, Indices, Int32s, Int64s, Mask
from deniable.results.marginal import Measured

SHAPED_BELOW = 64
"""Number of strata below which intervals have the shape of the distribution of random bits."""
LONGER = 1.05
"""Intervals that would be longer by less than this factor keep the shape of the normal one."""
STEPS = 16
"""Scores are rounded to multiples of 1 / STEPS."""
GRID = 64
"""Residuals are rounded to multiples of the standard deviation of their sum / GRID."""
ENTRY_SHARE = 0.05
"""Share of alpha of each round in which candidates are taken out before others are tested."""
MAX_ROUNDS = 10
"""Maximum number of these rounds."""
TIED = 1e-3
"""Residuals that differ by less than this many ones are equal."""
HEAVY_SKEWNESS = 1.0
"""Skewness of residuals from which on an unlisted string is heavy.

With 64 strata, h = 2, k = 128 and 100,000 reports, one of 10% has a skewness of 0.9.
"""
MIN_VARIANCE = 0.5
"""Part of the variance of scores that remains if equal residuals share theirs, at least."""
CANDIDATES_PER_BLOCK = 8192
"""Candidates whose scores are added up together."""


@dataclass(frozen=True, eq=False)
class RandomBits:
    """What random bits say about each candidate.

    Parameters
    ----------
    log_p_value : float64 array of shape (m,)
        Logarithm of the probability that random bits look as much like a string as its own.
    below, above : float64 arrays of shape (m,)
        Number of standard errors from an estimate to each end of its 95% interval.
    threshold : callable
        Returns the frequency at which half of the candidates have a p-value of at most its
        argument; infinity if there is none.
    """

    log_p_value: Floats
    below: Floats
    above: Floats
    threshold: Callable[[float], float]

    def take(self, candidates: Indices) -> RandomBits:
        """Return the results of some candidates, in the order given."""
        return replace(
            self,
            log_p_value=self.log_p_value[candidates],
            below=self.below[candidates],
            above=self.above[candidates],
        )

    def after_rounds(self, log_p_value: Floats, share: float) -> RandomBits:
        """Return the results with p-values of `select_by_ranks`.

        share : share of alpha of the last round
        """
        return replace(
            self, log_p_value=log_p_value, threshold=lambda cutoff: self.threshold(share * cutoff)
        )

    def sum_of(self, total: float, error: Floats) -> Measured:
        """Return a sum of estimates, whose errors may be due to the same unlisted string.

        error : float64[m], standard errors, 0 for candidates that are not in the sum
        """
        low, high = total - float(self.below @ error), total + float(self.above @ error)
        return Measured(total, float(error.sum()), low, high)


@dataclass(frozen=True, eq=False)
class Ranked:
    """Residuals of each stratum in ascending order, and the scores of their ranks.

    score, residual : [S, k]; one : float64[S], by how much a residual rises with each one

    Equal residuals share the mean of their scores: if few ones are expected per bit, most are.
    """

    score: Int64s
    residual: Floats
    one: Floats

    def take(self, strata: Mask) -> Ranked:
        """Return some of the strata."""
        return Ranked(self.score[strata], self.residual[strata], self.one[strata])

    @cached_property
    def sums(self) -> Int64s:
        """Sums of the scores below each rank, int64[S, k + 1]."""
        return np.pad(self.score.cumsum(axis=1), ((0, 0), (1, 0)))

    def mean_score(self, below: Int64s, equal: Int64s) -> Int64s:
        """Return the mean scores of `equal` ranks above `below` ones, int64[S, n]."""
        row = np.arange(len(self.score))[:, None]
        return self._mean(row, below, below + equal)

    def score_at_rank(self) -> Int64s:
        """Return the score that each rank gets, int64[S, k]."""
        return self.score_of(np.arange(len(self.score))[:, None], self.residual)

    def score_at_random(self) -> Int64s:
        """Return the scores of which random bits get one, int64[S, k].

        If nearly all residuals of a stratum are equal, a fit without a candidate may have fewer
        that are. So equal residuals then keep scores of their own, which scatter more.
        """
        tied = self.score_at_rank()
        even = tied.var(axis=1) < MIN_VARIANCE * self.score.var(axis=1)
        return np.where(even[:, None], self.score, tied)

    def score_of(self, row: Indices, residual: Floats) -> Int64s:
        """Return the scores of residuals[R, n] in the given strata, intp[R, 1]."""
        tied, (strata, bits) = TIED * self.one[row], self.residual.shape
        # All strata in one ascending array: each is moved beyond the one before.
        step = float(self.residual.max(initial=0.0) - self.residual.min(initial=0.0)) + 1.0
        ends = (self.residual + step * np.arange(strata)[:, None]).ravel()
        lowest, highest = self.residual[row, 0] - 2 * tied, self.residual[row, -1] + 2 * tied
        place = np.clip(residual, lowest, highest) + step * row
        below = np.searchsorted(ends, place - tied) - bits * row
        upto = np.searchsorted(ends, place + tied, side="right") - bits * row
        return self._mean(row, below, upto)

    def _mean(self, row: Indices, below: Int64s, upto: Int64s) -> Int64s:
        """Return the mean score of the ranks from `below` to `upto`, or of the nearest rank."""
        below = np.minimum(below, self.score.shape[1] - 1)
        upto = np.maximum(upto, below + 1)
        return np.rint((self.sums[row, upto] - self.sums[row, below]) / (upto - below)).astype(
            np.int64
        )


def no_threshold(cutoff: float) -> float:
    """Return the threshold of candidates without evidence."""
    return np.inf


def has_heavy_unlisted(table: BitTable, fit: RegressionFit) -> bool:
    """Return whether residuals are more skewed than their noise, as a heavy unlisted string does.

    It raises a few bits of every stratum far above the others. Among many candidates, one that
    shares several of them would look frequent, with any number of strata. Slots of prefixes are
    skewed in any case, because many strings share a short prefix; they keep the usual test.
    """
    if not table.background or np.any(table.slot != table.slot[:1]) or fit.freedom <= 0:
        return False
    cubes = fit.weight**1.5 * (fit.residual**3 - fit.third)
    return bool(cubes.sum() > HEAVY_SKEWNESS * np.count_nonzero(fit.weight))


def select_by_ranks(
    table: BitTable, design: BloomDesign, alpha: float
) -> tuple[Indices, RegressionFit, RandomBits]:
    """Return candidates that are present by this test, their joint fit, and the tests.

    Each round takes out what it detects, so that lighter strings have higher ranks in the next. A
    selection of the candidates that fit best would explain an unlisted string by several false
    ones that share its bits.

    Until a false candidate is detected, what is taken out does not depend on its bits, so its
    tests remain valid. Afterwards they do not: it may have replaced a string that shares bits with
    it. So rounds share alpha, and what a round has detected keeps its p-value. The last round gets
    what the others have left.
    """
    found, log_p_value = np.zeros(design.candidates, bool), np.zeros(design.candidates)
    entry, share = np.log(ENTRY_SHARE * alpha / max(design.candidates, 1)), 1.0
    for each in range(MAX_ROUNDS + 1):
        active = np.flatnonzero(found)
        fit = fit_columns(table, design.indicator(active))
        tests = compare_with_random_bits(table, design, active, fit)
        entering = ~found & (tests.log_p_value <= entry)
        if each == MAX_ROUNDS or not entering.any():
            break
        log_p_value[entering] = tests.log_p_value[entering] - np.log(ENTRY_SHARE)
        found |= entering
        share -= ENTRY_SHARE
    last = np.minimum(tests.log_p_value - np.log(share), 0.0)
    return active, fit, tests.after_rounds(np.where(found, log_p_value, last), share)


def compare_with_random_bits(
    table: BitTable, design: BloomDesign, active: Indices, fit: RegressionFit
) -> RandomBits:
    """Compare all candidates with random bits.

    active : the candidates that are fitted jointly, in the order of the fit
    """
    score = _scores(table, fit)
    order = fit.residual.argsort(axis=1, kind="stable")
    ranked = Ranked(score, np.take_along_axis(fit.residual, order, axis=1), _one(table))
    total = _totals(ranked, order, design, active, fit)
    log_p_value, most, threshold = np.zeros(design.candidates), 0, no_threshold
    for same, strata in _patterns(table, design):
        values, which = np.unique(total[same], return_inverse=True)
        some = ranked.take(strata)
        random = _sum_of_random_bits(some.score_at_random(), design.hashes)
        log_p_value[same] = random.log_tail(np.minimum(values, random.most))[which.ravel()]
        if same.sum() > most:
            # The threshold is that of the candidates with the most usual strata.
            most = int(same.sum())
            threshold = partial(_threshold, some, design.hashes, random)
    below, above = reach_of_intervals(table, design, fit, 1.0)
    return RandomBits(log_p_value, below, above, threshold)


def reach_of_intervals(
    table: BitTable, design: BloomDesign, fit: RegressionFit, longer: float = LONGER
) -> tuple[Floats, Floats]:
    """Return how far intervals reach below and above estimates, in standard errors, float64[m].

    longer : factor below which a longer interval keeps the length of the normal one
    """
    below, above = np.full(design.candidates, Z95), np.full(design.candidates, Z95)
    if not table.background:
        return below, above
    weighted = fit.residual * fit.weight.mean(axis=1, keepdims=True)
    for same, strata in _patterns(table, design):
        if strata.sum() < SHAPED_BELOW:
            ends = _reach(weighted[strata], design.hashes)
            if max(ends) >= longer * Z95:
                below[same], above[same] = ends
    return below, above


def _patterns(table: BitTable, design: BloomDesign) -> Iterator[tuple[Mask, Mask]]:
    """Yield candidates with evidence in the same strata, bool[m], and these strata, bool[S]."""
    patterns, pattern = table.live[:, None], np.zeros(design.candidates, np.intp)
    if design.partial:
        informative = design.informative & table.live[:, None]
        patterns, pattern = np.unique(informative, axis=1, return_inverse=True)
    for number, strata in enumerate(patterns.T):
        if strata.any():
            yield pattern.ravel() == number, strata


def _scores(table: BitTable, fit: RegressionFit) -> Int64s:
    """Return the score of each rank of each stratum, int64[S, k], weighted by its precision.

    Scores are quantiles of a distribution with the skewness of the noise. If few ones are expected
    per bit, several are more evidence than their normal quantile says.
    """
    bits = table.frequency.shape[1]
    weight = np.abs(table.gain) * np.sqrt(table.total)
    weight = weight / max(float(weight.max(initial=0.0)), 1e-300)
    cubes = (fit.third * fit.weight**1.5)[table.live]
    skewness = float(np.median(cubes)) if cubes.size else 0.0
    quantile = pearson3_quantile(
        (np.arange(bits, 0, -1) - 0.5) / bits, min(max(skewness, -2.0), 2.0)
    )
    return np.asarray(np.rint(STEPS * weight[:, None] * quantile).astype(np.int64))


def _one(table: BitTable) -> Floats:
    """Return by how much the frequency of a bit rises with each one, float64[S]."""
    return np.asarray(1.0 / (np.maximum(table.total, 1.0) * np.abs(table.gain)))


def _totals(
    ranked: Ranked, order: Indices, design: BloomDesign, active: Indices, fit: RegressionFit
) -> Int64s:
    """Return the sums of the scores of all candidates' bits, int64[m]."""
    by_bit = np.zeros_like(ranked.score)
    np.put_along_axis(by_bit, order, ranked.score_at_rank(), axis=1)
    total = np.zeros(design.candidates, np.int64)
    for start in range(0, design.candidates, CANDIDATES_PER_BLOCK):
        block = slice(start, start + CANDIDATES_PER_BLOCK)
        total[block] = _sums(by_bit, design.positions[:, block])
    columns, tied = design.indicator(active), TIED * ranked.one[:, None, None]
    for column in np.flatnonzero(fit.estimable):
        # The residuals of a fit without this candidate.
        towards = fit.covariance[:, column] / fit.covariance[column, column]
        change = np.asarray(columns @ towards).reshape(fit.weight.shape)
        change -= ((fit.weight * change).sum(axis=1) * fit.inverse_mass)[:, None]
        without = fit.residual + fit.coefficient[column] * change
        positions = design.positions[:, active[column]]
        own = np.take_along_axis(without, positions, axis=1)[:, :, None]
        below = (without[:, None] < own - tied).sum(axis=2)
        equal = (without[:, None] <= own + tied).sum(axis=2) - below
        scores = ranked.mean_score(below, equal)
        total[active[column]] = scores[positions[:, 0] >= 0].sum()
    return total


def _sums(by_bit: Int64s, positions: Int32s) -> Int64s:
    """Return the sums of the scores, int64[S, k], of candidates' bits, int64[m]."""
    strata = np.arange(by_bit.shape[0])[:, None, None]
    own = np.where(positions >= 0, by_bit[strata, positions], 0)
    return np.asarray(own.sum(axis=(0, 2)))


def _threshold(ranked: Ranked, hashes: int, random: IntegerSum, cutoff: float) -> float:
    """Return the weight at which half of the strings have a p-value of at most `cutoff`."""
    low, high = random.least, random.most + 1
    while low < high:
        middle = (low + high) // 2
        enough = bool(random.log_tail(np.array([middle])) <= np.log(cutoff))
        low, high = (low, middle) if enough else (middle + 1, high)
    if low > random.most:
        return np.inf
    strata, bits = ranked.residual.shape
    row = np.repeat(np.arange(strata), hashes)[:, None]

    def scores(rank: Int64s, added: Floats) -> Int64s:
        return ranked.score_of(row, ranked.residual[row, rank] + added * ranked.one[row])

    expected = 1.0 / ranked.one[row.ravel()]
    # Without noise a bit would have this standard error, so a string needs more.
    error = float(1.0 / expected.sum())
    return weight_half_found(scores, expected, bits, low, error)


def _sum_of_random_bits(values: Int64s, hashes: int) -> IntegerSum:
    """Return the distribution of the sum of the values, int64[S, k], of `hashes` bits of each row.

    A string that is hashed twice to the same bit counts it twice, here and in `_sums`.
    """
    rows = [np.unique(row, return_counts=True) for row in values]
    draws = [(value, count / values.shape[1], hashes) for value, count in rows]
    size = fast_length(hashes * int(np.ptp(values, axis=1).sum()) + 1)
    deviation = float(np.sqrt(hashes * values.var(axis=1).sum()))
    return IntegerSum.of(draws, size, max(deviation, 1.0))


def _reach(residual: Floats, hashes: int) -> tuple[float, float]:
    """Return how far an interval reaches below and above an estimate, in standard errors.

    The error of the estimate is about the sum of the residuals of random bits. The interval is the
    shortest that contains it in 95% of cases, but not shorter than with a normal distribution.

    residual : float64[S, k], weighted so that they add up to the error
    """
    deviation = float(np.sqrt(hashes * residual.var(axis=1).sum()))
    if not deviation > 0:
        return Z95, Z95
    steps = np.rint(residual * (GRID / deviation)).astype(np.int64)
    error = _sum_of_random_bits(steps, hashes)
    below = np.append(0.0, np.cumsum(np.maximum(np.fft.irfft(error.transform, error.size), 0.0)))
    below[-1] = 1.0
    end = np.searchsorted(below, below + 0.95)
    length = np.where(end < below.size, end - np.arange(below.size), below.size)
    start = int(length.argmin())
    low, high = error.least + start, error.least + int(end[start]) - 1
    # An error upwards moves the interval downwards.
    return max(Z95, high / GRID), max(Z95, -low / GRID)
