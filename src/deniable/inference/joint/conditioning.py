"""Rates within a part of a joint table: how common values are among the clients in some cells.

A rate is a ratio of two sums of cells. Three things keep its 95% interval honest where the
denominator is small:

- `one_step` takes one Newton step from the fitted table, without the constraint that cells are at
  least 0. A fit on the boundary is biased, and its errors are not normal: cells that should be 0
  are estimated above it, at the expense of the others. After the step, errors are normal with the
  covariance of the fit, wherever the true table lies. Estimates may be below 0.
- The interval is Fieller's; see `results.covariance.ratio_intervals`.
- If b itself is not distinguishable from 0, any rate is possible: the interval is [0, 1].
"""

from dataclasses import dataclass, replace

import numpy as np

from deniable.inference.joint.evidence import Evidence
from deniable.kernels.array_types import Floats
from deniable.results.covariance import Covariance, Interval, ratio_intervals
from deniable.results.marginal import Measured


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
        rates = ratio_intervals(values, self.cells.table, self.cells.matrix)
        low, high = np.clip(rates.low, 0.0, 1.0), np.clip(rates.high, 0.0, 1.0)
        return replace(rates, low=low, high=high)

    @property
    def covariance(self) -> Floats:
        """Covariance of the rates of all values, float64[m, m], by the delta method."""
        whole = float(self.cells.table.sum())
        if not self.known:
            return np.full_like(self.cells.matrix, np.inf)
        rates = self.cells.table / whole
        # ∂(p_j / Σp) / ∂p_i = (1[i = j] − p_j / Σp) / Σp
        jacobian = (np.eye(len(rates)) - rates[:, None]) / whole
        return np.asarray(jacobian @ self.cells.matrix @ jacobian.T)

    def absence_p_values(self) -> Floats:
        """Return one-sided p-values of "no client in the subgroup has this value", float64[m]."""
        return self.cells.p_values()
