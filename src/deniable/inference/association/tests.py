"""Tests of association between variables that nobody has seen in the clear.

For two variables, three tests of "X and Y are independent", all on (m−1)(n−1) degrees of freedom:

score   the default; p-values are uniform under independence, cells at 0 or not (see `score`)
paper   the paper's T = (p̂ − μ̂)ᵀ Σ̂⁻¹ (p̂ − μ̂), μ̂ the product of p̂'s margins
lrt     twice the log-likelihood gained over the fitted independence table

T and the likelihood ratio follow χ² only while no cell is estimated at 0. At 6 × 6 with rare
categories and 10,000 reports, 22% of the cells are, and both reject none of 120 true hypotheses at
.05; they are kept for comparison with the paper.

For three or more variables: mutual independence, and conditional independence of two given the
rest, by likelihood ratio, with the same reservation.
"""

from collections.abc import Sequence
from math import prod

import numpy as np

from deniable.errors import InputError
from deniable.inference.association.score import chi2_tail, score_test
from deniable.inference.joint.evidence import Evidence
from deniable.inference.joint.solver import JointFit, maximise
from deniable.kernels.array_types import Floats
from deniable.results.association import AssociationTest


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
