"""Cramér's V of an estimated joint distribution, with a confidence interval.

V² = φ² / (min(m, n) − 1) with φ² = Σ_ij (p_ij − p_i· p_·j)² / (p_i· p_·j). The estimated table in
place of p would overstate it, because noise adds to every square, and the constraint p ≥ 0 distorts
it further. So we start from the *unconstrained* estimate p̃ = p̂ + Σ̂·l′(p̂): one Newton step
without p ≥ 0, which equals p̂ if no cell is at 0. It is close to N(p, Σ̂).

Let δ_ij = p̃_ij − p̃_i· p̃_·j be the excess over independence, μ_ij = p̂_i· p̂_·j, W = diag(1/μ), and
S the covariance of δ. The quadratic form Q = δᵀWδ has the mean φ² + tr(WS) and the variance
2 tr((WS)²) + gᵀΣ̂g, where g is the gradient of φ². The estimate of φ² is Q − tr(WS). The 95 %
interval holds every φ² for which Q lies within 1.96 standard deviations of its mean. Categories
that may be empty (a margin below three standard errors) would make the denominators 1/μ too
uncertain, so they are left out.
"""

from collections.abc import Sequence
from math import sqrt

import numpy as np

from deniable.compute.executors import one_blas_thread
from deniable.errors import InputError
from deniable.formatting import Z95
from deniable.inference.joint.evidence import Evidence
from deniable.kernels.array_types import Floats, Indices, Mask
from deniable.results.association import EffectSize
from deniable.results.covariance import Covariance

MIN_MARGIN_Z = 3.0
"""Number of standard errors by which the margin of a category must exceed 0."""


def cramers_v(
    evidence: Evidence,
    covariance: Covariance,
    *,
    groups: Sequence[Indices] | None = None,
    widened: Covariance | None = None,
) -> EffectSize:
    """Estimate Cramér's V of two variables from their fitted table and its covariance.

    groups : if given, V of the table with added-up categories; see `Covariance.collapsed`;
    widened : that table with errors for unlisted strings, if there are such strings
    """
    with one_blas_thread():
        table = covariance.table
        # The gradient per report is 1 in each cell where the maximum is not at the bound p ≥ 0.
        score = evidence.weight * (evidence.evaluate(table.reshape(evidence.folded)).gradient - 1.0)
        unconstrained = table + (covariance.matrix @ score.ravel()).reshape(table.shape)
        if groups is not None:
            unconstrained = Covariance(unconstrained, covariance.matrix).collapsed(groups).table
            covariance = covariance.collapsed(groups)
        return cramers_v_of(unconstrained, covariance, evidence.weight, widened)


def cramers_v_of(
    unconstrained: Floats,
    covariance: Covariance,
    reports: float,
    widened: Covariance | None = None,
) -> EffectSize:
    """Estimate Cramér's V from an unconstrained estimate p̃ of the table and its covariance.

    If fewer than two categories of a variable are clearly present, the interval is [0, 1]. So that
    V is about the same categories with many reports, `covariance` decides which are present.

    widened : the table with errors for unlisted strings, if there are such strings
    """
    table = covariance.table
    if table.ndim != 2 or min(table.shape) < 2:
        raise InputError(
            "Cramér's V needs two questions with at least two categories each, got a table of "
            f"{' × '.join(map(str, table.shape))} categories: list more candidates, or keep the "
            "category Other"
        )
    present = [_clearly_present(covariance, variable) for variable in (0, 1)]
    if min(int(categories.sum()) for categories in present) < 2:
        return EffectSize(0.0, 0.0, 1.0)
    kept = np.ix_(*present)
    kept_cells = np.flatnonzero(np.logical_and.outer(*present))
    kept_share = float(table[kept].sum())
    table = table[kept] / kept_share
    unconstrained = unconstrained[kept] / unconstrained[kept].sum()
    matrix = (widened or covariance).matrix[np.ix_(kept_cells, kept_cells)] / kept_share**2
    rows, columns = (np.maximum(table.sum(axis=axis), 1.0 / reports) for axis in (1, 0))
    weights = 1.0 / np.outer(rows, columns).ravel()
    above = unconstrained - np.outer(unconstrained.sum(axis=1), unconstrained.sum(axis=0))
    excess, gradient = above.ravel(), _gradient(above, rows, columns).ravel()
    excess_covariance = _excess_covariance(matrix, rows, columns)
    weighted_covariance = weights[:, None] * excess_covariance
    q = float(excess @ (weights * excess))
    phi_squared = q - float(np.trace(weighted_covariance))
    # The variance of Q is a constant plus a term in proportion to φ²: constant + 4·slope·φ².
    constant = 2.0 * float(np.sum(weighted_covariance * weighted_covariance.T))
    slope = 0.25 * float(gradient @ matrix @ gradient) / q if q > 0 else 0.0
    # The ends of the interval solve (Q − tr(WS) − φ²)² = z²·(constant + 4·slope·φ²) for φ².
    middle = phi_squared + 2.0 * Z95**2 * slope
    half_width = sqrt(max(0.0, middle**2 - phi_squared**2 + Z95**2 * constant))
    max_phi_squared = min(table.shape) - 1
    estimate, low, high = (
        sqrt(min(1.0, max(0.0, value / max_phi_squared)))
        for value in (phi_squared, middle - half_width, middle + half_width)
    )
    return EffectSize(estimate, low, high)


def _gradient(excess: Floats, rows: Floats, columns: Floats) -> Floats:
    """Return the gradient of φ² = Σ δ_ij² / (p_i· p_·j) with respect to the cells, float64[m, n].

    excess : δ, float64[m, n]; rows, columns : the margins p_i· and p_·j
    """
    ratio = excess / np.outer(rows, columns)
    by_row, by_column = (ratio * excess).sum(axis=1), (ratio * excess).sum(axis=0)
    return np.asarray(
        2.0 * (ratio - (ratio @ columns)[:, None] - (rows @ ratio)[None, :])
        - (by_row / rows)[:, None]
        - (by_column / columns)[None, :]
    )


def _clearly_present(covariance: Covariance, variable: int) -> Mask:
    """Return which categories of one variable (0 or 1) have a margin clearly above 0."""
    table = covariance.table
    margin_covariance = covariance.matrix.reshape(*table.shape, *table.shape).sum(
        axis=(1 - variable, 3 - variable)
    )
    error = np.sqrt(np.maximum(np.diag(margin_covariance), 0.0))
    return np.asarray(table.sum(axis=1 - variable) > MIN_MARGIN_Z * error)


def _excess_covariance(matrix: Floats, rows: Floats, columns: Floats) -> Floats:
    """Return the covariance of p_ij − p_i· p_·j, to first order: J C Jᵀ for the covariance C of p.

    rows, columns : the margins p_i· and p_·j, float64[m] and float64[n]
    """
    m, n = len(rows), len(columns)
    # Each round multiplies by the Jacobian J from the left and transposes: J C, then J (J C)ᵀ.
    for _ in range(2):
        cells = matrix.reshape(m, n, -1)
        cells = (
            cells
            - cells.sum(axis=1)[:, None, :] * columns[None, :, None]
            - rows[:, None, None] * cells.sum(axis=0)[None, :, :]
        )
        matrix = cells.reshape(m * n, m * n).T
    return matrix
