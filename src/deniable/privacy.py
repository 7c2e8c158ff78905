"""Exact privacy loss, computed from the integer thresholds that clients use and rounded up.

ε is in nats. ε *per report* bounds the log-likelihood ratio of one report; ε *in total* bounds that
of any number of reports about one unchanging value. Both are worst cases over every pair of values
and every output.

The bits of a report are independent given the value, so the loss is a sum over the bits in which
two values can differ. Let q* = P(1 | bit set) and p* = P(1 | bit not set). A bit that only the
first value sets contributes ln max(q*/p*, (1−q*)/(1−p*)); one that only the second value sets
contributes ln max(p*/q*, (1−p*)/(1−q*)). With h bits of each kind the sum is
h·|ln(q*(1−p*)/(p*(1−q*)))|.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from deniable.errors import InputError

NANO = 10**9
"""Nanonats per nat."""
MAX_JOINT_OUTCOMES = 20_000
"""Largest number of outcomes of several parts that are enumerated together."""


@dataclass(frozen=True)
class PrivacyLoss:
    """Privacy loss ε in nats, as an upper bound.

    Losses about one person add; each sum is rounded up.

    Parameters
    ----------
    per_report : float
        ε of one report.
    in_total : float
        ε of any number of reports about one unchanging value; infinite without permanent noise.

    Raises
    ------
    InputError
        Unless 0 ≤ per_report ≤ in_total.

    Examples
    --------
    >>> PrivacyLoss(1.0, 2.0) + PrivacyLoss(0.5, math.inf)
    PrivacyLoss(per_report=1.5, in_total=inf)
    """

    per_report: float
    in_total: float

    def __post_init__(self) -> None:
        if not 0 <= self.per_report <= self.in_total:
            raise InputError(f"0 <= per_report <= in_total must hold, got {self}")

    def __add__(self, other: PrivacyLoss) -> PrivacyLoss:
        return PrivacyLoss(
            add_rounding_up(self.per_report, other.per_report),
            add_rounding_up(self.in_total, other.in_total),
        )


NO_LOSS = PrivacyLoss(0.0, 0.0)


def add_rounding_up(a: float, b: float) -> float:
    """Return a + b, rounded up."""
    nearest = a + b
    if math.isinf(nearest) or Fraction(nearest) >= Fraction(a) + Fraction(b):
        return nearest
    return math.nextafter(nearest, math.inf)


def log_sum_rounding_up(ratios: Sequence[tuple[Fraction, int]]) -> float:
    """Return Σ n·ln(ratio) over pairs (ratio, n), rounded up and at least 0.

    A Fraction cannot be infinite: the ratio 0 stands for infinity. The sum is infinite if such a
    ratio has n > 0.
    """
    from decimal import ROUND_CEILING, Context, Decimal

    # 50 digits, where a double has 17: the error is far below one step of a double. Every
    # operation rounds up; ln rounds to nearest, hence next_plus.
    up = Context(prec=50, rounding=ROUND_CEILING)
    total = Decimal(0)
    for ratio, n in ratios:
        if n == 0:
            continue
        if ratio == 0:
            return math.inf
        log = up.divide(Decimal(ratio.numerator), Decimal(ratio.denominator)).ln(up).next_plus(up)
        total = up.add(total, up.multiply(log, Decimal(n)))
    nearest = float(max(total, Decimal(0)))
    return math.nextafter(nearest, math.inf) if Decimal(nearest) < total else nearest


def worst_ratio(numerators: Sequence[Fraction], denominators: Sequence[Fraction]) -> Fraction:
    """Return the largest numerator/denominator, at least 1; 0 stands for infinity.

    This is the input of `log_sum_rounding_up`.
    """
    worst = Fraction(1)
    for a, b in zip(numerators, denominators, strict=True):
        if b == 0 and a > 0:
            return Fraction(0)
        if b > 0:
            worst = max(worst, a / b)
    return worst


def nanonats_up(epsilon: float) -> int | None:
    """Return ε in billionths of a nat, rounded up; None if it is infinite."""
    return None if math.isinf(epsilon) else math.ceil(Fraction(epsilon) * NANO)


def nanonats_down(epsilon: float) -> int:
    """Return ε in billionths of a nat, rounded down: use it for limits."""
    return math.floor(Fraction(epsilon) * NANO)


def check_epsilon(epsilon: float) -> None:
    """Raise InputError unless ε is positive and finite."""
    if not (epsilon > 0 and math.isfinite(epsilon)):
        raise InputError(f"epsilon must be positive and finite, not {epsilon}")


def binary_response(epsilon: float) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the outcomes of randomised response on one bit, which are the worst case for ε.

    Each pair has the probabilities of one outcome under the two values.

    >>> [[round(p, 3) for p in pair] for pair in binary_response(math.log(3))]
    [[0.75, 0.25], [0.25, 0.75]]
    """
    kept = right_guesses(epsilon)
    changed = 1 / (1 + math.exp(min(epsilon, 700)))
    return (kept, changed), (changed, kept)


def right_guesses(epsilon: float) -> float:
    """Return how often a guess between two equally likely answers is right, at most, given ε.

    >>> round(right_guesses(math.log(3)), 2), right_guesses(math.inf)
    (0.75, 1.0)
    """
    return 1 / (1 + math.exp(-epsilon))


def binomial(n: int, k: int, p: float) -> float:
    """Return the probability of k successes in n trials."""
    return math.comb(n, k) * p**k * (1 - p) ** (n - k)


def total_variation(parts: Sequence[Sequence[tuple[float, float]]]) -> float:
    """Return the total variation between two values of a report that has independent parts.

    It is rounded up by 10⁻⁸, which exceeds all errors of rounding.

    parts : outcomes of each part as pairs of probabilities; see `Mechanism.worst_outcomes`

    >>> round(total_variation([binary_response(1.0), binary_response(1.0)]), 4)  # as of one
    0.4621
    """
    joint: dict[int, tuple[float, float]] = {0: (1.0, 1.0)}
    rest = 1.0  # P(the two values give the same report) in the best coupling of the other parts
    for outcomes in parts:
        if len(joint) * len(outcomes) > MAX_JOINT_OUTCOMES:
            rest *= 1 - sum(max(0.0, a - b) for a, b in outcomes)
            continue
        products = [(a * c, b * d) for a, b in joint.values() for c, d in outcomes]
        # Outcomes with the same likelihood ratio count as one.
        joint = {}
        for a, b in products:
            ratio = round(math.log(a / b) * 2**30) if a and b else (1 << 62) * (1 if a else -1)
            before = joint.get(ratio, (0.0, 0.0))
            joint[ratio] = before[0] + a, before[1] + b
    variation = sum(max(0.0, a - b) for a, b in joint.values())
    return min(1.0, 1 - (1 - variation) * rest + 1e-8)


def split(epsilon: float, weights: Sequence[float] = (1, 1, 1)) -> tuple[float, ...]:
    """Divide ε in proportion to the weights, by default into three equal shares.

    Shares are rounded down, so that their exact sum never exceeds ε.

    >>> split(3.0, [1, 1, 2])
    (0.75, 0.75, 1.5)
    """
    if not weights or any(not (w > 0 and math.isfinite(w)) for w in weights):
        raise InputError(f"weights must be one or more positive numbers, not {list(weights)}")
    check_epsilon(epsilon)
    total_weight = sum(map(Fraction, weights), Fraction(0))
    shares = []
    for weight in weights:
        exact = Fraction(epsilon) * Fraction(weight) / total_weight
        share = float(exact)
        shares.append(math.nextafter(share, 0.0) if Fraction(share) > exact else share)
    return tuple(shares)


def largest_step(epsilon: float, low: int, high: int, loss: Callable[[int], float]) -> int:
    """Return the largest step from `low` to `high` whose loss is at most ε, by bisection.

    loss : privacy loss of the noise that a step stands for; it must not decrease with the step
    """
    check_epsilon(epsilon)
    if low > high or loss(low) > epsilon:
        raise InputError(
            f"epsilon = {epsilon:.3g} is too small: no probabilities in steps of 2^-32 have a loss "
            "this small; choose a larger epsilon"
        )
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if loss(middle) <= epsilon else (low, middle - 1)
    return low
