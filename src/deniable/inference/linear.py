"""Joint distribution of two questions from pair counts, by generalised least squares.

Let x be the bits of a report, θ_i their means given category i, μ = Σ_i π_i θ_i, and V their
covariance at the margins π. Among all linear functions, a_i(x) = 1 + (θ_i − μ)ᵀ V⁻¹ (x − μ) is
closest to the likelihood ratio P(x | i) / P(x), on average over reports. If a value sets one bit,
likelihood ratios *are* linear in each bit, and little is lost. With several hashes, they also
depend on how many of a string's bits are set together, which a linear function cannot express.

Let b_j be the ratios of the second question. The sums R = Σ_k a_k b_kᵀ over reports are linear in
pair counts, and in stratum s their mean is n_s·A_sᵀ p B_s with known A_s and B_s. The table p
solves this equation, so it is unbiased even if the margins or V are wrong. Under independence this
is generalised least squares on all products of bits of the two questions and on the bits
themselves; without the latter, estimates of cells with Other would be poor.

The covariance is a sandwich: the solution is linear in R, and the covariance of R under the
estimated table includes the noise of both answers and the sampling of clients.

The test: U = Σ_s Σ_k (a_k − ā)(b_k − b̄)ᵀ has the mean 0 if answers are independent within strata.
Its covariance is then Σ_s (n_s − 1) V_X ⊗ V_Y, where V is the covariance of the ratios at the
margins. The test needs no joint fit, so cells estimated at 0 do no harm.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from deniable.inference.association.independence import inverse_root, range_of
from deniable.inference.joint.collapse import category_averages
from deniable.inference.joint.quadratic import minimise_quadratic
from deniable.inference.joint.uncertainty import invert_on_simplex
from deniable.inference.marginal.bit_counts import BitCounts
from deniable.inference.marginal.tails import chi2_tail
from deniable.inference.models.base import Components
from deniable.kernels.array_types import Floats, Indices
from deniable.results.association import AssociationTest
from deniable.results.covariance import Covariance

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
"""Strata that are processed together: with 1,000 strings and 24 categories they take 40 MB."""


@dataclass(frozen=True, eq=False)
class LinearRatios:
    """Linear likelihood ratios of one question: a_i(x) = Σ_b w_bi x_b; the last bit is always 1.

    Parameters
    ----------
    margin : float64 array of shape (m,)
        π.
    weights : float64 array of shape (S, k + 1, m)
        w, in each stratum.
    gain : float64 array of shape (S, m, m)
        E(a_i | category c) at [s, c, i].
    square : float64 array of shape (S, m, m·m)
        E(a_i·a_j | category c) at [s, c, (i, j)].
    """

    margin: Floats
    weights: Floats
    gain: Floats
    square: Floats

    @classmethod
    def of(cls, components: Components, counts: BitCounts, strata: Indices) -> LinearRatios:
        """Return the ratios in some strata of the question, at margins that fit its counts."""
        known, place = np.unique(strata, return_inverse=True)
        margin = _fit_margin(components, counts)
        parts = [
            (weights, components.mixing @ theta @ weights, _square(components, theta, weights))
            for _, theta, weights in _weights(components, known, margin)
        ]
        return cls(margin, *(np.concatenate(arrays)[place] for arrays in zip(*parts, strict=True)))

    @property
    def variance(self) -> Floats:
        """Covariance of the ratios at the margins, where their means are 1, float64[S, m, m]."""
        second = np.einsum("c,scp->sp", self.margin, self.square).reshape(self.gain.shape)
        return np.asarray(second - 1.0)


def _weights(
    components: Components, strata: Indices, margin: Floats
) -> Iterator[tuple[Indices, Floats, Floats]]:
    """Yield some strata, their θ float64[S, C, k + 1] and their weights float64[S, k + 1, m]."""
    mixing = components.mixing
    share = margin @ mixing
    for chunk in np.split(strata, range(STRATA_PER_CHUNK, len(strata), STRATA_PER_CHUNK)):
        theta = components.theta(chunk)
        centre = share @ theta
        sides = (mixing @ theta - centre[:, None, :]).transpose(0, 2, 1)
        if components.exclusive:  # on differences of distributions, V⁻¹ is diag(1/μ)
            slope = sides / centre[:, :, None]
        elif components.contrast_variance is None and theta.shape[2] > MAX_SOLVED_BITS:
            slope = sides / (centre * (1.0 - centre) + MIN_VARIANCE)[:, :, None]
        else:
            slope = np.asarray(np.linalg.solve(_covariance(components, theta, share), sides))
        constant = 1.0 - np.einsum("sk,skm->sm", centre, slope)[:, None, :]
        weights = np.concatenate([slope, constant], axis=1)
        yield chunk, np.pad(theta, ((0, 0), (0, 0), (0, 1)), constant_values=1.0), weights


def _covariance(components: Components, theta: Floats, share: Floats) -> Floats:
    """Return V, float64[S, k, k]; share : float64[C], of the components."""
    centre, every = share @ theta, np.arange(theta.shape[2])
    spread = (theta.transpose(0, 2, 1) * share) @ theta - centre[:, :, None] * centre[:, None, :]
    spread[:, every, every] += share @ _own_variance(components, theta) + MIN_VARIANCE
    if components.contrast_variance is None:
        return np.asarray(spread)
    # All reports set the same number of bits, so V is singular, and adding a number to all slopes
    # changes nothing: the slopes with the sum 0 solve this.
    contrasts = np.eye(len(every)) - 1 / len(every)
    return np.asarray(contrasts @ spread @ contrasts + 1.0)


def _own_variance(components: Components, theta: Floats) -> Floats:
    """Return the variance of each bit given each component, as far as it adds up over bits."""
    if components.contrast_variance is not None:
        return np.broadcast_to(components.contrast_variance, theta.shape)
    return theta * (1.0 - theta)


def _square(components: Components, theta: Floats, weights: Floats) -> Floats:
    """Return `LinearRatios.square`; theta and weights as `_weights` yields them."""
    mixing, slope, theta_bits = components.mixing, weights[:, :-1], theta[:, :, :-1]
    if components.exclusive:  # one bit is set, so a_i takes k values
        return np.asarray(mixing @ theta_bits @ _products(slope + weights[:, -1:]))
    own = mixing @ _own_variance(components, theta_bits)
    return np.asarray(mixing @ _products(theta @ weights) + own @ _products(slope))


def _products(ratios: Floats) -> Floats:
    """Return all products of two numbers of a row, float64[S, rows, m·m] of float64[S, rows, m]."""
    return (ratios[..., :, None] * ratios[..., None, :]).reshape(*ratios.shape[:2], -1)


def _fit_margin(components: Components, counts: BitCounts) -> Floats:
    """Estimate the distribution of one question over its categories by least squares."""
    categories = len(components.mixing)
    margin = np.full(categories, 1.0 / categories)
    for _ in range(MARGIN_ROUNDS):
        observed, normal = np.zeros(categories), np.zeros((categories, categories))
        for chunk, theta, weights in _weights(components, np.flatnonzero(counts.total), margin):
            ones = np.column_stack([counts.ones[chunk], counts.total[chunk]]) / counts.reports
            observed += np.einsum("sk,skm->m", ones, weights)
            normal += components.mixing @ np.tensordot(ones[:, -1], theta @ weights, 1)
        margin = on_simplex(normal, observed)
    return margin


def on_simplex(normal: Floats, observed: Floats) -> Floats:
    """Minimise ½pᵀHp − rᵀp over p ≥ 0, Σp = 1: H float64[c, c], r float64[c]."""
    # Σp = 1 enters as a moment that is known almost exactly.
    weight = 1e4 * max(float(np.diagonal(normal).max()), 1.0)
    every = np.ones(len(observed), bool)
    shares = minimise_quadratic(normal + weight, -(observed + weight), every, ridge=1e-14).clip(0.0)
    return np.asarray(shares / shares.sum())


def linear_joint(
    pairs: Floats, x: LinearRatios, y: LinearRatios
) -> tuple[Covariance, Covariance, Floats]:
    """Estimate the table of both questions' categories from float64[S, k + 1, l + 1] pair counts.

    Returns the table with p ≥ 0 and Σp = 1, the table without p ≥ 0, which is unbiased, and how far
    each stratum moves the latter, float64[S, m, n].
    """
    (m, n), total, strata = (len(x.margin), len(y.margin)), pairs[:, -1, -1], len(pairs)
    moments = x.weights.transpose(0, 2, 1) @ pairs @ y.weights
    observed = moments.sum(axis=0).ravel() / total.sum()
    gain = (x.gain.reshape(strata, -1) * total[:, None]).T @ y.gain.reshape(strata, -1)
    normal = _cells(gain, m, n) / total.sum()
    bread = invert_on_simplex(normal)
    table = on_simplex(normal, observed)
    free = (table + bread @ (observed - normal @ table)).reshape(m, n)
    table = table.reshape(m, n)
    matrix = bread @ (_spread(total, x, y, table) / total.sum() ** 2) @ bread
    apart = (moments - _means(x, y, free) * total[:, None, None]).reshape(strata, -1)
    influence = (apart @ bread / total.sum()).reshape(moments.shape)
    return Covariance(table, matrix), Covariance(free, matrix), influence


def linear_test(
    pairs: Floats, x: LinearRatios, y: LinearRatios, groups: Sequence[Indices]
) -> AssociationTest:
    """Test whether two questions are independent, after categories are added up by their groups.

    The reference is χ² with (m − 1)(n − 1) degrees of freedom.
    """
    total, weight = pairs[:, -1, -1], np.maximum(pairs[:, -1, -1] - 1.0, 0.0)
    sum_x = np.einsum("skm,sk->sm", x.weights, pairs[:, :, -1])
    sum_y = np.einsum("skm,sk->sm", y.weights, pairs[:, -1, :])
    apart = sum_x[:, :, None] * sum_y[:, None, :] / np.maximum(total, 1.0)[:, None, None]
    score = (x.weights.transpose(0, 2, 1) @ pairs @ y.weights - apart).sum(axis=0)
    bases, spreads = [], []
    for side, group in zip((x, y), groups, strict=True):
        averages = category_averages(group, side.margin)
        spread = averages @ side.variance @ averages.T
        base = range_of(np.tensordot(weight, spread, 1))
        bases.append(averages.T @ base)
        spreads.append((base.T @ spread @ base).reshape(len(pairs), -1))
    both = (spreads[0] * weight[:, None]).T @ spreads[1]
    root = inverse_root(_cells(both, *(base.shape[1] for base in bases)))
    statistic = float(np.sum(((bases[0].T @ score @ bases[1]).ravel() @ root) ** 2))
    freedom = int(root.shape[1])
    return AssociationTest("score", statistic, freedom, chi2_tail(freedom, statistic), "chi2")


def _spread(total: Floats, x: LinearRatios, y: LinearRatios, table: Floats) -> Floats:
    """Return the covariance of Σ_k a_k ⊗ b_k under a table, float64[mn, mn].

    In each stratum, E(aaᵀ ⊗ bbᵀ) = Σ_uv p_uv E(aaᵀ | u) ⊗ E(bbᵀ | v), less the square of the mean.
    """
    m, n = table.shape
    second = table @ y.square * total[:, None, None]
    square = np.tensordot(x.square, second, axes=((0, 1), (0, 1)))
    means = _means(x, y, table).reshape(len(total), -1)
    return _cells(square, m, n) - (means * total[:, None]).T @ means


def _means(x: LinearRatios, y: LinearRatios, table: Floats) -> Floats:
    """Return the mean of a bᵀ in each stratum under a table, float64[S, m, n]."""
    return np.asarray(x.gain.transpose(0, 2, 1) @ table @ y.gain)


def _cells(flat: Floats, m: int, n: int) -> Floats:
    """Reorder float64[m·m, n·n] from [(i, i′), (j, j′)] to [(i, j), (i′, j′)]."""
    return flat.reshape(m, m, n, n).transpose(0, 2, 1, 3).reshape(m * n, m * n)
