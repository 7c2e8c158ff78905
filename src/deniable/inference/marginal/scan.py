"""Estimate all candidates against the residuals of a fit, in one pass.

A candidate outside the fitted set is estimated as if it alone were added to the set (partial
regression): the background and the fitted columns are removed from its column first, so that heavy
strings do not leak into light ones through shared bits. Candidates inside the set keep their joint
estimates.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np

from deniable.inference.marginal.clipping import (
    clipped_response,
    clipped_scores,
    clipping_point,
    clipping_shift,
)
from deniable.inference.marginal.design import BloomDesign
from deniable.inference.marginal.regression import BitTable, RegressionFit, stratum_sums
from deniable.kernels.array_types import Floats, Indices, Mask
from deniable.kernels.counting.gather import gather_cross

CANDIDATES_PER_BLOCK = 8192
"""Candidates whose products with the fitted columns are computed together."""


@dataclass(frozen=True, eq=False)
class Scan:
    """Results for each candidate.

    Parameters
    ----------
    estimate : float64 array of shape (m,)
        Estimated frequencies.
    variance : float64 array of shape (m,)
        Variances of the estimates if the candidates are rare.
    pair_variance : float64 array of shape (m,)
        Variance that the frequency p of a candidate adds, per unit of p(1 - p), because its h bits
        are set together.
    test, skewness : float64 arrays of shape (m,)
        Standardised test statistic of the hypothesis that a candidate is absent, and its skewness.
    identified : bool array of shape (m,)
        Whether a candidate has an estimate.
    test_error : float64 array of shape (m,)
        Frequency of a candidate by which the test statistic rises by 1.
    """

    estimate: Floats
    variance: Floats
    pair_variance: Floats
    test: Floats
    skewness: Floats
    identified: Mask
    test_error: Floats

    @cached_property
    def error(self) -> Floats:
        """Standard errors, float64[m], at the estimated frequencies."""
        share = np.clip(np.where(self.identified, self.estimate, 0.0), 0.0, 1.0)
        return np.asarray(np.sqrt(self.variance + share * (1 - share) * self.pair_variance))

    def take(self, candidates: Indices) -> Scan:
        """Return the results of some candidates, in the order given."""
        return Scan(**{field.name: getattr(self, field.name)[candidates] for field in fields(self)})


def scan_candidates(
    table: BitTable, design: BloomDesign, active: Indices, fit: RegressionFit, z_needed: float
) -> Scan:
    """Estimate all candidates: the active ones jointly, the others against the residuals."""
    shift = np.zeros(design.candidates)
    shift[active] = fit.coefficient
    clip = clipping_point(table, design, z_needed)
    sums, relative = clipped_scores(table, design, fit, shift, clip)
    length, product, _, cube, pair, _, _ = sums
    outside = np.ones(design.candidates, dtype=bool)
    outside[active] = False
    left = length.copy()
    if outside.any():
        left -= _explained(design, active, fit)
    whole = np.maximum(length, 1e-300)
    identified = (left > 1e-7 * whole) & (length > 0)
    left = np.where(identified, left, 1.0)
    left[active] = 1.0 / np.where(fit.estimable, fit.covariance.diagonal(), 1.0)
    identified[active] = fit.estimable
    estimate = product / left
    estimate[active] = fit.coefficient
    # Clipping reduces the noise of the candidate's own bits, but not the noise that reaches it
    # through the fitted columns.
    alone = np.where(length > left, 1.0 / np.maximum(length, left), 1.0 / left)
    spread = np.sqrt(relative * alone + (1.0 / left - alone))
    skewness = cube / (left * spread) ** 3
    absent = _absent_spread(table, design, active, fit)
    spread[active] *= absent
    # Third moments of rare counts shrink with the square of the standard error.
    skewness[active] /= absent
    test = (estimate - clipping_shift(sums)) / spread
    test_error = spread / clipped_response(clip)
    return Scan(estimate, 1.0 / left, pair / left**2, test, skewness, identified, test_error)


def _absent_spread(
    table: BitTable, design: BloomDesign, active: Indices, fit: RegressionFit
) -> Floats:
    """Return standard errors of active estimates if their strings were absent, relative to the fit.

    The weights of the fit include the string's own frequency. If p* is small, that frequency
    dominates the variance of its bits, and a test with these weights would find an estimate that is
    high by chance less significant the higher it is.
    """
    columns = design.indicator(active)
    owner = np.repeat(np.arange(active.size), np.diff(columns.indptr))
    stratum = columns.indices // fit.weight.shape[1]
    gain = table.gain[stratum]
    with_it = table.probability(table.frequency - fit.residual).ravel()[columns.indices]
    without = with_it - gain * np.maximum(fit.coefficient, 0.0)[owner]
    without = np.clip(without, table.low[stratum], table.high[stratum])
    less = table.moments_at(with_it, stratum)[0] - table.moments_at(without, stratum)[0]
    change = np.bincount(
        owner, fit.weight.ravel()[columns.indices] ** 2 * less, minlength=active.size
    )
    relative = 1.0 - change * np.where(fit.estimable, fit.covariance.diagonal(), 0.0)
    return np.asarray(np.sqrt(np.clip(relative, 0.05, 4.0)))


def _explained(design: BloomDesign, active: Indices, fit: RegressionFit) -> Floats:
    """Return the squared length of each column inside the span of the active ones, float64[m]."""
    explained = np.zeros(design.candidates)
    if active.size == 0:
        return explained
    columns = design.indicator(active)
    rows = columns.tocsr()
    strata, bits = fit.weight.shape
    sums = stratum_sums(columns.multiply(fit.weight.reshape(-1, 1)).tocsc(), strata, bits)
    centring = sums * fit.inverse_mass[:, None]
    for start in range(0, design.candidates, CANDIDATES_PER_BLOCK):
        stop = min(start + CANDIDATES_PER_BLOCK, design.candidates)
        cross = np.zeros((stop - start, active.size))
        own = np.zeros((stop - start, strata))
        gather_cross(
            design.positions, start, stop, fit.weight, rows.indptr, rows.indices, cross, own
        )
        cross -= own @ centring
        explained[start:stop] = np.einsum("ja,ja->j", cross @ fit.covariance, cross)
    return explained
