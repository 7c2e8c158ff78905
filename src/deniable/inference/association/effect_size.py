"""Cramér's V of an estimated joint distribution, with a confidence interval.

V² = φ² / (min(m, n) − 1) with φ² = Σ_ij (p_ij − p_i· p_·j)² / (p_i· p_·j). The estimated table in
place of p would overstate it, because noise adds to every square, and the constraint p ≥ 0 distorts
it further. So we start from the *unconstrained* estimate p̃ = p̂ + Σ̂·l′(p̂): one Newton step
without p ≥ 0, which equals p̂ if no cell is at 0. It is close to N(p, Σ̂).

Let δ be the excess over independence, W = diag(1/μ), and S the covariance of δ. The quadratic form
Q = δᵀWδ has the mean φ² + tr(WS) and the variance 2 tr((WS)²) + 4 δᵀWSWδ. The estimate is Q −
tr(WS), and the interval holds all φ² that Q does not contradict. Categories that may be empty (a
margin below three standard errors) would make the denominators too uncertain, so V is that of the
other categories.
"""

from collections.abc import Sequence
from math import sqrt

import numpy as np

from deniable.compute.cpu.threads import one_blas_thread
from deniable.errors import InputError
from deniable.inference.joint.evidence import Evidence
from deniable.kernels.array_types import Floats, Indices, Mask
from deniable.results.association import EffectSize
from deniable.results.covariance import Covariance
from deniable.results.marginal import Z95

MIN_MARGIN_Z = 3.0
"""Number of standard errors by which the margin of a category must exceed 0."""


def cramers_v(
    evidence: Evidence,
    covariance: Covariance,
    *,
    groups: Sequence[Indices] | None = None,
) -> EffectSize:
    """Estimate Cramér's V of two variables from their fitted table and its covariance.

    groups : if given, V of the table with added-up categories; see `Covariance.collapsed`
    """
    with one_blas_thread():
        table = covariance.table
        score = evidence.weight * (evidence.evaluate(table.reshape(evidence.folded)).gradient - 1.0)
        unconstrained = table + (covariance.matrix @ score.ravel()).reshape(table.shape)
        if groups is not None:
            unconstrained = Covariance(unconstrained, covariance.matrix).collapsed(groups).table
            covariance = covariance.collapsed(groups)
        return cramers_v_of(unconstrained, covariance, evidence.weight)


def cramers_v_of(unconstrained: Floats, covariance: Covariance, reports: float) -> EffectSize:
    """Estimate Cramér's V from an unconstrained estimate p̃ of the table and its covariance."""
    table = covariance.table
    if table.ndim != 2 or min(table.shape) < 2:
        raise InputError(
            "Cramér's V needs two variables with at least two categories each, got a table of "
            f"shape {table.shape}"
        )
    present = [_present(covariance, side) for side in (0, 1)]
    if min(int(categories.sum()) for categories in present) < 2:
        return EffectSize(0.0, 0.0, 1.0)
    chosen = np.ix_(*present)
    cells = np.flatnonzero(np.logical_and.outer(*present))
    whole = float(table[chosen].sum())
    table, unconstrained = (
        table[chosen] / whole,
        unconstrained[chosen] / unconstrained[chosen].sum(),
    )
    covariance = Covariance(table, covariance.matrix[np.ix_(cells, cells)] / whole**2)
    rows, columns = (np.maximum(table.sum(axis=side), 1.0 / reports) for side in (1, 0))
    weights = 1.0 / np.outer(rows, columns).ravel()
    excess = (
        unconstrained - np.outer(unconstrained.sum(axis=1), unconstrained.sum(axis=0))
    ).ravel()
    spread = _excess_covariance(covariance.matrix, rows, columns)
    form = float(excess @ (weights * excess))
    scaled = weights[:, None] * spread
    bias, noise = float(np.trace(scaled)), 2.0 * float(np.sum(scaled * scaled.T))
    slope = float((weights * excess) @ spread @ (weights * excess)) / form if form > 0 else 0.0
    # (Q − tr − φ²)² = z²·(noise + 4·slope·φ²), solved for φ²
    middle = form - bias + 2.0 * Z95**2 * slope
    reach = sqrt(max(0.0, middle**2 - (form - bias) ** 2 + Z95**2 * noise))
    largest = min(table.shape) - 1
    estimate, low, high = (
        sqrt(min(1.0, max(0.0, value / largest)))
        for value in (form - bias, middle - reach, middle + reach)
    )
    return EffectSize(estimate, low, high)


def _present(covariance: Covariance, side: int) -> Mask:
    """Return which categories of one variable have a margin clearly above 0."""
    table = covariance.table
    margin_covariance = covariance.matrix.reshape(*table.shape, *table.shape).sum(
        axis=(1 - side, 3 - side)
    )
    error = np.sqrt(np.maximum(np.diag(margin_covariance), 0.0))
    return np.asarray(table.sum(axis=1 - side) > MIN_MARGIN_Z * error)


def _excess_covariance(matrix: Floats, rows: Floats, columns: Floats) -> Floats:
    """Return the covariance of p_ij − p_i· p_·j, to first order."""
    m, n = len(rows), len(columns)
    for _ in range(2):
        cells = matrix.reshape(m, n, -1)
        cells = (
            cells
            - cells.sum(axis=1)[:, None, :] * columns[None, :, None]
            - rows[:, None, None] * cells.sum(axis=0)[None, :, :]
        )
        matrix = cells.reshape(m * n, m * n).T
    return matrix
