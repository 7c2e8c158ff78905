"""Privacy loss: exact, from the integers that are really drawn, rounded up.

ε is in nats. *Once* bounds what one report tells about the value behind it; *for ever* bounds what
any number of reports about one unchanging value tell together. Both are worst cases over every
pair of values and every output.

A report's bits are independent given the value, so the loss is a sum over the bits in which two
values can differ. With P(1 | bit set) = q* and P(1 | bit clear) = p*, a bit that is set for the
first value only weighs ln max(q*/p*, (1−q*)/(1−p*)), one that is set for the second only
ln max(p*/q*, (1−p*)/(1−q*)). With h bits each way this is h·|ln(q*(1−p*)/(p*(1−q*)))|.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from warnings import warn

from deniable.errors import InputError

NANO = 10**9


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
            raise InputError(f"expected 0 <= per_report <= in_total, got {self}")

    def __add__(self, other: PrivacyLoss) -> PrivacyLoss:
        return PrivacyLoss(
            add_up(self.per_report, other.per_report), add_up(self.in_total, other.in_total)
        )

    @property
    def once(self) -> float:
        """Deprecated name of `per_report`."""
        warn("once is now called per_report", DeprecationWarning, stacklevel=2)
        return self.per_report

    @property
    def forever(self) -> float:
        """Deprecated name of `in_total`."""
        warn("forever is now called in_total", DeprecationWarning, stacklevel=2)
        return self.in_total


NO_LOSS = PrivacyLoss(0.0, 0.0)


def total(losses: Sequence[PrivacyLoss]) -> PrivacyLoss:
    """The loss of all of them together, by addition."""
    return sum(losses, NO_LOSS)


def add_up(a: float, b: float) -> float:
    """a + b, rounded up."""
    s = a + b
    if math.isinf(s):
        return s
    return math.nextafter(s, math.inf) if Fraction(s) < Fraction(a) + Fraction(b) else s


def upper_log(ratios: Sequence[tuple[Fraction, int]]) -> float:
    """Σ n·ln(ratio) over (ratio, n), rounded up; infinite when a ratio with n > 0 is.

    A ratio with denominator 0 cannot be a Fraction, so an infinite ratio is given as 0 here.
    """
    from decimal import ROUND_CEILING, Context, Decimal

    # 50 digits against a double's 17: the last digit's error is far below one float step, and
    # every operation, the logarithm's successor included, goes up.
    up = Context(prec=50, rounding=ROUND_CEILING)
    sum_ = Decimal(0)
    for ratio, n in ratios:
        if n == 0:
            continue
        if ratio == 0:
            return math.inf
        log = up.divide(Decimal(ratio.numerator), Decimal(ratio.denominator)).ln(up).next_plus(up)
        sum_ = up.add(sum_, up.multiply(log, Decimal(n)))
    result = float(max(sum_, Decimal(0)))
    return math.nextafter(result, math.inf) if Decimal(result) < sum_ else result


def worst_ratio(numerators: Sequence[Fraction], denominators: Sequence[Fraction]) -> Fraction:
    """The largest numerator/denominator over outcomes; 0 stands for infinity (see `upper_log`)."""
    worst = Fraction(1)
    for a, b in zip(numerators, denominators, strict=True):
        if b == 0 and a > 0:
            return Fraction(0)
        if b > 0:
            worst = max(worst, a / b)
    return worst


def nanonats_up(epsilon: float) -> int | None:
    """ε in billionths of a nat, rounded up; None when it is infinite."""
    return None if math.isinf(epsilon) else math.ceil(Fraction(epsilon) * NANO)


def nanonats_down(epsilon: float) -> int:
    """ε in billionths of a nat, rounded down, as a limit is."""
    return math.floor(Fraction(epsilon) * NANO)


def check_epsilon(epsilon: float) -> None:
    """Raise InputError unless this ε can be spent."""
    if not (epsilon > 0 and math.isfinite(epsilon)):
        raise InputError(f"expected an ε above 0 and finite, got {epsilon}")


def split(epsilon: float, weights: Sequence[float] = (1, 1, 1)) -> tuple[float, ...]:
    """Shares of ε in proportion to the weights, each rounded down, so never above ε together.

    >>> split(3.0, [1, 1, 2])
    (0.75, 0.75, 1.5)
    """
    if not weights or any(not (w > 0 and math.isfinite(w)) for w in weights):
        raise InputError(f"expected one or more weights above 0, got {list(weights)}")
    check_epsilon(epsilon)
    whole = sum(map(Fraction, weights), Fraction(0))
    shares = []
    for weight in weights:
        exact = Fraction(epsilon) * Fraction(weight) / whole
        share = float(exact)
        shares.append(math.nextafter(share, 0.0) if Fraction(share) > exact else share)
    return tuple(shares)


def largest_step(epsilon: float, low: int, high: int, loss: Callable[[int], float]) -> int:
    """The largest integer from `low` to `high` whose loss, which grows with it, is within ε."""
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
