"""Marginal decoding: how frequent is every candidate, from bit counts alone.

Section III-A of the paper regresses bit frequencies on the candidates' Bloom bits. Here the fit
has a background per stratum, every candidate gets an unpenalised estimate with an interval
whether or not it is detected, and the correction counts all of them.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from deniable.compute.backend import one_blas_thread
from deniable.errors import InputError
from deniable.inference.marginal.bit_counts import BitCounts
from deniable.inference.marginal.multiplicity import Correction, rejection_cutoff, upper_tail
from deniable.inference.marginal.regression import BitTable, RegressionFit, fit_columns
from deniable.inference.marginal.scan import Scan, scan_candidates
from deniable.inference.marginal.selection import fit_selected, joint_limit
from deniable.inference.models.bit_channel import BitChannel
from deniable.inference.models.bloom_design import BloomDesign
from deniable.kernels.counting.gather import set_fingerprints
from deniable.results.marginal import Marginal, Measured

Floats = NDArray[np.float64]
Z95 = float(stats.norm.isf(0.025))
DENSITY_WIDTH = 0.5
MOST_ALL = 10_000


def estimate_marginal(
    counts: BitCounts,
    source: BloomDesign | BitChannel,
    *,
    alpha: float = 0.05,
    correction: Correction = "bonferroni",
    background: bool = True,
    selection: Literal["auto", "all", "lasso"] = "auto",
) -> Marginal:
    """Estimate every candidate's frequency, and decide which are present.

    background : a free constant per stratum for strings that nobody listed. Only turn it off when
        the candidates are known to be all there is.
    selection : "all" fits every candidate jointly, "lasso" fits a selected few jointly and each
        of the others against them, "auto" does the first while the design has rows enough.

    >>> design = Design(np.array([[[0, 1], [2, 3]]]), bits=8, p_star=.25, q_star=.75)
    >>> counts = BitCounts(np.array([[500, 500, 375, 375, 250, 250, 250, 250]]), np.array([1000]))
    >>> estimate_marginal(counts, design).estimate.round(3)
    array([0.5 , 0.25])
    """
    strata, bits = counts.ones.shape
    expected = (
        (source.strata, source.bits)
        if isinstance(source, BloomDesign)
        else (source.theta.shape[0], source.theta.shape[2])
    )
    if expected != (strata, bits):
        raise InputError(
            f"counts have {strata} strata of {bits} bits, the design {expected[0]} of {expected[1]}"
        )
    if selection not in ("auto", "all", "lasso"):
        raise InputError(f"selection must be 'auto', 'all' or 'lasso', got {selection!r}")
    if selection == "all" and isinstance(source, BloomDesign) and source.candidates > MOST_ALL:
        raise InputError(
            f"selection='all' inverts a matrix of all candidates and takes at most {MOST_ALL}, "
            f"got {source.candidates}; use 'auto'"
        )
    rejection_cutoff(np.ones(1), alpha, correction)
    # Small factorisations: more BLAS threads than one only wait for each other.
    with one_blas_thread():
        table = BitTable.of(counts, source, background)
        groups: tuple[tuple[int, ...], ...] = ()
        if isinstance(source, BitChannel):
            scan, fit, active = _scan_channel(table, source)
        else:
            scan, fit, active, groups = _scan_design(table, source, alpha, selection)
        return _assemble(counts, source.labels, scan, fit, active, groups, alpha, correction)


def _scan_design(
    table: BitTable, design: BloomDesign, alpha: float, selection: str
) -> tuple[Scan, RegressionFit, NDArray[np.intp], tuple[tuple[int, ...], ...]]:
    """Estimate all candidates of a sparse design; twins are fitted once, then share."""
    first, member, groups = _twins(table, design)
    unique = design if not groups else design.take(first)
    z_needed = float(stats.norm.isf(alpha / max(design.candidates, 1)))
    everything = selection == "all" or (
        selection == "auto" and unique.candidates <= joint_limit(table)
    )
    if everything or unique.candidates == 0 or not table.live.any():
        active = np.arange(unique.candidates, dtype=np.intp)
        fit = fit_columns(table, unique.indicator(active))
    else:
        active, fit = fit_selected(table, unique)
    scan = scan_candidates(table, unique, active, fit, z_needed)
    if groups:
        fields = {name: getattr(scan, name)[member] for name in Scan.__dataclass_fields__}
        scan = Scan(**fields)
    return scan, fit, first[active], groups


def _twins(
    table: BitTable, design: BloomDesign
) -> tuple[NDArray[np.intp], NDArray[np.intp], tuple[tuple[int, ...], ...]]:
    """Find candidates with the same bits in every stratum that has reports.

    Returns the first of each kind, each candidate's kind, and the groups of more than one.
    Sets are compared by sums of random 64-bit keys: two of a million different sets agree by
    accident once in 4e7 runs.
    """
    rng = np.random.default_rng(0x5E75)
    keys = rng.integers(0, 2**64, size=table.frequency.shape, dtype=np.uint64)
    keys[~table.live] = 0
    prints = np.zeros(design.candidates, dtype=np.uint64)
    set_fingerprints(design.positions, keys, prints)
    _, first, member = np.unique(prints, return_index=True, return_inverse=True)
    if first.size == design.candidates or not table.live.any():
        everyone = np.arange(design.candidates, dtype=np.intp)
        return everyone, everyone, ()
    order = np.argsort(member, kind="stable")
    parts = np.split(order, np.cumsum(np.bincount(member))[:-1])
    groups = sorted(tuple(int(i) for i in part) for part in parts if part.size > 1)
    return first, member, tuple(groups)


def _scan_channel(
    table: BitTable, channel: BitChannel
) -> tuple[Scan, RegressionFit, NDArray[np.intp]]:
    """Estimate all categories of a dense channel jointly."""
    strata, categories, bits = channel.theta.shape
    columns = np.ascontiguousarray(channel.theta.transpose(0, 2, 1)).reshape(-1, categories)
    fit = fit_columns(table, columns)
    variance = np.where(fit.estimable, fit.covariance.diagonal(), 1.0)
    centred = columns.reshape(strata, bits, categories)
    if table.background:
        mass = np.maximum(fit.weight.sum(axis=1), 1e-300)
        mean = np.einsum("sk,skm->sm", fit.weight, centred) / mass[:, None]
        centred = centred - mean[:, None, :]
    # The estimate is linear in the bits; its coefficients are rows of this matrix.
    linear = np.einsum("skm,mj->jsk", centred * fit.weight[:, :, None], fit.covariance)
    skewness = np.einsum("jsk,sk->j", linear**3, fit.third) / variance**1.5
    # What tells a category from all others, theta_j - r_(-j), with r = p_j theta_j + ... in all.
    share = np.clip(fit.coefficient, 0.0, 0.95)
    r = table.probability(table.frequency - fit.residual)
    apart = (channel.theta - r[:, None, :]) / (1 - share)[None, :, None]
    own = np.einsum("jsk,sjk->js", linear, apart) ** 2
    own -= np.einsum("jsk,sjk->js", linear**2, apart**2)
    inverse_total = np.where(table.live, 1.0 / np.maximum(table.total, 1.0), 0.0)
    pair = own @ inverse_total
    estimate = fit.coefficient
    test = estimate / np.sqrt(variance)
    scan = Scan(estimate, variance, np.maximum(pair, 0), test, skewness, fit.estimable)
    return scan, fit, np.arange(categories, dtype=np.intp)


def _assemble(
    counts: BitCounts,
    labels: tuple[str, ...] | None,
    scan: Scan,
    fit: RegressionFit,
    active: NDArray[np.intp],
    groups: tuple[tuple[int, ...], ...],
    alpha: float,
    correction: Correction,
) -> Marginal:
    """Turn the scan into tests, intervals and totals."""
    identified = scan.identified.copy()
    p_value = np.where(identified, upper_tail(scan.test, scan.skewness), 1.0)
    cutoff = rejection_cutoff(p_value, alpha, correction)
    share = np.clip(np.where(identified, scan.estimate, 0.0), 0.0, 1.0)
    error = np.sqrt(scan.variance + share * (1 - share) * scan.pair_variance)
    estimate = np.where(identified, scan.estimate, np.nan)
    error = np.where(identified, error, np.inf)
    low, high = scan.estimate - Z95 * error, scan.estimate + Z95 * error
    low, high = np.where(identified, low, 0.0), np.where(identified, high, 1.0)
    threshold = float("nan")
    if identified.any():
        typical = float(np.median(np.sqrt(scan.variance[identified])))
        threshold = float(stats.norm.isf(cutoff)) * typical
    for group in groups:
        every = list(group)
        estimate[every] /= len(group)
        low[every] = np.minimum(low[every], 0.0)
        # A member may be all of the group or none of it.
        error[every] = np.maximum(error[every], np.abs(estimate[every]))
        identified[every] = False
    detected = identified & (p_value <= cutoff)
    z_cut = float(stats.norm.isf(cutoff))
    overdispersion = float(np.sqrt(fit.overdispersion.max(initial=0.0)))
    found, rest = _masses(estimate, error, detected, z_cut, scan, fit, active)
    return Marginal(
        estimate, error, low, high, p_value, detected, identified, groups, threshold, found, rest,
        fit.level, overdispersion, counts.reports, alpha, correction, labels,
    )  # fmt: skip


def _masses(
    estimate: Floats,
    error: Floats,
    detected: NDArray[np.bool_],
    z_cut: float,
    scan: Scan,
    fit: RegressionFit,
    active: NDArray[np.intp],
) -> tuple[Measured, Measured]:
    """Estimate the true mass of the detected candidates, and the rest.

    What is reported because it is large is too large on average. For one candidate at p,
    E (estimate - p) 1{detected} = sigma * phi(z_cut - p / sigma): sigma times the density of its
    z at the cut. So the sum's excess is read off from how densely all estimates lie at the cut.
    """
    inside = detected[active]
    total = float(estimate[detected].sum())
    sigma = np.sqrt(scan.variance[scan.identified])
    distance = (scan.estimate[scan.identified] / sigma - z_cut) / DENSITY_WIDTH
    # A kernel of fourth order: a plain normal one overstates the density in its tail by half.
    kernel = (1.5 - 0.5 * distance**2) * stats.norm.pdf(distance) / DENSITY_WIDTH
    excess = sigma * kernel
    total -= float(excess.sum())
    variance = float(fit.covariance[np.ix_(inside, inside)].sum())
    alone = detected.copy()
    alone[active] = False
    variance += float((error[alone] ** 2).sum()) + float((excess**2).sum())
    if detected.any():
        share = min(max(total, 0.0), 1.0)
        variance += share * (1 - share) * float(scan.pair_variance[detected].mean())
    deviation = float(np.sqrt(variance))
    reach = Z95 * deviation
    found = Measured(total, deviation, total - reach, total + reach)
    rest = Measured(1 - total, deviation, 1 - total - reach, 1 - total + reach)
    return found, rest
