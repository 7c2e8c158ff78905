"""Marginals of strings in Bloom filters, by regression on bit counts.

Section III-A of the paper regresses bit frequencies on the candidates' Bloom bits. This regression
has a background per stratum, every candidate gets an unpenalised estimate with an interval whether
it is detected or not, and the correction for multiple tests counts all candidates.
"""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from deniable.compute.executors import one_blas_thread
from deniable.errors import InputError
from deniable.inference.distributions import normal_quantile
from deniable.inference.marginal.bit_counts import BitCounts
from deniable.inference.marginal.design import BloomDesign
from deniable.inference.marginal.detection import (
    Correction,
    Estimates,
    detect,
    rejection_cutoff,
    threshold_of,
)
from deniable.inference.marginal.heavy_unlisted import (
    RandomBits,
    compare_with_random_bits,
    has_heavy_unlisted,
    reach_of_intervals,
    select_by_ranks,
)
from deniable.inference.marginal.regression import BitTable, RegressionFit, fit_columns
from deniable.inference.marginal.scan import Scan, scan_candidates
from deniable.inference.marginal.selection import fit_selected, joint_limit
from deniable.inference.marginal.tails import log_upper_tail
from deniable.kernels.array_types import Floats, Indices, Mask
from deniable.kernels.counting.gather import position_set_fingerprints
from deniable.results.marginal import Marginal, Measured

Groups = tuple[tuple[int, ...], ...]
DENSITY_WIDTH = 0.5
"""Width of the kernel that estimates the density of z at the cut-off."""
MAX_FITTED_TOGETHER = 10_000
"""Maximum number of candidates of selection="all", which inverts a matrix of that size."""


def estimate_marginal(
    counts: BitCounts,
    design: BloomDesign,
    *,
    alpha: float = 0.05,
    correction: Correction = "bonferroni",
    background: bool = True,
    selection: Literal["auto", "all", "lasso"] = "auto",
) -> Marginal:
    """Estimate the frequency of each candidate, and decide which are present.

    Parameters
    ----------
    counts : BitCounts
        Counts of all reports.
    design : BloomDesign
        Bits of the candidates.
    alpha : float
        Significance level.
    correction : {"holm", "bonferroni", "fdr"} or None
        How `alpha` accounts for several candidates; see `rejection_cutoff`.
    background : bool
        Whether each stratum has a free constant for unlisted strings. Turn it off only if there are
        no unlisted strings.
    selection : {"auto", "all", "lasso"}
        "all" fits all candidates jointly. "lasso" fits a selection jointly, and each other
        candidate against it. "auto" fits all candidates jointly if the design has enough rows.

    Examples
    --------
    >>> design = BloomDesign(np.array([[[0, 1], [2, 3]]]), bits=8, p_star=.25, q_star=.75)
    >>> counts = BitCounts(np.array([[500, 500, 375, 375, 250, 250, 250, 250]]), np.array([1000]))
    >>> estimate_marginal(counts, design).estimate.round(3)
    array([0.5 , 0.25])
    """
    strata, bits = counts.ones.shape
    if (design.strata, design.bits) != (strata, bits):
        raise InputError(
            f"the counts have {strata} strata of {bits} bits, but the design has {design.strata} "
            f"strata of {design.bits} bits"
        )
    if selection not in ("auto", "all", "lasso"):
        raise InputError(f"selection must be 'auto', 'all' or 'lasso', got {selection!r}")
    if selection == "all" and design.candidates > MAX_FITTED_TOGETHER:
        raise InputError(
            f"selection='all' takes at most {MAX_FITTED_TOGETHER} candidates, got "
            f"{design.candidates}; use 'auto'"
        )
    rejection_cutoff(np.ones(1), alpha, correction)
    # The matrices are so small that several BLAS threads would only wait for each other.
    with one_blas_thread():
        table = BitTable.of(counts, design, background)
        scanned = _scan_design(table, design, alpha, selection)
        estimates = scanned.estimates(design.labels)
        marginal = detect(estimates, counts, scanned.mass, alpha, correction)
    overdispersion = float(np.sqrt(scanned.fit.overdispersion.max(initial=0.0)))
    return replace(marginal, background=scanned.fit.level, overdispersion=overdispersion)


@dataclass(frozen=True, eq=False)
class _Scanned:
    """Estimates of all candidates, the joint fit of the active ones, and equal candidates.

    Parameters
    ----------
    scan : Scan
        Estimates of all candidates.
    fit : RegressionFit
        Joint fit of the active candidates.
    active : intp array
        The active candidates.
    groups : tuple of tuples of int
        Groups of candidates that set the same bits everywhere.
    clients : float
        Number of clients that sent the reports.
    reach : pair of float64 arrays of shape (m,)
        Number of standard errors from an estimate to the lower and upper end of its interval.
    random_bits : RandomBits, optional
        Tests and shapes of intervals if there are heavy unlisted strings.
    """

    scan: Scan
    fit: RegressionFit
    active: Indices
    groups: Groups
    clients: float
    reach: tuple[Floats, Floats]
    random_bits: RandomBits | None

    def estimates(self, labels: tuple[str, ...] | None) -> Estimates:
        """Return estimates and p-values for detection."""
        scan = self.scan
        typical = [array[scan.identified] for array in (scan.test_error, scan.skewness)]
        typical_error, skewness = (float(np.median(a)) if a.size else np.nan for a in typical)
        estimates = Estimates(
            value=scan.estimate,
            error=scan.error,
            log_p_value=log_upper_tail(scan.test, scan.skewness),
            identified=scan.identified,
            threshold=threshold_of(typical_error, skewness),
            labels=labels,
            groups=self.groups,
            below=self.reach[0],
            above=self.reach[1],
        )
        if self.random_bits is None:
            return estimates
        bits = self.random_bits
        return replace(
            estimates,
            log_p_value=bits.log_p_value,
            threshold=bits.threshold,
            below=bits.below,
            above=bits.above,
        )

    def mass(self, detected: Mask, z_cut: float) -> Measured:
        """Estimate the sum of the true frequencies of the detected candidates.

        Estimates that are reported because they are large are too large on average. For a candidate
        of frequency p, E (estimate - p) 1{detected} = sigma * phi(z_cut - p / sigma): sigma times
        the density of its z at the cut-off. So the excess of the sum follows from the density of
        all estimates at the cut-off.

        The fit takes the bits as independent. But a client holds one string only, so the strings
        of n clients vary together: their sum P varies by P(1 - P) / n, not by the sum of
        p(1 - p) / n.
        """
        scan = self.scan
        total = float(scan.estimate[detected].sum())
        if self.random_bits is not None:
            return self.random_bits.sum_of(total, np.where(detected, scan.error, 0.0))
        sigma = np.sqrt(scan.variance[scan.identified])
        distance = (scan.estimate[scan.identified] / sigma - z_cut) / DENSITY_WIDTH
        # A kernel of fourth order: a normal kernel overstates the density in its tail by half.
        kernel = (
            (1.5 - 0.5 * distance**2)
            * np.exp(-(distance**2) / 2)
            / np.sqrt(2 * np.pi)
            / DENSITY_WIDTH
        )
        excess = sigma * kernel
        total -= float(excess.sum())
        inside = detected[self.active]
        variance = float(self.fit.covariance[np.ix_(inside, inside)].sum())
        alone = detected.copy()
        alone[self.active] = False
        variance += float((scan.error[alone] ** 2).sum()) + float((excess**2).sum())
        if detected.any():
            share = min(max(total, 0.0), 1.0)
            pairs = float(scan.pair_variance[detected].mean())
            squares = float(np.square(scan.estimate[detected]).sum())
            excluded = max(share**2 - squares, 0.0) * max(1 / self.clients - pairs, 0.0)
            variance += share * (1 - share) * pairs
            variance = max(variance - excluded, variance / 4)
        return Measured.normal(total, float(np.sqrt(variance)))


def _scan_design(table: BitTable, design: BloomDesign, alpha: float, selection: str) -> _Scanned:
    """Estimate all candidates of a design. Candidates with the same bits are fitted once."""
    first, member, groups = _equal_candidates(table, design)
    unique = design if not groups else design.take(first)
    z_needed = normal_quantile(alpha / max(design.candidates, 1))
    fit_all = selection == "all" or (
        selection == "auto" and unique.candidates <= joint_limit(table)
    )
    fit_all = fit_all or unique.candidates == 0 or not table.live.any()
    if fit_all:
        active = np.arange(unique.candidates, dtype=np.intp)
        fit = fit_columns(table, unique.indicator(active))
    else:
        active, fit = fit_selected(table, unique)
    random_bits = None
    if unique.candidates > 0 and has_heavy_unlisted(table, fit):
        if selection == "auto" and not fit_all:
            active, fit, random_bits = select_by_ranks(table, unique, alpha)
        else:
            random_bits = compare_with_random_bits(table, unique, active, fit)
    scan = scan_candidates(table, unique, active, fit, z_needed)
    clients = float(table.total.sum()) / table.repetition.reports_per_client
    random_bits = random_bits.take(member) if random_bits else None
    below, above = (ends[member] for ends in reach_of_intervals(table, unique, fit))
    scan = scan.take(member) if groups else scan
    return _Scanned(scan, fit, first[active], groups, clients, (below, above), random_bits)


def _equal_candidates(table: BitTable, design: BloomDesign) -> tuple[Indices, Indices, Groups]:
    """Find candidates that set the same bits in every stratum that has reports.

    Return the first candidate of each set of bits, the set of each candidate, and the groups of
    several candidates. Sets are compared by sums of random 64-bit keys: two of a million different
    sets have the same sum once in 4e7 runs.
    """
    rng = np.random.default_rng(0x5E75)
    keys = rng.integers(0, 2**64, size=table.frequency.shape, dtype=np.uint64)
    keys[~table.live] = 0
    prints = position_set_fingerprints(design.positions, keys)
    _, first, member = np.unique(prints, return_index=True, return_inverse=True)
    if first.size == design.candidates or not table.live.any():
        every = np.arange(design.candidates, dtype=np.intp)
        return every, every, ()
    order = np.argsort(member, kind="stable")
    parts = np.split(order, np.cumsum(np.bincount(member))[:-1])
    groups = sorted(tuple(int(i) for i in part) for part in parts if part.size > 1)
    return first, member, tuple(groups)
