"""Marginal decoding: how frequent is every candidate, from bit counts alone.

Section III-A of the paper regresses bit frequencies on the candidates' Bloom bits. Here the fit
has a background per stratum, every candidate gets an unpenalised estimate with an interval
whether or not it is detected, and the correction counts all of them.
"""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy import stats

from deniable.compute.cpu.threads import one_blas_thread
from deniable.errors import InputError
from deniable.inference.marginal.bit_counts import BitCounts
from deniable.inference.marginal.design import BloomDesign
from deniable.inference.marginal.detection import (
    Correction,
    Estimates,
    assemble,
    rejection_cutoff,
    upper_tail,
)
from deniable.inference.marginal.regression import BitTable, RegressionFit, fit_columns
from deniable.inference.marginal.scan import Scan, scan_candidates
from deniable.inference.marginal.selection import fit_selected, joint_limit
from deniable.kernels.array_types import Indices, Mask
from deniable.kernels.counting.gather import set_fingerprints
from deniable.results.marginal import Marginal, Measured

Groups = tuple[tuple[int, ...], ...]
DENSITY_WIDTH = 0.5
MOST_ALL = 10_000


def estimate_marginal(
    counts: BitCounts,
    design: BloomDesign,
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

    >>> design = BloomDesign(np.array([[[0, 1], [2, 3]]]), bits=8, p_star=.25, q_star=.75)
    >>> counts = BitCounts(np.array([[500, 500, 375, 375, 250, 250, 250, 250]]), np.array([1000]))
    >>> estimate_marginal(counts, design).estimate.round(3)
    array([0.5 , 0.25])
    """
    strata, bits = counts.ones.shape
    if (design.strata, design.bits) != (strata, bits):
        raise InputError(
            f"counts have {strata} strata of {bits} bits, the design {design.strata} of "
            f"{design.bits}"
        )
    if selection not in ("auto", "all", "lasso"):
        raise InputError(f"selection must be 'auto', 'all' or 'lasso', got {selection!r}")
    if selection == "all" and design.candidates > MOST_ALL:
        raise InputError(
            f"selection='all' inverts a matrix of all candidates and takes at most {MOST_ALL}, "
            f"got {design.candidates}; use 'auto'"
        )
    rejection_cutoff(np.ones(1), alpha, correction)
    # Small factorisations: more BLAS threads than one only wait for each other.
    with one_blas_thread():
        table = BitTable.of(counts, design, background)
        scanned = _scan_design(table, design, alpha, selection)
        estimates = scanned.estimates(design.labels)
        found = assemble(estimates, counts, scanned.mass, alpha, correction)
    overdispersion = float(np.sqrt(scanned.fit.overdispersion.max(initial=0.0)))
    return replace(found, background=scanned.fit.level, overdispersion=overdispersion)


@dataclass(frozen=True, eq=False)
class _Scanned:
    """Every candidate's estimate, the fit of those that are active, and groups of twins."""

    scan: Scan
    fit: RegressionFit
    active: Indices
    groups: Groups

    def estimates(self, labels: tuple[str, ...] | None) -> Estimates:
        """Estimates and p-values."""
        scan = self.scan
        typical = np.sqrt(scan.variance[scan.identified])
        return Estimates(
            value=scan.estimate,
            error=scan.error,
            p_value=upper_tail(scan.test, scan.skewness),
            identified=scan.identified,
            typical_error=float(np.median(typical)) if typical.size else float("nan"),
            labels=labels,
            groups=self.groups,
        )

    def mass(self, detected: Mask, z_cut: float) -> Measured:
        """Estimate the true mass of the detected candidates.

        What is reported because it is large is too large on average. For one candidate at p,
        E (estimate - p) 1{detected} = sigma * phi(z_cut - p / sigma): sigma times the density of
        its z at the cut. So the sum's excess is read off from how densely all estimates lie at the
        cut.
        """
        scan = self.scan
        total = float(scan.estimate[detected].sum())
        sigma = np.sqrt(scan.variance[scan.identified])
        distance = (scan.estimate[scan.identified] / sigma - z_cut) / DENSITY_WIDTH
        # A kernel of fourth order: a plain normal one overstates the density in its tail by half.
        kernel = (1.5 - 0.5 * distance**2) * stats.norm.pdf(distance) / DENSITY_WIDTH
        excess = sigma * kernel
        total -= float(excess.sum())
        inside = detected[self.active]
        variance = float(self.fit.covariance[np.ix_(inside, inside)].sum())
        alone = detected.copy()
        alone[self.active] = False
        variance += float((scan.error[alone] ** 2).sum()) + float((excess**2).sum())
        if detected.any():
            share = min(max(total, 0.0), 1.0)
            variance += share * (1 - share) * float(scan.pair_variance[detected].mean())
        return Measured.normal(total, float(np.sqrt(variance)))


def _scan_design(table: BitTable, design: BloomDesign, alpha: float, selection: str) -> _Scanned:
    """Estimate all candidates of a design; twins are fitted once, then share."""
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
    return _Scanned(scan.take(member) if groups else scan, fit, first[active], groups)


def _twins(table: BitTable, design: BloomDesign) -> tuple[Indices, Indices, Groups]:
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
