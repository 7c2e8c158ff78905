"""Exact p-values of strings in small crowds, from the randomness of the hash functions.

A string that no client holds is hashed to bits that are independent of the reports, whatever the
clients hold. So, given the reports, the count at its bits is a sum of independent draws, one per
stratum and hash, from the counts of all k bits of the stratum. This distribution is known exactly:
the p-value is valid for a single report, for few cohorts, for skewed noise, and if unlisted strings
are heavy.

Common strings make the counts scatter. So there are rounds, which share alpha: what one detects is
subtracted from the counts before the next. Until a false string is detected, what is subtracted
does not depend on its hash functions, so the tests of every round are exact. The p-value is the
smallest one of all rounds, each divided by the share of alpha of its round.
"""

import numpy as np
from scipy import fft

from deniable.inference.marginal.bit_counts import BitCounts
from deniable.inference.marginal.design import BloomDesign
from deniable.inference.marginal.regression import BitTable, fit_columns
from deniable.kernels.array_types import Floats, Int64s, Mask

SMALL_CROWD = 1_000
"""Number of reports up to which p-values come from the hash functions."""
ROUND_SHARES = (0.05, 0.05, 0.9)
"""Share of alpha of each round; common strings pass any test."""
SUBTRACTION_STEPS = 4
"""Counts from which strings were subtracted are rounded to one part in this many."""
WEIGHT_STEPS = 16
"""Slots get integer weights up to this, so that sums of counts stay integers."""
LEAST_SUMMED = 1e-10
"""Tails below this, which a Fourier transform does not resolve, are bounded by Chernoff."""
SLOPES = np.geomspace(1e-4, 50.0, 150)
"""Parameters of the Chernoff bound, among which the best is chosen."""


def log_exact_p_values(counts: BitCounts, design: BloomDesign, alpha: float) -> Floats:
    """Return the logarithm of each candidate's p-value, float64[m]; alpha for all together."""
    found, log_p = np.zeros(design.candidates, bool), np.zeros(design.candidates)
    subtracted = -1
    for share in ROUND_SHARES:
        if found.sum() > subtracted:
            subtracted = int(found.sum())
            now = log_hash_tail(remaining_counts(counts, design, found), counts.total, design)
        log_p = np.where(found, log_p, np.minimum(log_p, now - np.log(share)))
        found |= log_p <= np.log(alpha / max(design.candidates, 1))
    return log_p


def remaining_counts(counts: BitCounts, design: BloomDesign, found: Mask) -> Int64s:
    """Return what the counts are without the strings that were found, int64[S, k], scaled."""
    if not found.any():
        return counts.ones
    table = BitTable.of(counts, design, True)
    columns = design.indicator(np.flatnonzero(found))
    fitted = np.asarray(columns @ fit_columns(table, columns).coefficient)
    expected = (table.total * table.gain)[:, None] * fitted.reshape(counts.ones.shape)
    return np.asarray(np.rint(SUBTRACTION_STEPS * (counts.ones - expected)), np.int64)


def log_hash_tail(ones: Int64s, totals: Int64s, design: BloomDesign) -> Floats:
    """Return the logarithm of P(sum at random bits >= sum at a candidate's bits), float64[m].

    ones : int64[S, k], counts or other numbers; totals : int64[S], reports

    Examples
    --------
    >>> design = BloomDesign(np.array([[[0], [1]]]), bits=4, p_star=0.1, q_star=0.9)
    >>> np.exp(log_hash_tail(np.array([[1, 0, 0, 0]]), np.array([1]), design))
    array([0.25, 1.  ])
    """
    scores = _scores(ones, totals, design)
    live = np.flatnonzero(totals > 0)
    informative, total = design.informative[live], np.zeros(design.candidates, np.int64)
    for s, known in zip(live, informative, strict=True):
        total[known] += scores[s][design.positions[s][known]].sum(axis=1)
    # Strata that are evidence for the same candidates, and candidates with the same strata.
    classes, stratum_class = np.unique(informative, axis=0, return_inverse=True)
    patterns, pattern = np.unique(classes, axis=1, return_inverse=True)
    sums = [
        _SumOfDraws.of(scores[live[stratum_class.ravel() == i]], design.hashes)
        for i in range(len(classes))
    ]
    out = np.zeros(design.candidates)
    for j in range(patterns.shape[1]):
        chosen = [each for each, used in zip(sums, patterns[:, j], strict=True) if used]
        here = pattern.ravel() == j
        if chosen:
            out[here] = _log_tail(chosen, total[here])
    return out


def _scores(ones: Int64s, totals: Int64s, design: BloomDesign) -> Int64s:
    """Return the numbers, int64[S, k], weighted by integers if there are several slots.

    A slot whose bits scatter more, because many strings share its prefixes, gets a smaller weight.
    """
    gain = design.q - design.p
    sign = np.sign(gain).astype(np.int64)
    slot = np.zeros(len(gain), np.int64) if design.slot is None else design.slot
    if np.unique(slot[totals > 0]).size < 2 and np.unique(gain).size < 2:
        return ones * sign[:, None]
    noise = np.bincount(slot, ones.var(axis=1))
    weight = np.bincount(slot, totals * np.abs(gain)) / np.maximum(noise, 1e-9)
    steps = np.rint(WEIGHT_STEPS * weight / max(weight.max(initial=0.0), 1e-300))
    return np.asarray(ones * (np.maximum(steps, 1)[slot].astype(np.int64) * sign)[:, None])


class _SumOfDraws:
    """Sum of `hashes` independent draws from each row of scores, int64[S, k]."""

    def __init__(self, rows: list[tuple[Int64s, Floats]], least: int, most: int, hashes: int):
        self.rows, self.least, self.most, self.hashes = rows, least, most, hashes

    @classmethod
    def of(cls, scores: Int64s, hashes: int) -> "_SumOfDraws":
        """Return the sum of draws from rows of scores."""
        rows = []
        for row in scores:
            value, count = np.unique(row, return_counts=True)
            rows.append((value, count / row.size))
        least, most = int(scores.min(axis=1).sum()), int(scores.max(axis=1).sum())
        return cls(rows, hashes * least, hashes * most, hashes)

    def transform(self, size: int) -> Floats:
        """Return the Fourier transform of the distribution of the sum less its least value."""
        out = np.ones(size // 2 + 1, np.complex128)
        for value, chance in self.rows:
            mass = np.zeros(size)
            mass[value - value[0]] = chance
            out *= fft.rfft(mass) ** self.hashes
        return np.asarray(out)

    def log_moments(self) -> Floats:
        """Return log E exp(s (sum - most)) at the `SLOPES` s."""
        out = np.zeros(SLOPES.size)
        for value, chance in self.rows:
            out += np.log(np.exp(np.outer(SLOPES, value - value[-1])) @ chance)
        return self.hashes * out


def _log_tail(sums: list[_SumOfDraws], total: Int64s) -> Floats:
    """Return log P(sum >= total) for a sum of independent sums, float64[n]."""
    least, most = sum(each.least for each in sums), sum(each.most for each in sums)
    size = fft.next_fast_len(most - least + 2, real=True)
    product = np.ones(size // 2 + 1, np.complex128)
    for each in sums:
        product *= each.transform(size)
    mass = np.maximum(fft.irfft(product, size), 0.0)
    tail = np.cumsum(mass[::-1])[::-1][total - least]
    log_moments = np.sum([each.log_moments() for each in sums], axis=0)
    bound = (log_moments + SLOPES * (most - total[:, None])).min(axis=1)
    summed = np.log(np.clip(tail, LEAST_SUMMED, 1.0))
    return np.asarray(np.where(tail > LEAST_SUMMED, summed, np.minimum(bound, 0.0)))
