"""The bound of `clones`, computed almost exactly by one Fourier transform. Needs NumPy.

E[(X₁ + … + Xₙ)⁺] is computed under weights e^{tX} that move the mean of X to 0, so that its
relative error is small however small it is. The values of X are rounded to a lattice at random so
that their mean stays the same: for a convex function such as (·)⁺ this can only increase the
expectation. Sums outside the lattice wrap around; their probability is bounded, and what they can
add is added.
"""

from __future__ import annotations

import math

from deniable.extras import needs_packages
from deniable.observers.clones import ROUNDING, Summand, exponential_epsilon, smallest_epsilon

with needs_packages("deniable.observers.clone_sums"):
    import numpy as np
    from numpy.typing import NDArray

USUAL_LATTICE = 1 << 16
"""Number of lattice points aimed at; more only if one step per `p − u` needs them."""
MAX_LATTICE = 1 << 22
"""Largest number of lattice points; beyond it, the exponential bound is good enough."""
MAX_STEPS = 16
"""Largest number of lattice steps for the value p − u."""
MAX_WRAPPED = 1e-11
"""Probability that may wrap around the lattice; it is added to δ."""
EXPECTED_GAIN = 0.93
"""First guess of what the exact bound is, relative to the exponential one."""


def numerical_epsilon(local: float, variation: float, crowd: int, delta: float) -> float:
    """Return an upper bound of ε at δ for `crowd` shuffled reports, at most ε₀.

    local : ε₀ of one report
    variation : largest total variation between the reports of two values
    """
    high = exponential_epsilon(local, variation, crowd, delta)
    if high >= local:
        return local
    return smallest_epsilon(
        lambda e: numerical_delta(e, local, variation, crowd), delta, high, EXPECTED_GAIN * high
    )


def numerical_delta(epsilon: float, local: float, variation: float, crowd: int) -> float:
    """Return an upper bound of δ at ε > 0 for `crowd` shuffled reports; 1 if it is unknown.

    local : ε₀ of one report
    variation : largest total variation between the reports of two values
    """
    if epsilon >= local:
        return 0.0
    summand = Summand.at(epsilon, local, variation)
    top, width = summand.values[0], _half_width(summand, summand.saddlepoint(), crowd)
    steps = max(1, min(MAX_STEPS, int(USUAL_LATTICE * top / (2 * width))))
    step = top / steps
    points, probabilities = _on_lattice(summand, step)
    rounded = Summand(tuple(p * step for p in points), tuple(probabilities))
    tilt = rounded.saddlepoint()
    size = _fast_size(math.ceil(2 * _half_width(rounded, tilt, crowd) / step) + 2)
    if size > MAX_LATTICE:
        return 1.0
    weights = [p * math.exp(tilt * x) for x, p in zip(rounded.values, probabilities, strict=True)]
    mass = _sum_distribution(points, weights, crowd, size)
    sums = np.arange(1, size // 2) * step
    inside = float(mass[1 : size // 2] @ (sums * np.exp(-tilt * sums)))
    # x·e^{−tx} is at most 1/(e·t).
    bound = inside + MAX_WRAPPED / (math.e * tilt)
    scale = math.exp(min(0.0, crowd * rounded.moments(tilt)[0]))
    return min(1.0, scale * bound / crowd * ROUNDING)


def _on_lattice(summand: Summand, step: float) -> tuple[list[int], list[float]]:
    """Return lattice points and probabilities of X, rounded at random with the same mean."""
    weights: dict[int, float] = {}
    for value, probability in zip(summand.values, summand.probabilities, strict=True):
        scaled = value / step
        nearest = round(scaled)
        below = (
            nearest if abs(scaled - nearest) < 1e-9 * max(1, abs(nearest)) else math.floor(scaled)
        )
        upward = max(0.0, scaled - below)
        for point, share in ((below, 1 - upward), (below + 1, upward)):
            if share * probability > 0:
                weights[point] = weights.get(point, 0.0) + share * probability
    points = sorted(weights, reverse=True)
    return points, [weights[point] for point in points]


def _half_width(summand: Summand, tilt: float, crowd: int) -> float:
    """Return w such that the tilted sum exceeds ±w with probability at most `MAX_WRAPPED`."""
    log_here, _, variance = summand.moments(tilt)
    deviation = math.sqrt(crowd * variance)
    log_limit = math.log(MAX_WRAPPED / 2)
    width = 0.0
    for sign in (1, -1):
        # Chernoff: log P(S ≥ w) ≤ n(K(t + s) − K(t)) − s·w, at the best s of a few
        slopes = [sign * z / deviation for z in (3, 4, 5, 6, 7, 8)]
        grown = [crowd * (summand.moments(tilt + s)[0] - log_here) for s in slopes]
        widths = [(g - log_limit) / abs(s) for g, s in zip(grown, slopes, strict=True)]
        width = max(width, min(widths))
    return min(width, crowd * max(map(abs, summand.values)))


def _sum_distribution(
    points: list[int], weights: list[float], crowd: int, size: int
) -> NDArray[np.float64]:
    """Return the distribution of the sum of `crowd` lattice variables modulo `size`, as f64[size].

    The probability of a sum s is at index s mod size.
    """
    angles = (2 * math.pi / size) * np.arange(size // 2 + 1)
    total = math.fsum(weights)
    # φ − 1, by sin² for precision: 1 − cos x = 2 sin²(x/2)
    transform = np.zeros(len(angles), np.complex128)
    for point, weight in zip(points, weights, strict=True):
        half = np.sin(angles * (point / 2))
        transform += weight / total * (-2 * half * half - 1j * np.sin(angles * point))
    with np.errstate(divide="ignore", invalid="ignore"):
        powers = np.nan_to_num(np.exp(crowd * np.log1p(transform)))
    return np.maximum(np.fft.irfft(powers, size), 0.0)


def _fast_size(n: int) -> int:
    """Return an even number of at least n that a Fourier transform handles fast."""
    power = 1 << max(4, (n - 1).bit_length())
    return next(size for size in (power // 8 * 5, power // 4 * 3, power) if size >= n)
