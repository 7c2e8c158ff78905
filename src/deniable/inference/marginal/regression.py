"""Weighted regression of bit frequencies on candidates, with a background per stratum.

The response is the unbiased frequency of each bit, t = (c - p* N_s) / ((q* - p*) N_s). Unlisted
strings raise every bit by about their mass times h/k, so each stratum has a free constant in
addition to the candidates. It is eliminated, and never stored as a column.

The variance of t has two parts. Counts are binomial: r(1 - r) / (N_s (q* - p*)^2) with the fitted
P(bit = 1) as r, and more if clients sent several reports each; see `Repetition`. In addition, each
slot has an overdispersion, because unlisted strings set some bits and not others (short prefixes
are shared by more strings than long ones). The weights use fitted, not observed, frequencies:
weights that follow the noise would bias the estimates.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from deniable.compute.executors import one_blas_thread
from deniable.inference.marginal.bit_counts import BitCounts, Repetition
from deniable.inference.marginal.design import BloomDesign
from deniable.kernels.array_types import Floats, Indices, Int64s, Mask

MIN_COLUMNS_FOR_THREADS = 1000
"""Number of columns from which on a factorisation uses several threads."""
MIN_COLUMNS_FOR_LAPACK = 256
"""Number of columns from which on half the time of an inversion is worth an import."""
MIN_PIVOT = 1e-4
"""Smallest pivot of a matrix that is inverted directly."""
MIN_FREEDOM = 15 / 16
"""Degrees of freedom per row below which columns explain a good part of the overdispersion."""


@dataclass(frozen=True, eq=False)
class BitTable:
    """Bit frequencies, and the parameters of their noise.

    Parameters
    ----------
    frequency : float64 array of shape (S, k)
        Unbiased frequency of each bit; 0 in empty strata.
    total : float64 array of shape (S,)
        Number of reports.
    offset, gain : float64 arrays of shape (S,)
        P(bit = 1) = offset + gain * frequency.
    low, high : float64 arrays of shape (S,)
        Range of P(bit = 1).
    background : bool
        Whether each stratum has a free constant.
    slot : int64 array of shape (S,)
        Slot of each stratum.
    repetition : Repetition
        Number of reports per client, and what they share.
    """

    frequency: Floats
    total: Floats
    offset: Floats
    gain: Floats
    low: Floats
    high: Floats
    background: bool
    slot: Int64s
    repetition: Repetition

    @classmethod
    def of(cls, counts: BitCounts, design: BloomDesign, background: bool) -> BitTable:
        """Return the unbiased frequencies of counts."""
        total = counts.total.astype(np.float64)
        offset, gain = design.p, design.q - design.p
        low, high = np.minimum(design.p, design.q), np.maximum(design.p, design.q)
        # A probability of exactly 0 or 1 would get infinite weight from a finite sample.
        floor = 0.5 / (total + 1.0)
        low, high = np.where(low > 0, low, floor), np.where(high < 1, high, 1.0 - floor)
        share = counts.ones / np.maximum(total, 1.0)[:, None]
        frequency = (share - offset[:, None]) / gain[:, None]
        frequency[total == 0] = 0.0
        slot = np.zeros(total.size, np.int64) if design.slot is None else design.slot
        high = np.maximum(low, high)
        return cls(frequency, total, offset, gain, low, high, background, slot, counts.repetition)

    @property
    def live(self) -> Mask:
        """Whether each stratum has reports, bool[S]."""
        return self.total > 0

    def over_slots(self, values: NDArray[np.generic]) -> Floats:
        """Sum values[S] over the strata of the same slot, float64[S]."""
        return np.asarray(np.bincount(self.slot, values)[self.slot])

    def slot_share(self) -> Floats:
        """Return the share of each stratum's slot in all rows with reports, float64[S]."""
        return self.over_slots(self.live) / max(int(self.live.sum()), 1)

    def probability(self, fitted: Floats) -> Floats:
        """Return P(bit = 1) at fitted frequencies[S, k], clipped to its range."""
        r = self.offset[:, None] + self.gain[:, None] * fitted
        return np.clip(r, self.low[:, None], self.high[:, None])

    def moments(self, fitted: Floats) -> tuple[Floats, Floats]:
        """Return the variance and third central moment of `frequency`, [S, k] each."""
        strata = np.arange(self.total.size)[:, None]
        return self.moments_at(self.probability(fitted), strata)

    def moments_at(self, r: Floats, stratum: Indices) -> tuple[Floats, Floats]:
        """Return the variance and third central moment of a frequency with P(bit = 1) = r."""
        size, gain = np.maximum(self.total, 1.0)[stratum], self.gain[stratum]
        offset = self.offset[stratum]
        variance, third = self.repetition.moments(r, offset, offset + gain)
        return variance / (size * gain**2), third / (size**2 * gain**3)


@dataclass(frozen=True, eq=False)
class RegressionFit:
    """A weighted least-squares fit of a candidates.

    Parameters
    ----------
    coefficient : float64 array of shape (a,)
        Estimates.
    covariance : float64 array of shape (a, a)
        Their covariance.
    estimable : bool array of shape (a,)
        Whether the data determine a coefficient.
    residual, weight, third : float64 arrays of shape (S, k)
        Residuals, weights (0 in empty strata), and third central moments of the noise.
    level, overdispersion : float64 arrays of shape (S,)
        Background, and variance beyond the binomial one.
    freedom : int
        Residual degrees of freedom.
    selection_squares : float
        See `fit_columns`.
    inverse_mass : float64 array of shape (S,)
        1 / (sum of the weights) of a stratum with a background, else 0.
    """

    coefficient: Floats
    covariance: Floats
    estimable: Mask
    residual: Floats
    weight: Floats
    third: Floats
    level: Floats
    overdispersion: Floats
    freedom: int
    selection_squares: float
    inverse_mass: Floats


def fit_columns(
    table: BitTable, columns: sparse.csc_matrix, selection_squares: float = 0.0
) -> RegressionFit:
    """Regress the table on columns[S * k, a]: once for the weights, once for the estimates.

    selection_squares : sum of squares, in units of variance, by which choosing the columns on the
        same data has reduced the residuals beyond one per column.
    """
    start = np.average(table.frequency, axis=1) if table.frequency.size else table.total
    variance, third = table.moments(np.broadcast_to(start[:, None], table.frequency.shape))
    extra = np.zeros(table.total.size)
    fit = _solve(table, columns, _inverse(variance, table.live), third, extra, selection_squares)
    variance, third = table.moments(table.frequency - fit.residual)
    if fit.freedom > 0:
        extra = _overdispersion(table, fit, _inverse(variance, table.live))
    weight = _inverse(variance + extra[:, None], table.live)
    return _solve(table, columns, weight, third, extra, selection_squares)


def _overdispersion(table: BitTable, fit: RegressionFit, weight: Floats) -> Floats:
    """Estimate the overdispersion of each slot by moments, float64[S].

    In each slot, E sum(w residual^2) = freedom + overdispersion * sum(w), less what the columns
    explain of the overdispersion, which is much only if they are many for the number of rows.
    """
    known = table.over_slots(weight.sum(axis=1))
    left = fit.freedom / np.count_nonzero(weight)
    known *= left if left < MIN_FREEDOM else 1.0
    excess = table.over_slots((weight * fit.residual**2).sum(axis=1))
    excess -= table.slot_share() * (fit.freedom - fit.selection_squares)
    extra = np.divide(excess, known, out=np.zeros_like(excess), where=known > 0)
    return np.asarray(np.maximum(extra, 0.0))


def _inverse(variance: Floats, live: Mask) -> Floats:
    """Return weights: inverse variances, and 0 in empty strata."""
    return np.where(live[:, None], 1.0 / np.maximum(variance, 1e-300), 0.0)


def _solve(
    table: BitTable,
    columns: sparse.csc_matrix,
    weight: Floats,
    third: Floats,
    extra: Floats,
    selection_squares: float,
) -> RegressionFit:
    """Solve the weighted least-squares problem; weight, third : float64[S, k]; extra : [S]."""
    strata, bits = weight.shape
    w, y = weight.ravel(), table.frequency.ravel()
    weighted = sparse.csc_matrix(columns.multiply(w[:, None]))
    gram = np.asarray((columns.T @ weighted).toarray())
    uncentred = gram.diagonal().copy()
    target = np.asarray(weighted.T @ y)
    mass = weight.sum(axis=1) * table.background
    inverse_mass = np.divide(1.0, mass, out=np.zeros(strata), where=mass > 0)
    sums = stratum_sums(weighted, strata, bits)
    gram -= sums.T @ (sums * inverse_mass[:, None])
    target -= sums.T @ ((weight * table.frequency).sum(axis=1) * inverse_mass)
    covariance, estimable, rank = invert_gram(gram, uncentred)
    coefficient = covariance @ target
    unexplained = (y - np.asarray(columns @ coefficient)).reshape(strata, bits)
    level = (weight * unexplained).sum(axis=1) * inverse_mass
    residual = np.where(weight > 0, unexplained - level[:, None], 0.0)
    live = int(table.live.sum())
    return RegressionFit(
        coefficient=coefficient,
        covariance=covariance,
        estimable=estimable,
        residual=residual,
        weight=weight,
        third=third,
        level=level,
        overdispersion=extra,
        freedom=live * (bits - table.background) - rank,
        selection_squares=selection_squares,
        inverse_mass=inverse_mass,
    )


def stratum_sums(weighted: sparse.csc_matrix, strata: int, bits: int) -> Floats:
    """Return the sum of each column within each stratum, float64[S, a]."""
    block = np.repeat(np.arange(strata), bits)
    adder = sparse.csr_matrix((np.ones(block.size), (block, np.arange(block.size))))
    return np.asarray((adder @ weighted).toarray())


def invert_gram(gram: Floats, uncentred: Floats) -> tuple[Floats, Mask, int]:
    """Return the pseudo-inverse of a Gram matrix, which coefficients it determines, and the rank.

    uncentred : float64[a], squared lengths of the columns before the background was removed. A
        column that keeps less than 1e-9 of it is not estimable.
    """
    size = gram.shape[0]
    if size == 0:
        return gram, np.zeros(0, dtype=bool), 0
    present = gram.diagonal() > 1e-9 * uncentred
    scale = np.where(present, 1.0 / np.sqrt(np.where(present, gram.diagonal(), 1.0)), 0.0)
    unit = gram * scale[:, None] * scale
    # Threads do not pay for small matrices: with other work running, 100 columns took 80 ms on two
    # threads and 1 ms on one.
    with one_blas_thread() if size < MIN_COLUMNS_FOR_THREADS else nullcontext():
        if present.all():
            inverse = _positive_inverse(unit)
            if inverse is not None:
                return inverse * scale[:, None] * scale, present, size
        value, vector = np.linalg.eigh(unit)
        keep = value > 1e-8 * max(value[-1], 1.0)
        kept = vector[:, keep]
        inverse = (kept / value[keep]) @ kept.T
        determined = present & (np.abs((kept**2).sum(axis=1) - 1.0) < 1e-6)
        return inverse * scale[:, None] * scale, determined, int(keep.sum())


def _positive_inverse(unit: Floats) -> Floats | None:
    """Return the inverse of a matrix with a diagonal of ones; None if it is nearly singular."""
    try:
        factor = np.asarray(np.linalg.cholesky(unit), np.float64)
    except np.linalg.LinAlgError:
        return None
    # A pivot is the share of a column that the columns before it do not explain.
    if factor.diagonal().min() <= MIN_PIVOT:
        return None
    if len(unit) < MIN_COLUMNS_FOR_LAPACK:
        inverse = np.linalg.inv(unit)
        return np.asarray((inverse + inverse.T) / 2)
    from scipy.linalg.lapack import dpotri

    lower, _ = dpotri(factor, lower=1)
    return np.asarray(np.tril(lower) + np.tril(lower, -1).T)
