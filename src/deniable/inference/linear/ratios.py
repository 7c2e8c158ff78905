"""Linear likelihood ratios: the best guess of a likelihood ratio that is linear in a report's bits.

With x a report's bits, θ_i their means given category i, μ = Σ_i π_i θ_i and V their covariance at
margins π, a_i(x) = 1 + (θ_i − μ)ᵀ V⁻¹ (x − μ) comes nearest to P(x | i) / P(x), on average over
reports, among all linear functions. Where a value sets one bit, likelihood ratios *are* linear in
each bit, and little is lost; with several hashes they also depend on how many of a string's bits
are set together, which no linear function sees.

Sums of a_i over reports need bit counts only, sums of a_i·b_j of two questions pair counts only.
Their expectations are linear in the distribution that is looked for, whatever it is: an estimate
that solves for it is unbiased even where margins or V are wrong.
"""

from dataclasses import dataclass

import numpy as np

from deniable.inference.joint.quadratic import minimise_quadratic
from deniable.inference.marginal.bit_counts import BitCounts
from deniable.inference.models.base import Components
from deniable.kernels.array_types import Floats, Indices

MAX_SOLVED_BITS = 64
"""Bits up to which V is inverted. Of more, few are set by two categories, and its diagonal serves:
with k = 128 standard errors grow by .2% at p = .25, q = .75, by 3% at p = .05, q = .9."""
TINY = 1e-9
"""Added to variances: without noise bits are certain given the value, and V may be singular."""
ROUNDS = 2
STRATA_PER_CHUNK = 8
"""Strata worked on at once: of 1,024 bits and 24 categories they take 40 MB."""


@dataclass(frozen=True, eq=False)
class LinearRatios:
    """Linear likelihood ratios of one question in the strata that have reports.

    centre : float64[S, k], μ; slope : float64[S, k, m], V⁻¹(θ_i − μ); margin : float64[m], π;
    gain : float64[S, m, m], E(a_i | category c) at [s, c, i];
    square : float64[S, m, m·m], E(a_i·a_j | category c) at [s, c, (i, j)].
    """

    centre: Floats
    slope: Floats
    margin: Floats
    gain: Floats
    square: Floats

    @property
    def categories(self) -> int:
        """m."""
        return int(self.gain.shape[1])

    @property
    def variance(self) -> Floats:
        """float64[S, m, m], the covariance of the ratios at the margins."""
        m = self.categories
        mean = np.einsum("c,sci->si", self.margin, self.gain)
        second = np.einsum("c,scp->sp", self.margin, self.square).reshape(-1, m, m)
        return np.asarray(second - mean[:, :, None] * mean[:, None, :])


def linear_ratios(components: Components, strata: Indices, margin: Floats) -> LinearRatios:
    """Ratios at these margins float64[m], of these strata in this order."""
    parts = [_with_squares(_lines(components, some, margin)) for some in _chunks(strata)]
    centre, slope, gain, square = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return LinearRatios(centre, slope, margin, gain, square)


def _chunks(strata: Indices) -> list[Indices]:
    return np.split(strata, range(STRATA_PER_CHUNK, len(strata), STRATA_PER_CHUNK))


@dataclass(frozen=True, eq=False)
class _Lines:
    """The linear functions of some strata; theta : float64[S, C, k], of the components."""

    components: Components
    theta: Floats
    centre: Floats
    slope: Floats

    @property
    def ratio(self) -> Floats:
        """float64[S, C, m], the mean of each ratio given each component."""
        return np.asarray(1.0 + (self.theta - self.centre[:, None, :]) @ self.slope)


def _lines(components: Components, strata: Indices, margin: Floats) -> _Lines:
    theta, mixing = components.theta(strata), components.mixing
    share = margin @ mixing
    centre = share @ theta
    sides = (mixing @ theta - centre[:, None, :]).transpose(0, 2, 1)
    if components.exclusive:  # V⁻¹ is diag(1/μ) on differences of distributions
        slope = sides / centre[:, :, None]
    elif len(centre[0]) > MAX_SOLVED_BITS:
        slope = sides / (centre * (1.0 - centre) + TINY)[:, :, None]
    else:
        spread = (theta.transpose(0, 2, 1) * share) @ theta
        spread -= centre[:, :, None] * centre[:, None, :]
        every = np.arange(len(centre[0]))
        spread[:, every, every] += share @ (theta * (1.0 - theta)) + TINY
        slope = np.asarray(np.linalg.solve(spread, sides), np.float64)
    return _Lines(components, theta, centre, slope)


def _with_squares(lines: _Lines) -> tuple[Floats, Floats, Floats, Floats]:
    """Centre, slope, gain and square of `LinearRatios`."""
    theta, slope, mixing = lines.theta, lines.slope, lines.components.mixing
    strata, k, m = slope.shape
    ratio = lines.ratio
    outer = ratio[:, :, :, None] * ratio[:, :, None, :]
    own = theta * (1.0 - theta)
    if lines.components.exclusive:  # bits of which one is set: covariance diag(θ) − θθᵀ
        lean = theta @ slope
        outer -= lean[:, :, :, None] * lean[:, :, None, :]
        own = theta
    pairs = (slope[:, :, :, None] * slope[:, :, None, :]).reshape(strata, k, m * m)
    square = mixing @ outer.reshape(strata, -1, m * m) + (mixing @ own) @ pairs
    return lines.centre, slope, mixing @ ratio, square


def fit_margin(counts: BitCounts, components: Components) -> Floats:
    """One question's distribution over its categories, by least squares: float64[m].

    counts : of the components' strata. Margins only weight the ratios, so two rounds from
    equal ones are enough.
    """
    strata = np.flatnonzero(counts.total)
    margin = np.full(len(components.mixing), 1.0 / len(components.mixing))
    total = float(counts.reports)
    for _ in range(ROUNDS):
        seen, normal = np.ones(len(margin)), np.zeros((len(margin), len(margin)))
        for some in _chunks(strata):
            lines, n = _lines(components, some, margin), counts.total[some].astype(np.float64)
            off = counts.ones[some] - n[:, None] * lines.centre
            seen += np.einsum("sk,skm->m", off, lines.slope) / total
            normal += components.mixing @ np.tensordot(n, lines.ratio, 1) / total
        margin = on_simplex(normal, seen)
    return margin


def on_simplex(normal: Floats, seen: Floats) -> Floats:
    """Minimise ½pᵀHp − rᵀp over p ≥ 0, Σp = 1: H float64[c, c], r float64[c]."""
    # Σp = 1 as a moment that is known almost exactly.
    weight = 1e4 * max(float(np.diagonal(normal).max()), 1.0)
    every = np.ones(len(seen), bool)
    shares = minimise_quadratic(normal + weight, -(seen + weight), every, ridge=1e-14).clip(0.0)
    return np.asarray(shares / shares.sum())
