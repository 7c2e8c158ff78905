"""Tests of association between variables that nobody has seen in the clear.

For two variables, three tests of "X and Y are independent", all on (m−1)(n−1) degrees of freedom:

score   the default; p-values are uniform under independence, cells at 0 or not (see below)
paper   the paper's T = (p̂ − μ̂)ᵀ Σ̂⁻¹ (p̂ − μ̂), μ̂ the product of p̂'s margins
lrt     twice the log-likelihood gained over the fitted independence table

T and the likelihood ratio follow χ² only while no cell is estimated at 0. At 6 × 6 with rare
categories and 10,000 reports, 22% of the cells are, and both reject none of 120 true hypotheses at
.05; they are kept for comparison with the paper.

For three or more variables: mutual independence, and conditional independence of two given the
rest, by likelihood ratio, with the same reservation.

The score test: are two variables' likelihood ratios correlated?

With α_k = a_k / (a_k · p̂_X) and β_k = b_k / (b_k · p̂_Y) at the two *marginal* fits, the score of
the joint log-likelihood at the independence table is U = Σ_k (α_k − 1)(β_k − 1)ᵀ. No joint fit is
needed, so cells estimated at 0, which ruin the other tests, do not matter.

We centre α and β and take the variance that U has when reports of Y are shuffled against reports of
X: under independence every such shuffle is as likely as what was seen. That holds whatever the
likelihoods are, so an imprecise row for "Other" cannot make the test reject. Where cohorts are
shared by the two variables, shuffles stay within a cohort (`strata`).

The statistic is compared with χ²((m−1)(n−1)). With fewer than 200 reports per degree of freedom, or
with categories so rare that heavy tails widen the statistic's variance by 2% or more, that would
reject too often, and the statistic is compared with its own value over random shuffles instead.
That is exact at any size if reports are exchangeable within strata: where variables share cohorts,
pass the cohorts as strata. The smallest p-value is then 1 / (shuffles + 1).

Three passes over the parts, each of which gives sums only: the strata's means, their scatters
around them, and the tails. To be shuffled, rows are brought together, up to a million of them;
more are shuffled within their parts, which is as exact.
"""

from collections.abc import Sequence
from math import prod

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh
from scipy.special import chdtrc

from deniable.compute.backend import Held, MethodCall
from deniable.compute.cpu.array_kernels import CPU_KERNELS
from deniable.compute.cpu.threads import one_blas_thread
from deniable.compute.ratios import LikelihoodRatios, Scatters, StratumTotals, concatenated
from deniable.compute.rows import LikelihoodRows
from deniable.errors import InputError
from deniable.inference.joint.evidence import Evidence
from deniable.inference.joint.solver import JointFit, maximise
from deniable.kernels.array_types import Floats
from deniable.results.association import AssociationTest

REPORTS_PER_FREEDOM = 200
TAIL_TOLERANCE = 0.02
MAX_GATHERED = 1 << 20
"""Rows that are brought together to be shuffled; more stay where they are."""
SHUFFLES_PER_PASS = 100
"""Shuffles whose scores are sent at a time."""


def association_test(
    evidence: Evidence, *, method: str = "score", fit: JointFit | None = None
) -> AssociationTest:
    """Test whether two variables are independent.

    fit : the joint fit of the same evidence, made here where a method needs it and none is given.
    """
    if len(evidence.shape) != 2:
        raise InputError(
            f"two variables needed, got {len(evidence.shape)}; use evidence.only(i, j) for a pair, "
            "mutual_independence or conditional_independence for all"
        )
    if method == "score":
        return score_test(evidence)
    if method == "paper":
        return _paper_test(evidence, fit or maximise(evidence))
    if method == "lrt":
        return mutual_independence(evidence, fit=fit)
    raise InputError(f"method must be 'score', 'paper' or 'lrt', got {method!r}")


def mutual_independence(evidence: Evidence, *, fit: JointFit | None = None) -> AssociationTest:
    """Test by likelihood ratio whether all variables are independent of each other."""
    fit = fit or maximise(evidence)
    margins = sum(maximise(evidence.only(v)).log_likelihood for v in range(len(evidence.shape)))
    freedom = prod(evidence.shape) - 1 - sum(size - 1 for size in evidence.shape)
    return _ratio_test(fit.log_likelihood - margins, freedom)


def conditional_independence(
    evidence: Evidence, *, pair: Sequence[int] = (0, 1), fit: JointFit | None = None
) -> AssociationTest:
    """Test by likelihood ratio whether two variables are independent given all the others."""
    first, second = pair
    if len(evidence.shape) < 3 or first == second:
        raise InputError(f"three variables and a pair of two of them needed, got {evidence.shape}")
    fit = fit or maximise(evidence)
    null = _conditional_log_likelihood(evidence, fit.table, first, second)
    rest = prod(evidence.shape) // (evidence.shape[first] * evidence.shape[second])
    freedom = (evidence.shape[first] - 1) * (evidence.shape[second] - 1) * rest
    return _ratio_test(fit.log_likelihood - null, freedom)


def _ratio_test(gain: float, freedom: int) -> AssociationTest:
    statistic = max(0.0, 2.0 * gain)
    return AssociationTest("lrt", statistic, freedom, chi2_tail(freedom, statistic), "chi2")


def _paper_test(evidence: Evidence, fit: JointFit) -> AssociationTest:
    m, n = evidence.shape
    excess = (fit.table - np.outer(fit.table.sum(axis=1), fit.table.sum(axis=0))).ravel()
    # The excess sums to 0, so Σ̂⁻¹ on the simplex acts on it as the information itself.
    statistic = float(excess @ evidence.information(fit.table) @ excess)
    freedom = (m - 1) * (n - 1)
    return AssociationTest("paper", statistic, freedom, chi2_tail(freedom, statistic), "chi2")


def _conditional_log_likelihood(
    evidence: Evidence, table: Floats, first: int, second: int, max_passes: int = 2000
) -> float:
    """Maximum log-likelihood of p = p(x, z) p(y, z) / p(z), by EM from the unrestricted fit.

    The model is not concave, so no certificate exists. Rises of EM shrink geometrically, and we
    stop when what is left, Δ·r / (1 − r) with r the ratio of the last two rises, is below
    0.002 nats.
    """
    table = _conditioned(0.99 * table + 0.01 / table.size, first, second)
    before, rise = -np.inf, np.inf
    for _ in range(max_passes):
        evaluation = evidence.evaluate(table.reshape(evidence.folded))
        last, rise = rise, evaluation.log_likelihood - before
        before = evaluation.log_likelihood
        ratio = rise / last if np.isfinite(last) else 1.0
        if rise <= 0 or (ratio < 1 and rise * ratio < 0.002 * (1 - ratio)):
            break
        expected = table * evaluation.gradient.reshape(table.shape)
        table = _conditioned(expected / expected.sum(), first, second)
    return before


def _conditioned(table: Floats, first: int, second: int) -> Floats:
    """Return the closest table in which two variables are independent given the others."""
    without_first = table.sum(axis=first, keepdims=True)
    without_second = table.sum(axis=second, keepdims=True)
    rest = table.sum(axis=(first, second), keepdims=True)
    shares: Floats = without_first * without_second / np.where(rest > 0, rest, 1.0)
    return shares


# --- the score test ------------------------------------------------------------------------------


def score_test(
    evidence: Evidence,
    *,
    strata: npt.ArrayLike | None = None,
    shuffles: int = 999,
    rng: np.random.Generator | None = None,
) -> AssociationTest:
    """Test the independence of two variables without fitting their joint distribution.

    strata : one integer per report row, in the order of the shards; without, the evidence's own.
    rng : draws the shuffles, where they are needed; seeded with 0 unless given.
    """
    if len(evidence.shape) != 2:
        raise InputError(f"the score test is for two variables, got {len(evidence.shape)}")
    if strata is not None:
        evidence = evidence.stratified(strata)
    with one_blas_thread():
        margins = [
            maximise(evidence.only(variable)).table.astype(np.float32) for variable in (0, 1)
        ]
        ratios = evidence.rows.hold(MethodCall(LikelihoodRows.ratios, margins))
        means = ratios.sum(MethodCall(LikelihoodRatios.totals)).means()
        centred = ratios.hold(MethodCall(LikelihoodRatios.centred, means))
        scatters = centred.sum(MethodCall(LikelihoodRatios.scatters, len(means.labels)))
        root = _whitening(means, scatters)
        freedom = int(root.shape[1])
        statistic = float(np.sum((scatters.score.ravel() @ root) ** 2))
        sparse = evidence.weight < REPORTS_PER_FREEDOM * freedom
        if freedom > 0 and means.whole and (sparse or _heavy(means, scatters, centred, freedom)):
            rng = rng or np.random.default_rng(0)
            lengths = _shuffled_lengths(centred, evidence.count, root, shuffles, rng)
            as_long = int(np.sum(lengths >= statistic * (1 - 1e-6)))
            p_value = (1 + as_long) / (shuffles + 1)
            return AssociationTest("score", statistic, freedom, p_value, "shuffles")
    return AssociationTest("score", statistic, freedom, chi2_tail(freedom, statistic), "chi2")


def chi2_tail(freedom: int, statistic: float) -> float:
    """P(χ² ≥ statistic); 1 where there is nothing to test."""
    return float(chdtrc(freedom, statistic)) if freedom > 0 else 1.0


# --- all parts together --------------------------------------------------------------------------


def _whitening(means: StratumTotals, scatters: Scatters) -> Floats:
    """float64[mn, dof]: rootᵀ·vec(U) has covariance 1 under shuffling.

    dof is (m − 1)(n − 1), fewer where categories cannot be told apart.
    """
    left, right = (range_of(scatter.sum(axis=0)) for scatter in (scatters.x, scatters.y))
    # Shuffling n reports gives vec(U) the covariance Sxx ⊗ Syy / (n − 1), exactly.
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


def _heavy(
    means: StratumTotals, scatters: Scatters, centred: Held[LikelihoodRatios], freedom: int
) -> bool:
    """Whether rare, large ratios widen the variance of the statistic much beyond χ²'s.

    For whitened x of dimension r, b = E|x|⁴ − r(r+2) is 0 if x is normal; shuffling n pairs
    gives the statistic the variance 2·dof + b_x·b_y / n, to first order.
    """
    count = float(means.weight.sum())
    sides = (scatters.x.sum(axis=0) / count, scatters.y.sum(axis=0) / count)
    roots = [inverse_root(scatter).astype(np.float32) for scatter in sides]
    fourth = centred.sum(MethodCall(LikelihoodRatios.fourth_powers, roots)) / count
    normal = [root.shape[1] * (root.shape[1] + 2) for root in roots]
    excess = float(np.prod(fourth - normal))
    return excess / (2.0 * count * freedom) > TAIL_TOLERANCE


# --- shuffles ------------------------------------------------------------------------------------


def _shuffled_lengths(
    centred: Held[LikelihoodRatios],
    count: int,
    root: Floats,
    shuffles: int,
    rng: np.random.Generator,
) -> Floats:
    """Squared lengths of the whitened score over random shuffles, float64[shuffles]."""
    single = root.astype(np.float32)
    if count <= MAX_GATHERED:
        seed = int(rng.integers(1 << 63))
        parts = list(centred.map(MethodCall(LikelihoodRatios.moved, CPU_KERNELS)))
        scores = concatenated(parts).shuffled(shuffles, seed)
        return np.asarray(np.sum((scores @ single) ** 2, axis=1), np.float64)
    lengths = []
    for start in range(0, shuffles, SHUFFLES_PER_PASS):
        number = min(SHUFFLES_PER_PASS, shuffles - start)
        seeds = rng.integers(1 << 63, size=len(centred)).tolist()
        scores = centred.sum(MethodCall(LikelihoodRatios.shuffled, number), seeds)
        lengths.append(np.asarray(np.sum((scores @ single) ** 2, axis=1), np.float64))
    return np.concatenate(lengths)


def range_of(scatter: Floats) -> Floats:
    """Orthonormal basis of the directions in which centred ratios vary at all.

    One direction never does: p̂, because α_k · p̂ = 1 for every report, up to float32's 1e-7.
    """
    values, vectors = eigh(scatter)
    basis: Floats = vectors[:, values > 1e-9 * max(float(values[-1]), 1e-300)]
    return basis


def inverse_root(spread: Floats) -> Floats:
    """R with RᵀSR = 1 on the range of S."""
    if not spread.size:
        return spread
    values, vectors = eigh(spread)
    kept = values > 1e-9 * values[-1]
    root: Floats = vectors[:, kept] / np.sqrt(values[kept])
    return root
