"""Cramér's V of an estimated joint distribution, with an interval.

V² = φ² / (min(m, n) − 1), φ² = Σ_ij (p_ij − p_i· p_·j)² / (p_i· p_·j). Plugging in the estimated
table overstates it, because noise adds to every square, and the constraint p ≥ 0 distorts it again.
So we start from the *unconstrained* estimate p̃ = p̂ + Σ̂·l′(p̂) (one Newton step without p ≥ 0,
equal to p̂ where no cell is at 0), which is close to N(p, Σ̂). With δ the excess over independence,
W = diag(1/μ) and S the covariance of δ, the quadratic form Q = δᵀWδ has mean φ² + tr(WS) and
variance 2 tr((WS)²) + 4 δᵀWSWδ. The estimate is Q − tr(WS), and the interval holds every φ² that
Q does not contradict. Categories that may be empty (a margin below three standard errors) would
divide by next to nothing: V is that of the others.
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

CLEAR = 3.0


def cramers_v(
    evidence: Evidence,
    covariance: Covariance,
    *,
    groups: Sequence[Indices] | None = None,
) -> EffectSize:
    """Estimate Cramér's V of two variables from their fitted table and its covariance.

    groups : V of the table in which categories are added up; see `Covariance.collapsed`.
    """
    with one_blas_thread():
        table = covariance.table
        score = evidence.weight * (evidence.evaluate(table.reshape(evidence.folded)).gradient - 1.0)
        free = table + (covariance.matrix @ score.ravel()).reshape(table.shape)
        if groups is not None:
            free = Covariance(free, covariance.matrix).collapsed(groups).table
            covariance = covariance.collapsed(groups)
        return cramers_v_of(free, covariance, evidence.weight)


def cramers_v_of(free: Floats, covariance: Covariance, reports: float) -> EffectSize:
    """The same from an unconstrained estimate p̃ of the table and its covariance."""
    table = covariance.table
    if table.ndim != 2 or min(table.shape) < 2:
        raise InputError(f"two variables of two or more categories needed, got {table.shape}")
    there = [_present(covariance, side) for side in (0, 1)]
    if min(int(some.sum()) for some in there) < 2:
        return EffectSize(0.0, 0.0, 1.0)
    chosen = np.ix_(*there)
    cells = np.flatnonzero(np.logical_and.outer(*there))
    whole = float(table[chosen].sum())
    table, free = table[chosen] / whole, free[chosen] / free[chosen].sum()
    covariance = Covariance(table, covariance.matrix[np.ix_(cells, cells)] / whole**2)
    rows, columns = (np.maximum(table.sum(axis=side), 1.0 / reports) for side in (1, 0))
    weights = 1.0 / np.outer(rows, columns).ravel()
    excess = (free - np.outer(free.sum(axis=1), free.sum(axis=0))).ravel()
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
    """bool[categories of this side]: whose margin is clearly above 0."""
    table = covariance.table
    over = covariance.matrix.reshape(*table.shape, *table.shape).sum(axis=(1 - side, 3 - side))
    error = np.sqrt(np.maximum(np.diag(over), 0.0))
    return np.asarray(table.sum(axis=1 - side) > CLEAR * error)


def _excess_covariance(matrix: Floats, rows: Floats, columns: Floats) -> Floats:
    """Covariance of p_ij − p_i· p_·j, to first order: both sides lose their margins."""
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
