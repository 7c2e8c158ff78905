"""Decide which candidates are present, from estimates and p-values of all of them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from deniable.errors import InputError, check_number, did_you_mean
from deniable.formatting import Z95
from deniable.inference.distributions import normal_quantile, pearson3_quantile
from deniable.inference.marginal.bit_counts import BitCounts
from deniable.inference.marginal.tails import p_values
from deniable.kernels.array_types import Floats, Mask
from deniable.results.marginal import Marginal, Measured

Correction = Literal["holm", "bonferroni", "fdr"] | None


def rejection_cutoff(p_value: Floats, alpha: float, correction: Correction) -> float:
    """Return the largest p-value that counts as a detection.

    Parameters
    ----------
    p_value : float64 array
        p-values of all candidates.
    alpha : float
        Significance level.
    correction : {"holm", "bonferroni", "fdr"} or None
        "holm" (1979) bounds the family-wise error rate by alpha; "bonferroni" does so with less
        power. "fdr" (Benjamini and Hochberg) bounds the expected share of false detections among
        all detections. None tests each candidate at alpha.

    Examples
    --------
    >>> round(rejection_cutoff(np.array([.001, .015, .03, .9]), .05, "holm"), 4)
    0.025
    >>> rejection_cutoff(np.array([.001, .02, .03, .9]), .05, "bonferroni")
    0.0125
    >>> round(rejection_cutoff(np.array([.001, .02, .03, .9]), .05, "fdr"), 4)
    0.0375
    """
    check_number("alpha", alpha)
    if not 0 < alpha < 1:
        raise InputError(f"alpha must lie strictly between 0 and 1, got {alpha}")
    tests = max(p_value.size, 1)
    if correction is None:
        return alpha
    if correction == "bonferroni":
        return alpha / tests
    if correction == "holm":
        passed = np.sort(p_value) <= alpha / np.arange(p_value.size, 0, -1)
        return alpha / max(p_value.size - int(np.append(passed, False).argmin()), 1)
    if correction == "fdr":
        ordered = np.sort(p_value)
        line = alpha * np.arange(1, p_value.size + 1) / tests
        below = np.flatnonzero(ordered <= line)
        return float(line[below[-1]]) if below.size else alpha / tests
    hint = did_you_mean(correction, ("holm", "bonferroni", "fdr"))
    raise InputError(
        f"correction must be 'holm', 'bonferroni', 'fdr' or None, got {correction!r}.{hint}"
    )


@dataclass(frozen=True, eq=False)
class Estimates:
    """Estimates of all candidates, before detection.

    Parameters
    ----------
    value, error, log_p_value : float64 arrays of shape (m,)
        Estimates, standard errors, and logarithms of the p-values of the hypothesis that a
        candidate is absent.
    identified : bool array of shape (m,)
        Whether a candidate has an estimate.
    threshold : callable
        Returns the frequency at which half of the candidates have a p-value of at most its
        argument; above 1 if there is none.
    labels : tuple of str, optional
        The candidates.
    groups : tuple of tuples of int
        Candidates of which only the sum can be estimated, as in `Marginal`.
    below, above : float or float64 arrays of shape (m,)
        Number of standard errors from an estimate to each end of its 95% interval.
    """

    value: Floats
    error: Floats
    log_p_value: Floats
    identified: Mask
    threshold: Callable[[float], float]
    labels: tuple[str, ...] | None
    groups: tuple[tuple[int, ...], ...] = ()
    below: Floats | float = Z95
    above: Floats | float = Z95


def threshold_of(error: float, skewness: float = 0.0) -> Callable[[float], float]:
    """Return the threshold of a continuous test as a function of the largest accepted p-value.

    error : frequency by which the test statistic of a typical candidate rises by 1, or NaN
    skewness : skewness of the test statistic of a typical candidate that is absent
    """
    return lambda cutoff: float(pearson3_quantile(cutoff, skewness)) * error


def detect(
    estimates: Estimates,
    counts: BitCounts,
    mass: Callable[[Mask, float], Measured],
    alpha: float,
    correction: Correction,
) -> Marginal:
    """Decide which candidates are present, and return the marginal.

    mass : estimates the sum of the detected candidates, bool[m], given the z of the cut-off
    """
    identified = estimates.identified.copy()
    log_p_value = np.where(identified, estimates.log_p_value, 0.0)
    p_value = p_values(log_p_value)
    cutoff = rejection_cutoff(p_value, alpha, correction)
    z_cut = normal_quantile(cutoff)
    estimate = np.where(identified, estimates.value, np.nan)
    error = np.where(identified, estimates.error, np.inf)
    low = np.where(identified, estimates.value - estimates.below * estimates.error, 0.0)
    high = np.where(identified, estimates.value + estimates.above * estimates.error, 1.0)
    for group in estimates.groups:
        members = list(group)
        estimate[members] /= len(group)
        low[members] = np.minimum(low[members], 0.0)
        # One member may account for the whole group, or for none of it.
        error[members] = np.maximum(error[members], np.abs(estimate[members]))
        identified[members] = False
    detected = identified & (p_value <= cutoff)
    found = mass(detected, z_cut)
    return Marginal(
        estimate=estimate,
        standard_error=error,
        low=low,
        high=high,
        p_value=p_value,
        detected=detected,
        identified=identified,
        groups=estimates.groups,
        detection_threshold=min(estimates.threshold(cutoff), 1.0),
        mass_found=found,
        mass_unexplained=Measured(
            1 - found.estimate, found.standard_error, 1 - found.high, 1 - found.low
        ),
        background=np.zeros(counts.total.size),
        overdispersion=0.0,
        reports=counts.reports,
        alpha=alpha,
        correction=correction,
        labels=estimates.labels,
        log_p_value=log_p_value,
    )
