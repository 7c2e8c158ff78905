"""Empirical lower bound of ε: run a client many times and try to distinguish two values.

If a mechanism is ε-private, then P(S | first) ≤ e^ε·P(S | second) for every set S of outputs. Half
of the runs choose S by the likelihood ratio of the observed outputs; the other half test it with
exact binomial (Clopper–Pearson) limits. The bound exceeds the true ε in at most a share α of
audits. A bound above the claimed ε proves a leak; a low bound proves nothing.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass

from scipy.special import betaincinv

Run = Callable[[], Hashable]
"""Runs the client once on a fixed value and returns its output."""


@dataclass(frozen=True)
class Audit:
    """Result of an audit.

    Parameters
    ----------
    epsilon : float
        Lower confidence bound of ε.
    first, second : int
        Number of test runs of each value whose output was in the chosen set.
    runs : int
        Number of test runs per value.
    """

    epsilon: float
    first: int
    second: int
    runs: int


def audit(first: Run, second: Run, *, runs: int, alpha: float = 0.01) -> Audit:
    """Estimate a lower bound of ε from 4·`runs` outputs of each value.

    Parameters
    ----------
    first, second : callable
        Each runs the client on one of two values and returns a hashable output.
    runs : int
        Runs per value for choosing the set of outputs, and again for testing it. Both directions,
        first against second and second against first, are tried.
    alpha : float, default 0.01
        Maximum probability that the bound exceeds the true ε.

    Returns
    -------
    Audit
        The larger bound of the two directions.

    Examples
    --------
    >>> import random
    >>> rng = random.Random(1)
    >>> result = audit(lambda: rng.random() < 0.75, lambda: rng.random() < 0.25, runs=2000)
    >>> 0.9 < result.epsilon < math.log(3)
    True
    """
    directions = (first, second), (second, first)
    audits = [_audit_direction(a, b, runs, alpha / 2) for a, b in directions]
    return max(audits, key=lambda one: one.epsilon)


def _audit_direction(first: Run, second: Run, runs: int, alpha: float) -> Audit:
    """Bound ln(P(S | first)/P(S | second)) from below for a set S chosen on other runs."""
    chosen = _distinguishing_set(
        Counter(first() for _ in range(runs)), Counter(second() for _ in range(runs)), runs, alpha
    )
    in_first = sum(first() in chosen for _ in range(runs))
    in_second = sum(second() in chosen for _ in range(runs))
    return Audit(_lower_bound(in_first, in_second, runs, alpha), in_first, in_second, runs)


def _distinguishing_set(
    first: Counter[Hashable], second: Counter[Hashable], runs: int, alpha: float
) -> set[Hashable]:
    """Return the outputs with the largest likelihood ratios, cut off at the largest bound."""
    ordered = sorted(
        first.keys() | second.keys(),
        key=lambda x: (first[x] + 0.5) / (second[x] + 0.5),
        reverse=True,
    )
    best, best_bound, a, b = 0, -1.0, 0, 0
    for size, output in enumerate(ordered, 1):
        a, b = a + first[output], b + second[output]
        if (bound := _lower_bound(a, b, runs, alpha)) > best_bound:
            best, best_bound = size, bound
    return set(ordered[:best])


def _lower_bound(a: int, b: int, runs: int, alpha: float) -> float:
    """Return ln(lower limit of a/runs ÷ upper limit of b/runs), at least 0."""
    low = 1 - upper_limit(runs - a, runs, alpha / 2)
    high = upper_limit(b, runs, alpha / 2)
    return max(0.0, math.log(low / high)) if low > 0 else 0.0


def upper_limit(successes: int, runs: int, alpha: float) -> float:
    """Return the one-sided Clopper–Pearson upper limit of a probability."""
    if successes >= runs:
        return 1.0
    return float(betaincinv(successes + 1, runs - successes, 1 - alpha))
