"""Clipped scores: test statistics that a single heavy unlisted string cannot dominate.

A heavy unlisted string raises a few bits far; a false candidate that happens to share several of
them would look frequent. A string that is present raises all of its bits, so clipping each of them
costs it little. Tests therefore use residuals clipped at a few standard deviations; estimates and
intervals never do. The skewness that clipped residuals still have enters the p-values. With
clipping at four standard deviations and no skewness, three unlisted strings of 10% each at
N = 100,000 gave a family-wise error rate of .088; with all of this, .049.

Each slot is clipped by its own scatter, and the variance of a candidate's test is that of its
informative slots: short prefixes are shared by many strings and scatter much more than long ones.
"""

import numpy as np
from scipy import special

from deniable.inference.marginal.design import BloomDesign
from deniable.inference.marginal.regression import BitTable, RegressionFit
from deniable.kernels.array_types import Floats
from deniable.kernels.counting.gather import BitTables, StratumTables, gather_sums

MIN_CLIP = 2.0
"""Smallest clipping point, in standard deviations of one bit."""


def clipping_point(table: BitTable, design: BloomDesign, z_needed: float) -> float:
    """Return the clipping point, in standard deviations of one bit.

    It is 2, or more if a candidate has so few bits that, with all of them at the clipping point, it
    could not reach twice the z that detection needs.
    """
    strata = int(table.live.sum())
    if design.partial:
        per_candidate = design.informative[table.live].sum(axis=0)
        strata = int(per_candidate[per_candidate > 0].min(initial=strata))
    rows = max(strata * design.hashes, 1)
    return max(MIN_CLIP, 2.0 * z_needed / float(np.sqrt(rows)))


def clipped_scores(
    table: BitTable, design: BloomDesign, fit: RegressionFit, shift: Floats, clip: float
) -> tuple[Floats, Floats]:
    """Return the sums of `gather_sums`, float64[7, m], and the variance of the tests, float64[m].

    The variance is that of clipped residuals relative to that of unclipped ones, at most 1.

    shift : float64[m], estimates that are added to the residuals of the candidates' own bits;
    clip : clipping point in standard deviations
    """
    weight = fit.weight
    deviation = np.where(weight > 0, 1.0 / np.sqrt(np.where(weight > 0, weight, 1.0)), 0.0)
    if fit.overdispersion.any():
        # Clip by the noise of the mechanism alone, without the scatter of unlisted strings.
        deviation = np.sqrt(np.maximum(deviation**2 - fit.overdispersion[:, None], 0.0))
    limit = _limit(table, fit, deviation, clip)
    clipped = np.clip(fit.residual, -limit, limit)
    mean_excess = (weight * (fit.residual - clipped)).sum(axis=1) * fit.inverse_mass
    repeats = table.repetition.reports_per_client
    inverse_clients = np.where(table.live, repeats / np.maximum(table.total, 1.0), 0.0)
    kept = clipped + mean_excess[:, None]
    variance = _relative_variance(table, fit, kept, deviation, clip)
    by_bit = BitTables(weight, fit.residual, limit, _cubes(table, fit, kept))
    by_stratum = StratumTables(fit.inverse_mass, mean_excess, inverse_clients, variance)
    out = gather_sums(design.positions, by_bit, by_stratum, shift)
    return out, np.divide(out[6], out[0], out=np.ones(design.candidates), where=out[0] > 0)


def _relative_variance(
    table: BitTable, fit: RegressionFit, kept: Floats, deviation: Floats, clip: float
) -> Floats:
    """Return the variance of clipped residuals relative to unclipped ones, by slot, float64[S]."""
    noise = table.over_slots((fit.weight * deviation**2).sum(axis=1))
    noise /= np.maximum(table.over_slots(np.count_nonzero(fit.weight, axis=1)), 1)
    relative = np.ones(noise.size)
    if fit.freedom > 0:
        share = table.slot_share()
        squares = (
            table.over_slots((fit.weight * kept**2).sum(axis=1)) + share * fit.selection_squares
        )
        np.divide(squares, share * fit.freedom, out=relative, where=share > 0)
    return np.clip(relative, noise * _clipped_variance(clip), 1.0)


def _clipped_variance(clip: float) -> float:
    """Return the variance of a standard normal variable clipped at +-clip."""
    beyond = float(special.ndtr(-clip))
    density = float(np.exp(-0.5 * clip**2) / np.sqrt(2 * np.pi))
    return 1 - 2 * beyond - 2 * clip * density + 2 * clip**2 * beyond


def clipped_response(clip: float) -> float:
    """Return by how much a clipped residual rises if its mean rises by 1, for normal noise."""
    return 1 - 2 * float(special.ndtr(-clip))


def _limit(table: BitTable, fit: RegressionFit, deviation: Floats, clip: float) -> Floats:
    """Return the size at which each residual is clipped, float64[S, k].

    It is larger if the noise itself is skewed: three ones where a third of a one is expected are no
    sign of an unlisted string.
    """
    cubed = np.where(deviation > 0, deviation, 1.0) ** 3
    skewness = np.abs(fit.third) / cubed
    reach = clip + skewness * (clip**2 - 1) / 3
    scale = np.ones(table.slot.size)
    for slot in np.unique(table.slot):
        strata = table.slot == slot
        scale[strata] = _robust_scale(fit.residual[strata], deviation[strata])
    return np.asarray(reach * deviation * scale[:, None])


def _robust_scale(residual: Floats, deviation: Floats) -> float:
    """Return the median size of residuals in units of their noise, scaled to be at least 1.

    If there are so many reports that unlisted strings outweigh the noise on most bits, their
    scatter is what separates ordinary bits from outstanding ones.
    """
    live = deviation > 0
    if not live.any():
        return 1.0
    middle = float(np.median(np.abs(residual[live]) / deviation[live]))
    return max(1.0, 1.4826 * middle)


def clipping_shift(sums: Floats) -> Floats:
    """Return the amount by which clipping lowers each estimate, float64[m].

    An estimate is linear in the bits, and its coefficients on the candidate's own bits sum to 1. So
    clipping moves it by the weighted mean of what was clipped from these bits.
    """
    moved = np.divide(sums[2], sums[5], out=np.zeros(sums.shape[1]), where=sums[5] > 0)
    return np.asarray(moved)


def _cubes(table: BitTable, fit: RegressionFit, clipped: Floats) -> Floats:
    """Return third moments of the weighted noise, float64[S, k].

    They add those of the mechanism and those of unlisted strings. The latter are one number per
    slot, estimated from moments as the overdispersion is: E clipped^3 = third + extra.
    """
    root = fit.weight**1.5
    extra = np.zeros(table.slot.size)
    if fit.freedom > 0:
        total = table.over_slots(root.sum(axis=1))
        cubes = table.over_slots((root * (clipped**3 - fit.third)).sum(axis=1))
        np.divide(cubes, total, out=extra, where=total > 0)
    return np.asarray(fit.weight**3 * (fit.third + extra[:, None]))
