"""Covariance of an estimated joint distribution: standard errors, intervals, conditional rates.

The observed information I = Σ_k w_k v_k v_kᵀ / d_k² (the paper's "Estimating the
Variance-Covariance matrix") is taken over *all* cells and inverted on the simplex:
Σ = Z(ZᵀIZ)⁻¹Zᵀ, Z a basis of the vectors that sum to 0. Two departures from the paper: it inverts
I itself, which forgets that a table sums to 1; and cells estimated at 0 stay in, because without
them the others' intervals cover .54–.95 instead of .93 or more. Intervals are clipped to [0, 1].
"""

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri

from deniable.compute.executor import one_blas_thread
from deniable.errors import InputError
from deniable.inference.curvature import information
from deniable.inference.evidence import Evidence
from deniable.inference.piece import Floats
from deniable.results.covariance import Covariance


def covariance(evidence: Evidence, table: Floats) -> Covariance:
    """Covariance of a fitted table over all its cells; see the module's text.

    Directions the reports say nothing about get a very large variance, so that intervals there
    reach from 0 to 1 instead of failing or pretending.
    """
    if table.shape != evidence.shape:
        raise InputError(f"table has shape {table.shape}, the evidence is about {evidence.shape}")
    observed = information(evidence, table.reshape(evidence.folded))
    with one_blas_thread():
        return Covariance(table, invert_on_simplex(observed))


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
