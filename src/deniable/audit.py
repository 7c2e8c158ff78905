"""An empirical lower bound on ε: run the real thing many times and try to tell two values apart.

If a mechanism is ε-private, then P(set | first) ≤ e^ε·P(set | second) for every set of outputs.
Half of the runs choose the set, by the likelihood ratio of what was seen; the other half test it
with exact binomial (Clopper–Pearson) limits, so the bound is honest: it exceeds the true ε in at
most a share α of audits. A bound above the ε that is claimed is proof of a leak; a low one proves
nothing.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass

from scipy.special import betaincinv


@dataclass(frozen=True)
class Audit:
    """The bound, and the counts behind it: in the set, of `runs`, for each value."""

    epsilon: float
    first: int
    second: int
    runs: int


def audit(
    first: Callable[[], Hashable], second: Callable[[], Hashable], *, runs: int, alpha: float = 0.01
) -> Audit:
    """The largest ε that 4·`runs` outputs of each value prove, either way round."""
    return max(
        (_one_way(a, b, runs, alpha / 2) for a, b in ((first, second), (second, first))),
        key=lambda found: found.epsilon,
    )


def _one_way(
    first: Callable[[], Hashable], second: Callable[[], Hashable], runs: int, alpha: float
) -> Audit:
    chosen = _telling_set(
        Counter(first() for _ in range(runs)), Counter(second() for _ in range(runs)), runs, alpha
    )
    in_first = sum(first() in chosen for _ in range(runs))
    in_second = sum(second() in chosen for _ in range(runs))
    bound = _proven(in_first, in_second, runs, alpha)
    return Audit(bound, in_first, in_second, runs)


def _telling_set(
    first: Counter[Hashable], second: Counter[Hashable], runs: int, alpha: float
) -> set[Hashable]:
    """Outputs in order of how much they speak for the first value, up to the best proof."""
    ordered = sorted(
        first.keys() | second.keys(),
        key=lambda x: (first[x] + 0.5) / (second[x] + 0.5),
        reverse=True,
    )
    best, best_bound, a, b = 0, -1.0, 0, 0
    for size, output in enumerate(ordered, 1):
        a, b = a + first[output], b + second[output]
        if (bound := _proven(a, b, runs, alpha)) > best_bound:
            best, best_bound = size, bound
    return set(ordered[:best])


def _proven(a: int, b: int, runs: int, alpha: float) -> float:
    """ln(lower limit of a/runs ÷ upper limit of b/runs), at least 0."""
    low = 1 - upper_limit(runs - a, runs, alpha / 2)
    high = upper_limit(b, runs, alpha / 2)
    return max(0.0, math.log(low / high)) if low > 0 else 0.0


def upper_limit(successes: int, runs: int, alpha: float) -> float:
    """Clopper–Pearson's one-sided upper limit of a probability."""
    if successes >= runs:
        return 1.0
    return float(betaincinv(successes + 1, runs - successes, 1 - alpha))
