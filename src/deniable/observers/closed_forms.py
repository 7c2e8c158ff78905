"""Bounds for shuffled reports that are formulas: standard library only, valid but not tight."""

from __future__ import annotations

import math


def shuffled_epsilon(epsilon: float, crowd: int, delta: float) -> float | None:
    """Return ε of `crowd` shuffled reports at δ; None if the formula does not apply.

    This is theorem 3.1 of Feldman, McMillan and Talwar, "Hiding among the clones" (2021).

    epsilon : ε of one report

    >>> round(shuffled_epsilon(1.0, 10**6, 1e-8), 3), shuffled_epsilon(1.0, 100, 1e-8)
    (0.027, None)
    """
    if crowd < 2 or epsilon > math.log(crowd / (16 * math.log(2 / delta))):
        return None
    ratio = math.exp(epsilon)
    root = 8 * math.sqrt(ratio * math.log(4 / delta) / crowd)
    bound = math.log1p((ratio - 1) / (ratio + 1) * (root + 8 * ratio / crowd))
    return min(epsilon, bound * (1 + 1e-12))


def smallest_crowd(reports: int, share: float, delta: float) -> int:
    """Return a size that the group of a client has, except with probability δ.

    Each of the other clients is in the group with probability `share`. Chernoff: a binomial count
    with mean m is below m − √(2m·ln(1/δ)) with probability at most δ.

    >>> smallest_crowd(10**6, 1 / 64, 1e-8), smallest_crowd(1000, 1.0, 1e-8)
    (14868, 1000)
    """
    if share >= 1:
        return reports
    mean = (reports - 1) * share
    return 1 + max(0, math.ceil(mean - math.sqrt(2 * mean * math.log(1 / delta))))


def composed_epsilon(epsilon: float, times: int, delta: float) -> float:
    """Return ε at δ of `times` independent looks at one client, each with ε and no δ of its own.

    This is the optimal composition of Kairouz, Oh and Viswanath (2015): the best of the guarantees
    (times − 2i)·ε, whose δ is a sum of binomial terms.

    >>> composed_epsilon(0.5, 1, 1e-8), round(composed_epsilon(0.01, 365, 1e-8), 3)
    (0.5, 0.97)
    """
    worst = times * epsilon
    if epsilon <= 0 or times == 1:
        return worst
    # δᵢ = Σ_{l<i} C(k, l)·(e^{(k−l)ε} − e^{(k−2i+l)ε}) / (1 + e^ε)^k
    log_total = times * math.log1p(math.exp(epsilon))
    best = worst
    for i in range(1, times // 2 + 1):
        loss = 0.0
        for j in range(i):
            choose = math.lgamma(times + 1) - math.lgamma(j + 1) - math.lgamma(times - j + 1)
            factor = -math.expm1(2 * (j - i) * epsilon)
            loss += math.exp(choose + (times - j) * epsilon - log_total) * factor
        if loss * (1 + 1e-9) > delta:
            break
        best = (times - 2 * i) * epsilon
    return best * (1 + 1e-12)
