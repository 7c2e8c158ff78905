"""From estimates and p-values of all candidates to the result: which are present, and intervals."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import special, stats

from deniable.errors import InputError
from deniable.inference.marginal.bit_counts import BitCounts
from deniable.kernels.array_types import Floats, Mask
from deniable.results.marginal import Z95, Marginal, Measured

Correction = Literal["holm", "bonferroni", "fdr"] | None


def rejection_cutoff(p_value: Floats, alpha: float, correction: Correction) -> float:
    """Return the largest p-value that is rejected.

    "holm" (1979) bounds the chance of any false detection by alpha: what is detected need not be
    counted among the rest. "bonferroni" does so with less power, counting all; "fdr" (Benjamini and
    Hochberg) bounds the expected share of false ones among the detected; None tests each at alpha.

    >>> round(rejection_cutoff(np.array([.001, .015, .03, .9]), .05, "holm"), 4)
    0.025
    >>> rejection_cutoff(np.array([.001, .02, .03, .9]), .05, "bonferroni")
    0.0125
    >>> round(rejection_cutoff(np.array([.001, .02, .03, .9]), .05, "fdr"), 4)
    0.0375
    """
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
    raise InputError(f"correction must be 'holm', 'bonferroni', 'fdr' or None, got {correction!r}")


def upper_tail(z: Floats, skewness: Floats) -> Floats:
    """P(Z >= z) for a standardised variable of known skewness.

    A gamma distribution with that skewness (Pearson's third type) replaces the normal: where p* is
    small, counts are nearly Poisson, and at the z = 4 of a corrected test a skewness of 0.1
    already makes the normal tail too small by a factor of three.

    >>> upper_tail(np.array([1.96]), np.zeros(1)).round(3)
    array([0.025])
    """
    p = special.ndtr(-z)
    # Below this skewness the two tails agree to 1% even at z = 5.
    skewed = np.abs(skewness) > 5e-4
    shape = 4.0 / np.square(skewness, where=skewed, out=np.ones_like(skewness))
    point = shape + z * np.sqrt(shape) * np.sign(skewness)
    point = np.maximum(point, 0.0)
    tail = np.where(skewness > 0, special.gammaincc(shape, point), special.gammainc(shape, point))
    return np.asarray(np.where(skewed, tail, p))


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
