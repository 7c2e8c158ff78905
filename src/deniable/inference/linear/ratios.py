"""Linear likelihood ratios: best approximations of likelihood ratios that are linear in the bits.

Let x be the bits of a report, θ_i their means given category i, μ = Σ_i π_i θ_i, and V their
covariance at the margins π. Among all linear functions, a_i(x) = 1 + (θ_i − μ)ᵀ V⁻¹ (x − μ) is
closest to P(x | i) / P(x), on average over reports. If a value sets one bit, likelihood ratios
*are* linear in each bit, and little is lost. With several hashes, they also depend on how many of a
string's bits are set together, which a linear function cannot express.

Sums of a_i over reports need bit counts only, and sums of a_i·b_j of two questions need pair counts
only. Their expectations are linear in the unknown distribution, so an estimate that solves for it
is unbiased even if the margins or V are wrong.
"""

from dataclasses import dataclass

import numpy as np

from deniable.inference.joint.quadratic import minimise_quadratic
from deniable.inference.marginal.bit_counts import BitCounts
from deniable.inference.models.base import Components
from deniable.kernels.array_types import Floats, Indices

MAX_SOLVED_BITS = 64
"""Maximum number of bits for which V is inverted.

With more bits, two categories share few of them, and the diagonal of V is used instead. With k =
128, standard errors grow by .2% at p = .25, q = .75, and by 3% at p = .05, q = .9.
"""
MIN_VARIANCE = 1e-9
"""Added to variances: without noise, the value determines its bits, and V may be singular."""
MARGIN_ROUNDS = 2
"""Rounds of fitting margins; they only weight the ratios, so two rounds suffice."""
STRATA_PER_CHUNK = 8
"""Strata that are processed together: with 1,024 bits and 24 categories they take 40 MB."""


@dataclass(frozen=True, eq=False)
class LinearRatios:
    """Linear likelihood ratios of one question in the strata that have reports.

    Parameters
    ----------
    centre : float64 array of shape (S, k)
        μ.
    slope : float64 array of shape (S, k, m)
        V⁻¹(θ_i − μ).
    margin : float64 array of shape (m,)
        π.
    gain : float64 array of shape (S, m, m)
        E(a_i | category c) at [s, c, i].
    square : float64 array of shape (S, m, m·m)
        E(a_i·a_j | category c) at [s, c, (i, j)].
    """

    centre: Floats
    slope: Floats
    margin: Floats
    gain: Floats
    square: Floats

    @property
    def categories(self) -> int:
        """Number of categories, m."""
        return int(self.gain.shape[1])

    @property
    def variance(self) -> Floats:
        """Covariance of the ratios at the margins, float64[S, m, m]."""
        m = self.categories
        mean = np.einsum("c,sci->si", self.margin, self.gain)
        second = np.einsum("c,scp->sp", self.margin, self.square).reshape(-1, m, m)
        return np.asarray(second - mean[:, :, None] * mean[:, None, :])


def linear_ratios(components: Components, strata: Indices, margin: Floats) -> LinearRatios:
    """Return the ratios at margins float64[m], in the given strata."""
    parts = [_moments(_lines(components, chunk, margin)) for chunk in _chunks(strata)]
    centre, slope, gain, square = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return LinearRatios(centre, slope, margin, gain, square)


def _chunks(strata: Indices) -> list[Indices]:
    """Cut strata into chunks that fit into memory."""
    return np.split(strata, range(STRATA_PER_CHUNK, len(strata), STRATA_PER_CHUNK))


@dataclass(frozen=True, eq=False)
class _Lines:
    """Linear functions in some strata.

    components : the categories; theta : float64[S, C, k], P(bit = 1 | component);
    centre, slope : as in `LinearRatios`
    """

    components: Components
    theta: Floats
    centre: Floats
    slope: Floats

    @property
    def ratio(self) -> Floats:
        """Mean of each ratio given each component, float64[S, C, m]."""
        return np.asarray(1.0 + (self.theta - self.centre[:, None, :]) @ self.slope)


def _lines(components: Components, strata: Indices, margin: Floats) -> _Lines:
    """Return the linear functions at margins float64[m]."""
    theta, mixing = components.theta(strata), components.mixing
    share = margin @ mixing
    centre = share @ theta
    sides = (mixing @ theta - centre[:, None, :]).transpose(0, 2, 1)
    if components.exclusive:  # on differences of distributions, V⁻¹ is diag(1/μ)
        slope = sides / centre[:, :, None]
    elif components.contrast_variance is not None:
        slope = _contrasts(theta, share, components.contrast_variance, sides)
    elif len(centre[0]) > MAX_SOLVED_BITS:
        slope = sides / (centre * (1.0 - centre) + MIN_VARIANCE)[:, :, None]
    else:
        slope = _solved(theta, share, theta * (1.0 - theta), sides)
    return _Lines(components, theta, centre, slope)


def _solved(theta: Floats, share: Floats, variance: Floats, sides: Floats) -> Floats:
    """Return V⁻¹ times the sides, float64[S, k, m].

    variance : of each bit given each component, of which bits are independent
    """
    centre = share @ theta
    spread = (theta.transpose(0, 2, 1) * share) @ theta
    spread -= centre[:, :, None] * centre[:, None, :]
    every = np.arange(len(centre[0]))
    spread[:, every, every] += share @ variance + MIN_VARIANCE
    return np.asarray(np.linalg.solve(spread, sides), np.float64)


def _contrasts(theta: Floats, share: Floats, variance: Floats, sides: Floats) -> Floats:
    """Return V⁻¹ times the sides if all reports set the same number of bits.

    V is singular then: adding a number to all slopes changes nothing. Slopes with the sum 0 are
    returned, for which the covariance of the bits given a component is that of independent bits
    with the contrast variance.
    """
    ones = np.ones((len(theta), theta.shape[2], 1))
    both = _solved(theta, share, variance, np.concatenate([sides, ones], axis=2))
    slope, level = both[:, :, :-1], both[:, :, -1:]
    shift = slope.sum(axis=1, keepdims=True) / level.sum(axis=1, keepdims=True)
    return np.asarray(slope - level * shift)


def _moments(lines: _Lines) -> tuple[Floats, Floats, Floats, Floats]:
    """Return centre, slope, gain and square of `LinearRatios`."""
    theta, slope, mixing = lines.theta, lines.slope, lines.components.mixing
    strata, k, m = slope.shape
    ratio = lines.ratio
    outer = ratio[:, :, :, None] * ratio[:, :, None, :]
    own = theta * (1.0 - theta)
    if lines.components.exclusive:  # exactly one bit is set: covariance diag(θ) − θθᵀ
        lean = theta @ slope
        outer -= lean[:, :, :, None] * lean[:, :, None, :]
        own = theta
    elif lines.components.contrast_variance is not None:
        own = np.broadcast_to(lines.components.contrast_variance, theta.shape)
    pairs = (slope[:, :, :, None] * slope[:, :, None, :]).reshape(strata, k, m * m)
    square = mixing @ outer.reshape(strata, -1, m * m) + (mixing @ own) @ pairs
    return lines.centre, slope, mixing @ ratio, square


def fit_margin(counts: BitCounts, components: Components) -> Floats:
    """Estimate the distribution of one question over its categories by least squares, float64[m].

    counts : bit counts of the components' strata
    """
    strata = np.flatnonzero(counts.total)
    margin = np.full(len(components.mixing), 1.0 / len(components.mixing))
    total = float(counts.reports)
    for _ in range(MARGIN_ROUNDS):
        observed, normal = np.ones(len(margin)), np.zeros((len(margin), len(margin)))
        for chunk in _chunks(strata):
            lines, n = _lines(components, chunk, margin), counts.total[chunk].astype(np.float64)
            off = counts.ones[chunk] - n[:, None] * lines.centre
            observed += np.einsum("sk,skm->m", off, lines.slope) / total
            normal += components.mixing @ np.tensordot(n, lines.ratio, 1) / total
        margin = on_simplex(normal, observed)
    return margin


def on_simplex(normal: Floats, observed: Floats) -> Floats:
    """Minimise ½pᵀHp − rᵀp over p ≥ 0, Σp = 1: H float64[c, c], r float64[c]."""
    # Σp = 1 enters as a moment that is known almost exactly.
    weight = 1e4 * max(float(np.diagonal(normal).max()), 1.0)
    every = np.ones(len(observed), bool)
    shares = minimise_quadratic(normal + weight, -(observed + weight), every, ridge=1e-14).clip(0.0)
    return np.asarray(shares / shares.sum())
