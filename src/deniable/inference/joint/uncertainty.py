"""Covariance of an estimated joint distribution: standard errors, intervals, conditional rates.

The observed information I = Σ_k w_k v_k v_kᵀ / d_k² (the paper's "Estimating the
Variance-Covariance matrix") is taken over *all* cells and inverted on the simplex:
Σ = Z(ZᵀIZ)⁻¹Zᵀ, Z a basis of the vectors that sum to 0. Two departures from the paper: it inverts
I itself, which forgets that a table sums to 1; and cells estimated at 0 stay in, because without
them the others' intervals cover .54–.95 instead of .93 or more. Intervals are clipped to [0, 1].

Both the likelihood and counts take a string that nobody listed for a random one. It sets the same
bits in all of a cohort's reports, so cohorts then differ by more than their noise, and errors are
widened by how much more (`widened`).
"""

from collections.abc import Sequence

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri

from deniable.compute.backend import MethodCall
from deniable.compute.cpu.threads import one_blas_thread
from deniable.compute.rows import LikelihoodRows
from deniable.errors import InputError
from deniable.inference.joint.evidence import Evidence
from deniable.kernels.array_types import Floats
from deniable.results.covariance import Covariance

STRATA = 64
"""Groups that strata are dealt to: enough to see how much they differ."""
LEAST_STRATA = 8
"""Strata from which on their differences say something of errors."""


def covariance(evidence: Evidence, table: Floats) -> Covariance:
    """Covariance of a fitted table over all its cells; see the module's text.

    Directions the reports say nothing about get a very large variance, so that intervals there
    reach from 0 to 1 instead of failing or pretending.
    """
    if table.shape != evidence.shape:
        raise InputError(f"table has shape {table.shape}, the evidence is about {evidence.shape}")
    observed = evidence.information(table.reshape(evidence.folded))
    with one_blas_thread():
        return Covariance(table, invert_on_simplex(observed))


def stratum_influence(evidence: Evidence, whole: Covariance) -> Floats:
    """By how much each group of strata moves the table from where all have it, [S, *shape].

    whole : the fitted table and its covariance; nothing moves it where strata are not known
    """
    cells = whole.table.size
    sums = evidence.rows.sum(
        MethodCall(LikelihoodRows.stratum_scores, whole.table.reshape(evidence.folded), STRATA)
    )
    weight, score = sums[:, cells], sums[:, :cells]
    score = score - np.outer(weight / max(weight.sum(), 1.0), score.sum(axis=0))
    return np.asarray(score @ whole.matrix).reshape(-1, *whole.table.shape)


def widened(shown: Covariance, influence: Floats, rest: Sequence[bool]) -> Covariance:
    """Errors as large as strata differ by, apart for cells without, with one and with more Others.

    influence : float64[S, *shape]; rest : whether each question's last category is Other
    """
    strata = int((influence != 0).any(axis=tuple(range(1, influence.ndim))).sum())
    if strata < LEAST_STRATA:
        return shown
    seen = (influence**2).sum(axis=0) * strata / (strata - 1)
    excess = seen / np.maximum(shown.standard_errors**2, np.finfo(float).tiny)
    factor, kind = np.ones(shown.table.shape), np.zeros(shown.table.shape, np.intp)
    for question, other in enumerate(rest):
        if other:
            np.moveaxis(kind, question, 0)[-1] += 1 << question
    for which in np.unique(kind):
        factor[kind == which] = max(1.0, float(excess[kind == which].mean()))
    root = np.sqrt(factor).ravel()
    return Covariance(shown.table, shown.matrix * np.outer(root, root))


def invert_on_simplex(observed: Floats) -> Floats:
    """Return Z(ZᵀIZ)⁻¹Zᵀ for an information matrix float64[c, c].

    Equal to I⁻¹ − I⁻¹11ᵀI⁻¹ / 1ᵀI⁻¹1, which needs no Z.
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
