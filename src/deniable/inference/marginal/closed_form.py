"""Marginals that need no regression: one bit per category, and a single bit.

With one bit per category and all categories known, t = (c - p* N) / ((q* - p*) N) estimates each
frequency by itself, with the binomial variance r(1 - r) / (N (q* - p*)^2).
"""

from __future__ import annotations

import numpy as np
from scipy import stats

from deniable.errors import InputError
from deniable.inference.marginal.bit_counts import BitCounts
from deniable.inference.marginal.multiplicity import Correction, rejection_cutoff, upper_tail
from deniable.results.marginal import Marginal, Measured

Z95 = float(stats.norm.isf(0.025))


def estimate_basic(
    counts: BitCounts,
    p_star: float,
    q_star: float,
    *,
    alpha: float = 0.05,
    correction: Correction = "bonferroni",
    labels: tuple[str, ...] | None = None,
) -> Marginal:
    """Estimate Basic RAPPOR: bit i is category i, in every stratum.

    >>> counts = BitCounts(np.array([[500, 375, 375]]), np.array([1000]))
    >>> estimate_basic(counts, .25, .75).estimate
    array([0.5 , 0.25, 0.25])
    """
    if not (0 <= p_star <= 1 and 0 <= q_star <= 1) or p_star == q_star:
        raise InputError(
            f"p* and q* must be two different probabilities, got p* = {p_star}, q* = {q_star}"
        )
    reports, categories = counts.reports, counts.ones.shape[1]
    if labels is not None and len(set(labels)) != categories:
        raise InputError(
            f"{categories} categories need as many different labels, got {len(set(labels))}"
        )
    known = np.full(categories, reports > 0)
    size, gain = max(reports, 1), q_star - p_star
    share = counts.ones.sum(axis=0) / size
    estimate = np.where(known, (share - p_star) / gain, np.nan)
    low_r, high_r = min(p_star, q_star), max(p_star, q_star)
    r = np.clip(share, max(low_r, 0.5 / (size + 1)), min(high_r, 1 - 0.5 / (size + 1)))
    error = np.where(known, np.sqrt(r * (1 - r) / size) / abs(gain), np.inf)
    # Under "absent" the count is Binomial(N, p*), whatever the other categories do.
    r0 = min(max(p_star, 0.5 / (size + 1)), 1 - 0.5 / (size + 1))
    null = np.sqrt(r0 * (1 - r0) / size) / abs(gain)
    skewness = np.full(categories, np.sign(gain) * (1 - 2 * r0) / np.sqrt(r0 * (1 - r0) * size))
    p_value = np.where(known, upper_tail(np.nan_to_num(estimate) / null, skewness), 1.0)
    cutoff = rejection_cutoff(p_value, alpha, correction)
    detected = known & (p_value <= cutoff)
    low = np.where(known, np.nan_to_num(estimate) - Z95 * error, 0.0)
    high = np.where(known, np.nan_to_num(estimate) + Z95 * error, 1.0)
    found, rest = _masses(estimate, detected, size, r, gain)
    threshold = float(stats.norm.isf(cutoff) * null) if reports else float("nan")
    return Marginal(
        estimate, error, low, high, p_value, detected, known, (), threshold, found, rest,
        np.zeros(counts.total.size), 0.0, reports, alpha, correction, labels,
    )  # fmt: skip


def _masses(
    estimate: np.ndarray, detected: np.ndarray, size: int, r: np.ndarray, gain: float
) -> tuple[Measured, Measured]:
    """Sum of the detected estimates and the rest.

    Given the values, bits are independent; the values themselves are multinomial. With P the sum,
    variance = sum of conditional variances + P(1 - P) / N.
    """
    total = float(estimate[detected].sum())
    share = np.clip(estimate[detected], 0.0, 1.0)
    sampling = share * (1 - share)
    noise = np.maximum(r[detected] * (1 - r[detected]) / gain**2 - sampling, 0.0)
    whole = min(max(total, 0.0), 1.0)
    deviation = float(np.sqrt((noise.sum() + whole * (1 - whole)) / size))
    reach = Z95 * deviation
    return (
        Measured(total, deviation, total - reach, total + reach),
        Measured(1 - total, deviation, 1 - total - reach, 1 - total + reach),
    )


def estimate_boolean(counts: BitCounts, p_star: float, q_star: float) -> Measured:
    """Estimate the frequency of True from one-bit reports.

    >>> counts = BitCounts(np.array([[400]]), np.array([1000]))
    >>> round(estimate_boolean(counts, .25, .75).estimate, 6)
    0.3
    """
    if counts.ones.shape[1] != 1:
        raise InputError(f"a boolean report has 1 bit, got {counts.ones.shape[1]}")
    if counts.reports == 0:
        return Measured(float("nan"), float("inf"), 0.0, 1.0)
    result = estimate_basic(counts, p_star, q_star)
    return Measured(
        float(result.estimate[0]), float(result.standard_error[0]),
        float(result.low[0]), float(result.high[0]),
    )  # fmt: skip
