"""Tests of independence between variables that are known through noisy reports only.

For two variables, there are three tests of independence, all with (m−1)(n−1) degrees of freedom:

score   the default; p-values are uniform under independence, even if cells are estimated at 0
paper   the paper's T = (p̂ − μ̂)ᵀ Σ̂⁻¹ (p̂ − μ̂), where μ̂ is the product of p̂'s margins
lrt     twice the gain of log-likelihood over the fitted independence table

T and the likelihood ratio follow χ² only if no cell is estimated at 0. At 6 × 6 with rare
categories and 10,000 reports, 22% of the cells are, and both tests reject none of 120 true
hypotheses at .05. They are kept for comparison with the paper.

For three or more variables there is a test of mutual independence: by the score, or by likelihood
ratio with the same reservation.

The score test asks whether the likelihood ratios of two variables are correlated. With
α_k = a_k / (a_k · p̂_X) and β_k = b_k / (b_k · p̂_Y) at the two *marginal* fits, the score of the
joint log-likelihood at the independence table is U = Σ_k (α_k − 1)(β_k − 1)ᵀ. It needs no joint
fit, so cells estimated at 0, which invalidate the other tests, do not matter.

We centre α and β, and use the variance that U has when reports of Y are shuffled against reports of
X: under independence every such shuffle is as likely as the data. That holds whatever the
likelihoods are, so an imprecise model of Other cannot make the test reject. If the two variables
share cohorts, shuffles stay within a cohort (`strata`).

The statistic is compared with χ²((m−1)(n−1)). With fewer than 200 reports per degree of freedom, or
with categories so rare that heavy tails increase the variance of the statistic by 2% or more, this
would reject too often. The statistic is then compared with its own values over random shuffles,
which is exact at any size if reports are exchangeable within strata. The smallest possible p-value
is then 1 / (shuffles + 1).

Mutual independence of several variables means that each is independent of all before it, taken as
one variable with a category per cell. So the test adds up the statistics of these two-way tests.
Under mutual independence they are independent. There are many directions in which reports can
deviate from mutual independence, and about most of them the noise leaves hardly any information.
With equal weights, they would hide associations in the others. So each direction is weighted by the
square root of its information about shares, relative to a multinomial distribution's: the spread of
U in a basis in which Σ δ²/p is the squared length of a deviation δ from a product p. All directions
keep a weight above 0, so that with enough reports every association is found. The reference
distribution is that of a sum of weighted χ². The weights depend on the margins only, so shuffles
are as exact as before.

Each two-way test takes three passes over the parts, each of which returns sums only: means of the
strata, the scatters around them, and the tails. Up to a million rows are gathered to be shuffled.
More rows are shuffled within their parts, which is just as exact.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial, reduce
from math import prod

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh

from deniable.compute.executors import Held, one_blas_thread
from deniable.compute.ratios import LikelihoodRatios, Scatters, StratumTotals, concatenated
from deniable.compute.rows import LikelihoodRows
from deniable.errors import InputError, did_you_mean
from deniable.inference.joint.evidence import Evidence
from deniable.inference.joint.solver import JointFit, maximise
from deniable.inference.marginal.tails import chi2_tail, weighted_chi2_tail
from deniable.kernels.array_types import Floats, Singles
from deniable.results.association import AssociationTest

MIN_REPORTS_PER_FREEDOM = 200
"""Reports per degree of freedom below which p-values come from shuffles."""
MAX_TAIL_EXCESS = 0.02
"""Relative increase of the statistic's variance above which p-values come from shuffles."""
MAX_GATHERED = 1 << 20
"""Maximum number of rows that are gathered to be shuffled."""
SHUFFLES_PER_PASS = 100
"""Number of shuffles whose scores are sent together."""


def association_test(
    evidence: Evidence, *, method: str = "score", fit: JointFit | None = None
) -> AssociationTest:
    """Test whether two variables are independent.

    Parameters
    ----------
    evidence : Evidence
        Likelihood rows of all reports.
    method : {"score", "paper", "lrt"}
        The test.
    fit : JointFit, optional
        Joint fit of the same evidence. It is computed if the method needs it.
    """
    if len(evidence.shape) != 2:
        raise InputError(
            f"this test is for two variables, got {len(evidence.shape)}; use mutual_independence, "
            "or test a pair of variables"
        )
    if method == "score":
        return score_test(evidence)
    if method == "paper":
        return _paper_test(evidence, fit or maximise(evidence))
    if method == "lrt":
        return mutual_independence(evidence, method="lrt", fit=fit)
    hint = did_you_mean(method, ("score", "paper", "lrt"))
    raise InputError(f"method must be 'score', 'paper' or 'lrt', got {method!r}.{hint}")


def mutual_independence(
    evidence: Evidence, *, method: str = "score", fit: JointFit | None = None
) -> AssociationTest:
    """Test whether all variables are independent of each other.

    method : "score" or "lrt"; fit : joint fit of the same evidence, if there is one
    """
    if method == "score":
        return score_test(evidence)
    fit = fit or maximise(evidence)
    margins = sum(maximise(evidence.only(v)).log_likelihood for v in range(len(evidence.shape)))
    freedom = prod(evidence.shape) - 1 - sum(size - 1 for size in evidence.shape)
    return _ratio_test(fit.log_likelihood - margins, freedom)


def _ratio_test(gain: float, freedom: int) -> AssociationTest:
    """Return the likelihood-ratio test of a gain of log-likelihood in nats."""
    statistic = max(0.0, 2.0 * gain)
    return AssociationTest("lrt", statistic, freedom, chi2_tail(freedom, statistic), "chi2")


def _paper_test(evidence: Evidence, fit: JointFit) -> AssociationTest:
    """Return the paper's test of a fitted table."""
    m, n = evidence.shape
    excess = (fit.table - np.outer(fit.table.sum(axis=1), fit.table.sum(axis=0))).ravel()
    # The excess sums to 0, so Σ̂⁻¹ on the simplex acts on it as the information itself.
    statistic = float(excess @ evidence.information(fit.table) @ excess)
    freedom = (m - 1) * (n - 1)
    return AssociationTest("paper", statistic, freedom, chi2_tail(freedom, statistic), "chi2")


# --- the score test ------------------------------------------------------------------------------


def score_test(
    evidence: Evidence,
    *,
    strata: npt.ArrayLike | None = None,
    shuffles: int = 999,
    rng: np.random.Generator | None = None,
) -> AssociationTest:
    """Test whether all variables are independent of each other, without a joint fit.

    Parameters
    ----------
    evidence : Evidence
        Likelihood rows of all reports.
    strata : array of int, optional
        Stratum of each row, in the order of the shards. The strata of the evidence by default.
    shuffles : int
        Number of shuffles, if they are needed.
    rng : numpy.random.Generator, optional
        Draws the shuffles. Seeded with 0 by default.
    """
    if len(evidence.shape) < 2:
        raise InputError(f"the score test needs two variables or more, got {len(evidence.shape)}")
    if strata is not None:
        evidence = evidence.stratified(strata)
    if len(evidence.shape) > 2:  # the largest variable last: the others are multiplied out
        evidence = evidence.only(*np.argsort(evidence.shape, kind="stable").tolist())
    with one_blas_thread():
        margins = [
            maximise(evidence.only(variable)).table.astype(np.float32)
            for variable in range(len(evidence.shape))
        ]
        steps = [_Step.of(evidence, margins[: last + 1]) for last in range(1, len(margins))]
        weights = np.concatenate([step.weights for step in steps])
        freedom = len(weights)
        scale = freedom / max(float(weights.sum()), 1e-300)  # so that the mean is `freedom`
        statistic = scale * sum(step.statistic for step in steps)
        if any(step.wants_shuffles for step in steps):
            rng = rng or np.random.default_rng(0)
            shuffled = scale * sum(
                _shuffled_statistics(step.centred, evidence.count, step.root, shuffles, rng)
                for step in steps
            )
            as_large = int(np.sum(shuffled >= statistic * (1 - 1e-6)))
            p_value = (1 + as_large) / (shuffles + 1)
            return AssociationTest("score", statistic, freedom, p_value, "shuffles")
    if len(steps) > 1:
        p_value = weighted_chi2_tail(scale * weights, statistic)
        return AssociationTest("score", statistic, freedom, p_value, "weighted chi2")
    return AssociationTest("score", statistic, freedom, chi2_tail(freedom, statistic), "chi2")


@dataclass(frozen=True, eq=False)
class _Step:
    """The score test of one variable against all variables before it.

    statistic : sum of squares of the score, times `root`; weights : float64[dof], their means;
    root : float64[mn, dof]; centred : ratios around the means of their strata;
    wants_shuffles : whether χ² is too imprecise as the reference distribution.
    """

    statistic: float
    weights: Floats
    root: Floats
    centred: Held[LikelihoodRatios]
    wants_shuffles: bool

    @classmethod
    def of(cls, evidence: Evidence, margins: Sequence[Singles]) -> "_Step":
        """Test the last of the variables that have margins; of two variables, without weights."""
        ratios = evidence.rows.hold(partial(LikelihoodRows.ratios, margins=margins))
        means = ratios.sum(LikelihoodRatios.totals).means()
        centred = ratios.hold(partial(LikelihoodRatios.centred, means=means))
        scatters = centred.sum(partial(LikelihoodRatios.scatters, strata=len(means.labels)))
        sides = [inverse_root(s.sum(axis=0) / evidence.weight) for s in (scatters.x, scatters.y)]
        if len(evidence.shape) > 2:
            root, weights = _weighting(means, scatters, margins)
        else:
            root = _whitening(means, scatters)
            weights = np.ones(root.shape[1])
        freedom = len(weights)
        statistic = float(np.sum((scatters.score.ravel() @ root) ** 2))
        sparse = evidence.weight < MIN_REPORTS_PER_FREEDOM * freedom
        wants_shuffles = (
            freedom > 0
            and means.whole
            and (sparse or _heavy_tails(float(means.weight.sum()), sides, centred, freedom))
        )
        return cls(statistic, weights, root, centred, wants_shuffles)


def _whitening(means: StratumTotals, scatters: Scatters) -> Floats:
    """Return the matrix float64[mn, dof] for which rootᵀ·vec(U) has covariance 1 under shuffling.

    dof is (m − 1)(n − 1), or less if some categories cannot be distinguished.
    """
    left, right = (range_of(scatter.sum(axis=0)) for scatter in (scatters.x, scatters.y))
    # Shuffling n reports gives vec(U) exactly the covariance Sxx ⊗ Syy / (n − 1).
    if len(means.labels) == 1:
        sides = [
            side @ inverse_root(side.T @ scatter @ side)
            for side, scatter in (
                (left, scatters.x[0]),
                (right, scatters.y[0] / (means.weight[0] - 1)),
            )
        ]
        return np.asarray(np.kron(*sides), np.float64)
    spread = np.zeros((left.shape[1] * right.shape[1],) * 2)
    for xx, yy, count in zip(scatters.x, scatters.y, means.weight, strict=True):
        spread += np.kron(left.T @ xx @ left, right.T @ yy @ right / (count - 1))
    root: Floats = np.kron(left, right) @ inverse_root(spread)
    return root


def _weighting(
    means: StratumTotals, scatters: Scatters, margins: Sequence[Singles]
) -> tuple[Floats, Floats]:
    """Return a root float64[mn, dof], and the variances float64[dof] of rootᵀ·vec(U) if shuffled.

    Variances are square roots of the information about each direction; covariances are 0.
    """
    *others, last = (margin.astype(np.float64) for margin in margins)
    left, right = _deviations(reduce(np.outer, others).ravel()), _deviations(last)
    if len(means.labels) == 1:
        sides = [
            (side @ vectors / values**0.25, values**0.5)
            for side, scatter in (
                (left, scatters.x[0]),
                (right, scatters.y[0] / (means.weight[0] - 1)),
            )
            for values, vectors in [_positive(side.T @ scatter @ side)]
        ]
        (x, by_x), (y, by_y) = sides
        return np.asarray(np.kron(x, y), np.float64), np.asarray(np.kron(by_x, by_y), np.float64)
    spread = np.zeros((left.shape[1] * right.shape[1],) * 2)
    for xx, yy, count in zip(scatters.x, scatters.y, means.weight, strict=True):
        spread += np.kron(left.T @ xx @ left, right.T @ yy @ right / (count - 1))
    values, vectors = _positive(spread)
    return np.kron(left, right) @ vectors / values**0.25, values**0.5


def _deviations(shares: Floats) -> Floats:
    """Return directions float64[m, m] in which Σ δ²/p is 1, or 0 along p itself."""
    roots = np.sqrt(np.maximum(shares, 0.0) / shares.sum())
    return np.asarray(roots[:, None] * (np.eye(len(roots)) - np.outer(roots, roots)))


def _positive(spread: Floats) -> tuple[Floats, Floats]:
    """Return the eigenvalues above 0, except for rounding, and their vectors."""
    values, vectors = eigh(spread)
    kept = values > 1e-9 * max(float(values[-1]), 1e-300)
    return values[kept], vectors[:, kept]


def _heavy_tails(
    count: float, sides: Sequence[Floats], centred: Held[LikelihoodRatios], freedom: int
) -> bool:
    """Return whether rare, large ratios make the variance of the statistic much larger than χ²'s.

    For whitened x of dimension r, b = E|x|⁴ − r(r+2) is 0 if x is normal. Shuffling n pairs gives
    the statistic the variance 2·dof + b_x·b_y / n, to first order.

    count : n; sides : for each variable, the matrix that whitens it
    """
    roots = [side.astype(np.float32) for side in sides]
    fourth = centred.sum(partial(LikelihoodRatios.fourth_powers, roots=roots)) / count
    normal = [root.shape[1] * (root.shape[1] + 2) for root in roots]
    excess = float(np.prod(fourth - normal))
    return excess / (2.0 * count * freedom) > MAX_TAIL_EXCESS


def _shuffled_statistics(
    centred: Held[LikelihoodRatios],
    count: int,
    root: Floats,
    shuffles: int,
    rng: np.random.Generator,
) -> Floats:
    """Return the statistic over random shuffles, float64[shuffles]."""
    single = root.astype(np.float32)
    if count <= MAX_GATHERED:
        seed = int(rng.integers(1 << 63))
        scores = concatenated(centred.gathered().results).shuffled(seed, shuffles)
        return np.asarray(np.sum((scores @ single) ** 2, axis=1), np.float64)
    lengths = []
    for start in range(0, shuffles, SHUFFLES_PER_PASS):
        number = min(SHUFFLES_PER_PASS, shuffles - start)
        seeds = rng.integers(1 << 63, size=len(centred)).tolist()
        scores = centred.sum(partial(LikelihoodRatios.shuffled, shuffles=number), seeds)
        lengths.append(np.asarray(np.sum((scores @ single) ** 2, axis=1), np.float64))
    return np.concatenate(lengths)


def range_of(scatter: Floats) -> Floats:
    """Return an orthonormal basis of the directions in which centred ratios vary.

    They never vary along p̂, because α_k · p̂ = 1 for every report, up to the 1e-7 of float32.
    """
    values, vectors = eigh(scatter)
    basis: Floats = vectors[:, values > 1e-9 * max(float(values[-1]), 1e-300)]
    return basis


def inverse_root(spread: Floats) -> Floats:
    """Return R with RᵀSR = 1 on the range of S."""
    if not spread.size:
        return spread
    values, vectors = _positive(spread)
    root: Floats = vectors / np.sqrt(values)
    return root
