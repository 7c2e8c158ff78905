"""Covariance of an estimated joint table.

The observed information I = Σ_k w_k v_k v_kᵀ / d_k² (the paper's "Estimating the
Variance-Covariance matrix") is computed over *all* cells and inverted on the simplex:
Σ = Z(ZᵀIZ)⁻¹Zᵀ, where Z is a basis of the vectors that sum to 0. This differs from the paper in two
ways. The paper inverts I itself, which ignores that a table sums to 1. And cells estimated at 0 are
kept here, because without them the intervals of the others cover .54–.95 instead of .93 or more.
Intervals are clipped to [0, 1].

Both the likelihood and the estimate from counts treat an unlisted string as a random one. A real
string sets the same bits in all reports of a cohort, so cohorts differ by more than their noise.
`unlisted` adds what follows for a whole row of a table. Other is one category with one model, but
the strings in it may differ from cell to cell; `widen_errors` widens the errors of cells if they
differ between strata by even more.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri

from deniable.compute.executors import one_blas_thread
from deniable.compute.rows import LikelihoodRows
from deniable.errors import InputError
from deniable.inference.joint.evidence import Evidence
from deniable.kernels.array_types import Floats
from deniable.results.covariance import Covariance
from deniable.survey.detection import MIN_COHORTS

STRATUM_GROUPS = 64
"""Number of groups of strata whose influence is computed."""


def covariance(evidence: Evidence, table: Floats) -> Covariance:
    """Return the covariance of a fitted table over all its cells.

    Directions about which the reports hold no information get a very large variance, so that their
    intervals reach from 0 to 1.
    """
    if table.shape != evidence.shape:
        raise InputError(
            f"the table has the shape {table.shape}, but the evidence is about {evidence.shape}"
        )
    observed = evidence.information(table.reshape(evidence.folded))
    with one_blas_thread():
        return Covariance(table, invert_on_simplex(observed))


def stratum_influence(evidence: Evidence, fitted: Covariance) -> Floats:
    """Return how far each group of strata moves the fitted table, float64[S, *shape].

    fitted : the table and its covariance. The influence is 0 if strata are not known.
    """
    cells = fitted.table.size
    sums = evidence.rows.sum(
        partial(
            LikelihoodRows.stratum_scores,
            table=fitted.table.reshape(evidence.folded),
            groups=STRATUM_GROUPS,
        )
    )
    weight, score = sums[:, cells], sums[:, :cells]
    score = score - np.outer(weight / max(weight.sum(), 1.0), score.sum(axis=0))
    return np.asarray(score @ fitted.matrix).reshape(-1, *fitted.table.shape)


def widen_errors(shown: Covariance, influence: Floats, with_other: Sequence[bool]) -> Covariance:
    """Return the covariance with errors at least as large as the differences between strata.

    The factor is estimated separately for the cells of each combination of Other categories.

    influence : float64[S, *shape]; with_other : whether each question's last category is Other
    """
    strata = int((influence != 0).any(axis=tuple(range(1, influence.ndim))).sum())
    if strata < MIN_COHORTS:  # their differences are too uncertain
        return shown
    between = (influence**2).sum(axis=0) * strata / (strata - 1)
    excess = between / np.maximum(shown.standard_errors**2, np.finfo(float).tiny)
    factor, kind = np.ones(shown.table.shape), np.zeros(shown.table.shape, np.intp)
    for question, other in enumerate(with_other):
        if other:
            np.moveaxis(kind, question, 0)[-1] += 1 << question
    for which in np.unique(kind):
        factor[kind == which] = max(1.0, float(excess[kind == which].mean()))
    root = np.sqrt(factor).ravel()
    return Covariance(shown.table, shown.matrix * np.outer(root, root))


def invert_on_simplex(observed: Floats) -> Floats:
    """Return Z(ZᵀIZ)⁻¹Zᵀ for an information matrix float64[c, c].

    It is computed as I⁻¹ − I⁻¹11ᵀI⁻¹ / 1ᵀI⁻¹1, which needs no Z.
    """
    ridge = 1e-12 * max(float(np.mean(np.diagonal(observed))), 1e-300)
    while True:
        factor, failed = dpotrf(observed + ridge * np.eye(len(observed)), lower=1, clean=1)
        if not failed:
            break
        ridge *= 10.0
    lower = dpotri(factor, lower=1)[0]
    inverse = np.tril(lower) + np.tril(lower, -1).T
    total = inverse.sum(axis=0)
    result: Floats = inverse - np.outer(total, total / total.sum())
    return result
