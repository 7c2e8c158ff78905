"""From estimates of all candidates to the result of a marginal decode: tests, intervals, totals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import stats

from deniable.inference.marginal.bit_counts import BitCounts
from deniable.inference.marginal.multiplicity import Correction, rejection_cutoff
from deniable.kernels.array_types import Floats, Mask
from deniable.results.marginal import Z95, Marginal, Measured


@dataclass(frozen=True, eq=False)
class Estimates:
    """Estimates of all candidates, before it is decided which of them are present.

    value, error, p_value : float64[m]; identified : bool[m], whether there is an estimate;
    typical_error : the standard error of a typical candidate that is absent, or NaN;
    groups : candidates of which only the sum is estimated, as in `Marginal`
    """

    value: Floats
    error: Floats
    p_value: Floats
    identified: Mask
    typical_error: float
    labels: tuple[str, ...] | None
    groups: tuple[tuple[int, ...], ...] = ()


def assemble(
    found: Estimates,
    counts: BitCounts,
    mass: Callable[[Mask, float], Measured],
    alpha: float,
    correction: Correction,
) -> Marginal:
    """Decide which candidates are present.

    mass : estimates what the detected ones, bool[m], sum to, given the z at which they are.
    """
    identified = found.identified.copy()
    p_value = np.where(identified, found.p_value, 1.0)
    cutoff = rejection_cutoff(p_value, alpha, correction)
    z_cut = float(stats.norm.isf(cutoff))
    estimate = np.where(identified, found.value, np.nan)
    error = np.where(identified, found.error, np.inf)
    low = np.where(identified, found.value - Z95 * found.error, 0.0)
    high = np.where(identified, found.value + Z95 * found.error, 1.0)
    for group in found.groups:
        every = list(group)
        estimate[every] /= len(group)
        low[every] = np.minimum(low[every], 0.0)
        # A member may be all of the group or none of it.
        error[every] = np.maximum(error[every], np.abs(estimate[every]))
        identified[every] = False
    detected = identified & (p_value <= cutoff)
    explained = mass(detected, z_cut)
    return Marginal(
        estimate=estimate,
        standard_error=error,
        low=low,
        high=high,
        p_value=p_value,
        detected=detected,
        identified=identified,
        groups=found.groups,
        detection_threshold=z_cut * found.typical_error,
        mass_found=explained,
        mass_unexplained=Measured.normal(1 - explained.estimate, explained.standard_error),
        background=np.zeros(counts.total.size),
        overdispersion=0.0,
        reports=counts.reports,
        alpha=alpha,
        correction=correction,
        labels=found.labels,
    )
