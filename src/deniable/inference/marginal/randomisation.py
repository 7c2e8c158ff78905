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

from functools import reduce
from operator import add

import numpy as np

from deniable.inference.marginal.bit_counts import BitCounts
from deniable.inference.marginal.design import BloomDesign
from deniable.inference.marginal.regression import BitTable, fit_columns
from deniable.inference.marginal.tails import IntegerSum, fast_length
from deniable.kernels.array_types import Floats, Int64s, Mask

SMALL_CROWD = 1_000
"""Number of reports up to which p-values come from the hash functions."""
ROUND_SHARES = (0.05, 0.05, 0.9)
"""Share of alpha of each round; common strings pass any test."""
STEP = 0.01
"""Lattice on which counts are added up, in standard deviations; both sides of a test use it."""


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


def remaining_counts(counts: BitCounts, design: BloomDesign, found: Mask) -> Floats:
    """Return what the counts are without the strings that were found, float64[S, k]."""
    if not found.any():
        return np.asarray(counts.ones, np.float64)
    table = BitTable.of(counts, design, True)
    columns = design.indicator(np.flatnonzero(found))
    fitted = np.asarray(columns @ fit_columns(table, columns).coefficient)
    expected = (table.total * table.gain)[:, None] * fitted.reshape(counts.ones.shape)
    return np.asarray(counts.ones - expected)


def log_hash_tail(counts: Floats, totals: Int64s, design: BloomDesign) -> Floats:
    """Return the logarithm of P(sum at random bits >= sum at a candidate's bits), float64[m].

    counts : float64[S, k], counts of bits, or what is left of them; totals : int64[S], reports

    Examples
    --------
    >>> design = BloomDesign(np.array([[[0], [1]]]), bits=4, p_star=0.1, q_star=0.9)
    >>> np.exp(log_hash_tail(np.array([[1.0, 0, 0, 0]]), np.array([1]), design)).round(9)
    array([0.25, 1.  ])
    """
    live = np.flatnonzero(totals > 0)
    lattice = _lattice(counts, totals, design)[live]
    informative, total = design.informative[live], np.zeros(design.candidates, np.int64)
    for row, s, known in zip(lattice, live, informative, strict=True):
        total[known] += row[design.positions[s][known]].sum(axis=1)
    # Strata that are evidence for the same candidates, and candidates with the same strata.
    classes, stratum_class = np.unique(informative, axis=0, return_inverse=True)
    patterns, pattern = np.unique(classes, axis=1, return_inverse=True)
    size = fast_length(design.hashes * int(np.ptp(lattice, axis=1).sum()) + 1)
    sums = []
    for i in range(len(classes)):
        rows = [np.unique(r, return_counts=True) for r in lattice[stratum_class.ravel() == i]]
        draws = [(value, count / design.bits, design.hashes) for value, count in rows]
        sums.append(IntegerSum.of(draws, size, 1 / STEP))
    out = np.zeros(design.candidates)
    for j in range(patterns.shape[1]):
        chosen = [each for each, used in zip(sums, patterns[:, j], strict=True) if used]
        same = pattern.ravel() == j
        if chosen:
            out[same] = reduce(add, chosen).log_tail(total[same])
    return out


def _lattice(counts: Floats, totals: Int64s, design: BloomDesign) -> Int64s:
    """Return the counts as steps of the lattice, int64[S, k], weighted by slot.

    A slot whose bits scatter more, because many strings share its prefixes, gets a smaller weight.
    """
    gain, noise = design.q - design.p, counts.var(axis=1)
    slot = np.zeros(len(gain), np.int64) if design.slot is None else design.slot
    weight = np.bincount(slot, totals * np.abs(gain)) / np.maximum(np.bincount(slot, noise), 1e-9)
    scores = counts * (np.sign(gain) * weight[slot])[:, None]
    spread = float(np.sqrt(design.hashes * scores.var(axis=1).sum()))
    return np.asarray(np.rint(scores / (STEP * spread if spread > 0 else 1.0)), np.int64)
