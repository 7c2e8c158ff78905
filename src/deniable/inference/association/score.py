"""The score test of independence: are two variables' likelihood ratios correlated?

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

from __future__ import annotations

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
from deniable.inference.joint.solver import maximise
from deniable.kernels.array_types import Floats
from deniable.results.association import AssociationTest

REPORTS_PER_FREEDOM = 200
TAIL_TOLERANCE = 0.02
MAX_GATHERED = 1 << 20
"""Rows that are brought together to be shuffled; more stay where they are."""
SHUFFLES_PER_PASS = 100
"""Shuffles whose scores are sent at a time."""


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
    roots = []
    for scatter in (scatters.x.sum(axis=0) / count, scatters.y.sum(axis=0) / count):
        basis = range_of(scatter)
        roots.append((basis @ inverse_root(basis.T @ scatter @ basis)).astype(np.float32))
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
