"""Rates within a part of a joint table: how common values are among the clients in some cells.

A rate is a ratio of two sums of cells. Three things keep its 95% interval honest where the
denominator is small:

- `one_step` takes one Newton step from the fitted table, without the constraint that cells are at
  least 0. A fit on the boundary is biased, and its errors are not normal: cells that should be 0
  are estimated above it, at the expense of the others. After the step, errors are normal with the
  covariance of the fit, wherever the true table lies. Estimates may be below 0.
- The interval is Fieller's (1954). The rate r = a/b lies in it if the hypothesis a − r·b = 0 is not
  rejected. This sum is linear in the table, so its error is normal, while that of a ratio is not.
- If b itself is not distinguishable from 0, any rate is possible: the interval is [0, 1].
"""

from dataclasses import dataclass

import numpy as np

from deniable.formatting import Z95
from deniable.inference.joint.evidence import Evidence
from deniable.kernels.array_types import Floats
from deniable.results.covariance import Covariance, Interval
from deniable.results.marginal import Measured

ROUNDING = 1e-8
"""Standard errors below this are those of sums that are always 1, computed with rounding."""


def one_step(evidence: Evidence, fitted: Covariance) -> Covariance:
    """Return the fitted table after one Newton step that may leave the simplex's boundary.

    fitted : the maximum-likelihood table and its covariance
    """
    gradient = evidence.evaluate(fitted.table.reshape(evidence.folded)).gradient.ravel()
    # The covariance has the rows' sums 0, so the step keeps the sum of the table. It is 0 if the
    # maximum lies inside the simplex, where all entries of the gradient are 1.
    step = evidence.weight * (fitted.matrix @ (gradient - 1.0))
    return Covariance(fitted.table + step.reshape(fitted.table.shape), fitted.matrix)


@dataclass(frozen=True)
class Rates:
    """Cells of a subgroup: shares of all clients that are in the subgroup and have each value.

    Parameters
    ----------
    cells : Covariance
        Estimated shares of all clients, float64[m], and their covariance.
    """

    cells: Covariance

    @property
    def share(self) -> Measured:
        """Share of all clients that are in the subgroup."""
        variance = max(float(self.cells.matrix.sum()), 0.0)
        return Measured.normal(float(self.cells.table.sum()), float(np.sqrt(variance)))

    @property
    def known(self) -> bool:
        """Whether the subgroup is distinguishable from an empty one, so that it has rates."""
        return self.share.low > 0

    def of(self, values: Floats) -> Interval:
        """Return the rates of sums of values within the subgroup, with Fieller's intervals.

        values : float64[k, m], 1 where a sum includes a value
        """
        if not self.known:
            nothing = np.zeros(len(values))
            return Interval(nothing * np.nan, nothing + np.inf, nothing, nothing + 1)
        whole, matrix = float(self.cells.table.sum()), self.cells.matrix
        part = values @ self.cells.table
        part_part = np.einsum("km,mn,kn->k", values, matrix, values)
        part_whole, whole_whole = values @ matrix.sum(axis=1), float(matrix.sum())
        rate = part / whole
        variance = part_part - 2 * rate * part_whole + rate**2 * whole_whole
        error = np.sqrt(np.maximum(variance, 0.0)) / whole
        error[error < ROUNDING] = 0.0
        # (part − r·whole)² ≤ z² Var(part − r·whole) is a quadratic inequality in r. The subgroup is
        # known, so its leading coefficient is above 0 and the solutions are an interval.
        leading = whole**2 - Z95**2 * whole_whole
        half = part * whole - Z95**2 * part_whole
        last = part**2 - Z95**2 * part_part
        reach = np.sqrt(np.maximum(half**2 - leading * last, 0.0))
        low, high = ((half + sign * reach) / leading for sign in (-1, 1))
        return Interval(rate, error, np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0))

    def absence_p_values(self) -> Floats:
        """Return one-sided p-values of "no client in the subgroup has this value", float64[m]."""
        return self.cells.p_values()
