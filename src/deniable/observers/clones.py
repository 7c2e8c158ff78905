"""Numerical bound of amplification by shuffling, for any local randomiser.

Let P and Q be the distributions of one client's report under two values, with P ≤ p·Q, Q ≤ p·P
(p = e^ε₀) and total variation at most β. With α = β/(p − 1) there are distributions A, B, O with

    P = pα·A + α·B + ν·O,    Q = α·A + pα·B + ν·O,    ν = 1 − α(p + 1),

namely α·A = (P − Q)⁺/(p − 1) and α·B = (Q − P)⁺/(p − 1). Every other client's report has, whatever
its value, at least 1/p times the probability max(P, Q) of each output. It is therefore a *clone*:
drawn from A with probability α, from B with probability α, from O with probability ν/p. An observer
who is told which reports are clones, and of which of the three, sees counts (a, b, o), and the
shuffled reports are a function of the counts and of randomness that does not depend on the value.
The probability of the counts of n multinomial draws, times (p·a + b + p·o)/n or (a + p·b + p·o)/n,
is their probability under the first or the second value. With u = e^ε, the hockey-stick divergence
between the two is

    δ(ε) = E[(X₁ + … + Xₙ)⁺]/n,    X = p − u,     1 − p·u,  p(1 − u),  0
                     with probability  α,         α,        ν/p,       else.

This is the variation-ratio reduction of Wang et al. ("Privacy amplification via shuffling: unified,
simplified, and tightened", 2023), with clones of O also counted. If β decreases, X becomes smaller
in the convex order, so β of the worst pair of values is worst for all pairs.

Two bounds of the expectation follow. Since x⁺ ≤ e^{tx}/(e·t), it is at most E[e^{tX}]ⁿ/(e·t), which
the standard library suffices for (`exponential_delta`). `clone_sums` computes it almost exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

MAX_LOCAL = 40.0
"""ε₀ above which no crowd is large enough: e^40 clients."""
MIN_GAIN = 0.01
"""Relative gain below which ε₀ itself is the bound."""
PRECISION = 5e-4
"""Relative precision of ε; the result is on the safe side."""
MAX_EVALUATIONS = 12
"""Largest number of values of ε that a search tries; five usually suffice."""
ROUNDING = 1 + 1e-6
"""Factor on δ for errors of floating point, which are below 10⁻⁷ for 10⁹ reports."""
Delta = Callable[[float], float]
"""An upper bound of δ for every ε; it does not increase."""


@dataclass(frozen=True)
class Summand:
    """Distribution of X: a few values and their probabilities; the first value is the largest."""

    values: tuple[float, ...]
    probabilities: tuple[float, ...]

    @classmethod
    def at(cls, epsilon: float, local: float, variation: float) -> Summand:
        """Return X for ε, given ε₀ (`local`) and β (`variation`) of one report."""
        p = math.exp(local)
        alpha = min(variation / math.expm1(local), 1 / (p + 1))
        null = max(0.0, 1 - alpha * (p + 1)) / p
        # p − u, 1 − p·u and p(1 − u) without cancellation
        top = math.exp(epsilon) * math.expm1(local - epsilon)
        values = (top, -math.expm1(local + epsilon), -p * math.expm1(epsilon), 0.0)
        return cls(values, (alpha, alpha, null, max(0.0, 1 - 2 * alpha - null)))

    def moments(self, tilt: float) -> tuple[float, float, float]:
        """Return log E[e^{tX}], and mean and variance of X under weights e^{tX}, at tilt t."""
        pairs = list(zip(self.values, self.probabilities, strict=True))
        excess = math.fsum(w * math.expm1(tilt * x) for x, w in pairs)
        weights = [(x, w * math.exp(tilt * x) / (1 + excess)) for x, w in pairs]
        mean = math.fsum(w * x for x, w in weights)
        return math.log1p(excess), mean, math.fsum(w * (x - mean) ** 2 for x, w in weights)

    def saddlepoint(self) -> float:
        """Return a tilt under which X has mean 0, or slightly more."""
        low, high = 0.0, 1.0 / self.values[0]
        while self.moments(high)[1] < 0:
            low, high = high, 2 * high
        while high - low > 1e-6 * high:
            _, mean, variance = self.moments(high)
            newton = high - mean / variance
            middle = newton if low < newton < high else (low + high) / 2
            # The mean is not convex in t, so Newton's method alone might not converge.
            if self.moments(middle)[1] < 0:
                low = middle
                middle = (low + high) / 2
                if self.moments(middle)[1] < 0:
                    low = middle
                    continue
            high = middle
        return high


def exponential_delta(epsilon: float, local: float, variation: float, crowd: int) -> float:
    """Return an upper bound of δ at ε > 0 for `crowd` shuffled reports.

    local : ε₀ of one report
    variation : largest total variation between the reports of two values
    """
    if epsilon >= local:
        return 0.0
    summand = Summand.at(epsilon, local, variation)
    tilt = summand.saddlepoint()
    log_moment = crowd * summand.moments(tilt)[0]
    return min(1.0, math.exp(min(0.0, log_moment)) / (math.e * tilt * crowd) * ROUNDING)


def smallest_epsilon(delta_at: Delta, delta: float, high: float, guess: float) -> float:
    """Return almost the smallest ε at which `delta_at` is at most δ; it holds at `high`."""
    # −ln δ grows roughly with ε², so its root is interpolated between two bounds of ε.
    target = math.sqrt(-math.log(delta))
    low, at_low, at_high = 0.0, -target, math.inf
    for _ in range(MAX_EVALUATIONS):
        if high - low <= PRECISION * high:
            break
        reached = math.sqrt(-math.log(max(delta_at(guess), 1e-300)))
        if reached < target:
            low, at_low = guess, reached - target
        else:
            high, at_high = guess, reached - target
        slope = (at_high - at_low) / (high - low) if math.isfinite(at_high) else target / guess
        # Aim slightly beyond the root, so that both bounds close in on it.
        side = PRECISION / 3 if reached < target else -PRECISION / 3
        guess = (low - at_low / slope) * (1 + side)
        if not low < guess < high:
            guess = (low + high) / 2
    return high


def exponential_epsilon(local: float, variation: float, crowd: int, delta: float) -> float:
    """Return an upper bound of ε at δ for `crowd` shuffled reports, at most ε₀.

    local : ε₀ of one report
    variation : largest total variation between the reports of two values
    """
    high = local * (1 - MIN_GAIN)
    if crowd < 2 or not 0 < local < MAX_LOCAL:
        return local
    if exponential_delta(high, local, variation, crowd) > delta:
        return local
    variance = Summand.at(1e-9, local, variation).moments(0.0)[2]
    normal = math.sqrt(2 * math.log(1 / delta) * variance / crowd)
    return smallest_epsilon(
        lambda e: exponential_delta(e, local, variation, crowd), delta, high, min(high / 2, normal)
    )
