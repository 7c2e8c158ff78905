"""Estimated tables with their uncertainty: standard errors, intervals, conditional rates."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from deniable.errors import InputError
from deniable.formatting import SMALLEST_P, Z95, aligned, percent
from deniable.kernels.array_types import Floats
from deniable.results.rows import ComparedByFields


@dataclass(frozen=True, eq=False, repr=False)
class Interval(ComparedByFields):
    """Estimates with standard errors and confidence intervals, as arrays of one shape.

    Parameters
    ----------
    estimate : ndarray of float64
        Estimates.
    standard_error : ndarray of float64
        Standard errors.
    low, high : ndarray of float64
        Ends of the confidence intervals.

    Examples
    --------
    >>> table = Covariance(np.array([0.4, 0.6]), np.diag([0.01, 0.01]))
    >>> table.intervals().low.round(3)
    array([0.204, 0.404])
    >>> print(table.intervals())
    40.0% (20.4% to 59.6%)
    60.0% (40.4% to 79.6%)
    """

    estimate: Floats
    standard_error: Floats
    low: Floats
    high: Floats

    def __repr__(self) -> str:
        return f"<Interval of {_shape(self.estimate)} estimates>"

    def __str__(self) -> str:
        cells = zip(*(getattr(self, n).ravel() for n in ("estimate", "low", "high")), strict=True)
        texts = [f"{percent(e)} ({percent(low)} to {percent(high)})" for e, low, high in cells]
        width = self.estimate.shape[-1] if self.estimate.ndim > 1 else 1
        rows = [texts[i : i + width] for i in range(0, len(texts), width)]
        return "\n".join(aligned(rows, [True] * width))


@dataclass(frozen=True, eq=False, repr=False)
class Covariance(ComparedByFields):
    """An estimated table of shares, and the covariance of its cells.

    Parameters
    ----------
    table : ndarray of float64
        Estimated shares, one axis per question.
    matrix : ndarray of float64, shape (cells, cells)
        Covariance of the cells in row-major order.

    Raises
    ------
    InputError
        If the shape of `matrix` does not fit `table`.

    Examples
    --------
    >>> table = Covariance(np.array([[0.1, 0.3], [0.2, 0.4]]), 0.0001 * np.eye(4))
    >>> table.conditional(0).estimate.round(2)
    array([[0.25, 0.75],
           [0.33, 0.67]])
    """

    table: Floats
    matrix: Floats

    def __post_init__(self) -> None:
        if self.matrix.shape != (self.table.size, self.table.size):
            raise InputError(
                f"matrix must be {self.table.size} × {self.table.size} for a table of shape "
                f"{self.table.shape}, got {self.matrix.shape}"
            )

    def __repr__(self) -> str:
        return f"<Covariance of a table of {_shape(self.table)} cells>"

    @property
    def standard_errors(self) -> Floats:
        """Standard error of every cell."""
        variances = np.maximum(np.diagonal(self.matrix), 0.0)
        return np.sqrt(variances).reshape(self.table.shape)

    def intervals(self, level: float = 0.95) -> Interval:
        """Return confidence intervals of the cells, clipped to [0, 1].

        Parameters
        ----------
        level : float, default 0.95
            Confidence level.

        Returns
        -------
        Interval
            Normal intervals, of the shape of the table.
        """
        return _clipped(self.table, self.standard_errors, level)

    def p_values(self) -> Floats:
        """Return the one-sided p-value, per cell, of the hypothesis that the cell is 0.

        Returns
        -------
        ndarray of float64
            P-values, of the shape of the table; those below 1e-300 as 1e-300.
        """
        from scipy.special import ndtr  # the collector shows results without SciPy

        errors = np.maximum(self.standard_errors, np.finfo(np.float64).tiny)
        p_values: Floats = np.maximum(ndtr(-self.table / errors), SMALLEST_P)
        return p_values

    def conditional(self, given: int = 0, level: float = 0.95) -> Interval:
        """Return the rates P(other questions | question `given`), by the delta method.

        Parameters
        ----------
        given : int, default 0
            Axis of the question that is conditioned on.
        level : float, default 0.95
            Confidence level.

        Returns
        -------
        Interval
            Rates of the shape of the table, which sum to 1 over the other questions. Where a
            category is estimated at 0 the rate is NaN, with the interval [0, 1].
        """
        size = self.table.shape[given]
        numbered = np.arange(self.table.size).reshape(self.table.shape)
        cells = np.moveaxis(numbered, given, 0).reshape(size, -1)
        rates, errors = np.full(self.table.size, np.nan), np.full(self.table.size, np.inf)
        for chosen in cells:
            part = self.table.ravel()[chosen]
            total = part.sum()
            if total <= 0:
                continue
            # ∂(p_j / Σp) / ∂p_j′ = (1[j = j′] − p_j / Σp) / Σp
            jacobian = (np.eye(len(part)) - (part / total)[:, None]) / total
            block = jacobian @ self.matrix[np.ix_(chosen, chosen)] @ jacobian.T
            rates[chosen] = part / total
            errors[chosen] = np.sqrt(np.maximum(np.diagonal(block), 0.0))
        shape = self.table.shape
        return _clipped(rates.reshape(shape), errors.reshape(shape), level)

    def collapsed(self, groups: Sequence[npt.ArrayLike]) -> "Covariance":
        """Add up categories.

        Parameters
        ----------
        groups : sequence of array_like of int
            `groups[v][i]` is the new category of category i of question v.

        Returns
        -------
        Covariance
            The smaller table, with its covariance.

        Raises
        ------
        InputError
            If the groups do not fit the table.
        """
        if len(groups) != self.table.ndim:
            raise InputError(
                f"expected groups for each of {self.table.ndim} questions, got {len(groups)}"
            )
        summing = np.ones((1, 1))
        shape = []
        for size, group in zip(self.table.shape, groups, strict=True):
            labels = np.asarray(group)
            if labels.shape != (size,) or labels.min() < 0:
                raise InputError(
                    f"expected a group number ≥ 0 for each of {size} categories, got {labels}"
                )
            shape.append(int(labels.max()) + 1)
            summing = np.kron(summing, np.eye(shape[-1])[labels].T)
        table = (summing @ self.table.ravel()).reshape(shape)
        return Covariance(table, summing @ self.matrix @ summing.T)


ROUNDING = 1e-8
"""Relative standard errors below this are those of sums that never vary, computed with rounding."""


def ratio_intervals(weights: Floats, shares: Floats, matrix: Floats) -> Interval:
    """Return weighted sums of shares divided by the sum of all shares, with Fieller's intervals.

    The ratio r = a/b lies in its interval (Fieller 1954) if the hypothesis a − r·b = 0 is not
    rejected at 5%. This sum is linear in the shares, so its error is normal, while that of a ratio
    is not. The sum b must be distinguishable from 0, or else any ratio is possible.

    weights : float64[k, m]; shares : float64[m]; matrix : float64[m, m], their covariance
    """
    whole, part = float(shares.sum()), weights @ shares
    part_part = np.einsum("km,mn,kn->k", weights, matrix, weights)
    part_whole, whole_whole = weights @ matrix.sum(axis=1), float(matrix.sum())
    ratio = part / whole
    variance = part_part - 2 * ratio * part_whole + ratio**2 * whole_whole
    error = np.sqrt(np.maximum(variance, 0.0)) / whole
    error[error < ROUNDING * np.abs(weights).max(initial=1.0)] = 0.0
    # (part − r·whole)² ≤ z² Var(part − r·whole) is a quadratic inequality in r. As the whole is
    # distinguishable from 0, its leading coefficient is above 0: the solutions are an interval.
    leading = whole**2 - Z95**2 * whole_whole
    half = part * whole - Z95**2 * part_whole
    last = part**2 - Z95**2 * part_part
    reach = np.sqrt(np.maximum(half**2 - leading * last, 0.0))
    return Interval(ratio, error, (half - reach) / leading, (half + reach) / leading)


def residuals(table: Floats, standard_error: Floats) -> Floats:
    """Return the differences of a table of two questions from independence, in standard errors."""
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / max(float(table.sum()), 1e-300)
    return np.asarray((table - expected) / np.maximum(standard_error, 1e-12))


def _shape(array: Floats) -> str:
    return " × ".join(map(str, array.shape))


def _clipped(estimate: Floats, error: Floats, level: float) -> Interval:
    """Return normal intervals, clipped to [0, 1]; an unknown estimate has the whole range."""
    if not 0 < level < 1:
        raise InputError(f"level must lie between 0 and 1, got {level}")
    reach = NormalDist().inv_cdf(0.5 + level / 2) * error
    low, high = np.clip(estimate - reach, 0.0, 1.0), np.clip(estimate + reach, 0.0, 1.0)
    unknown = np.isnan(estimate)
    return Interval(estimate, error, np.where(unknown, 0.0, low), np.where(unknown, 1.0, high))
