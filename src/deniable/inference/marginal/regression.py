"""Weighted regression of bit frequencies on candidate columns, with a background per stratum.

The response is the unbiased frequency of every bit, t = (c - p* N_s) / ((q* - p*) N_s). Strings
that nobody listed lift every bit by about their mass times h/k, so each stratum has a free
constant beside the candidates; it is eliminated, never stored as a column.

Variance of t: counts are binomial, r(1 - r) / (N_s (q* - p*)^2) with r the fitted P(bit = 1), plus
for each slot one overdispersion for the scatter that unlisted strings cause by hitting some bits
and not others (short prefixes are shared by more strings than long ones).
The weights use fitted, not observed, frequencies: weights that follow the noise would bias the
estimates.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from deniable.compute.cpu.threads import one_blas_thread
from deniable.inference.marginal.bit_counts import BitCounts
from deniable.inference.marginal.design import BloomDesign
from deniable.kernels.array_types import Floats, Int64s, Mask

ONE_THREAD_BELOW = 1000
"""Columns below which a factorisation runs on one thread."""


@dataclass(frozen=True, eq=False)
class BitTable:
    """Bit frequencies and what their noise depends on.

    frequency : float64[S, k], 0 in empty strata; total : float64[S], reports;
    offset, gain : float64[S], P(bit = 1) = offset + gain * frequency;
    low, high : float64[S], range that P(bit = 1) can take;
    background : whether each stratum has a free constant; slot : int64[S], as in `BloomDesign`.
    """

    frequency: Floats
    total: Floats
    offset: Floats
    gain: Floats
    low: Floats
    high: Floats
    background: bool
    slot: Int64s

    @classmethod
    def of(cls, counts: BitCounts, design: BloomDesign, background: bool) -> BitTable:
        """Turn counts into unbiased frequencies."""
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
        return cls(frequency, total, offset, gain, low, np.maximum(low, high), background, slot)

    @property
    def live(self) -> Mask:
        """Strata with reports, bool[S]."""
        return self.total > 0

    def over_slots(self, values: NDArray[np.generic]) -> Floats:
        """Sums of values[S] over the strata of each stratum's slot, float64[S]."""
        return np.asarray(np.bincount(self.slot, values)[self.slot])

    def slot_share(self) -> Floats:
        """The share of each stratum's slot in all rows that have reports, float64[S]."""
        return self.over_slots(self.live) / max(int(self.live.sum()), 1)

    def probability(self, fitted: Floats) -> Floats:
        """P(bit = 1) at fitted frequencies[S, k], inside its possible range."""
        r = self.offset[:, None] + self.gain[:, None] * fitted
        return np.clip(r, self.low[:, None], self.high[:, None])

    def moments(self, fitted: Floats) -> tuple[Floats, Floats]:
        """Binomial variance and third central moment of `frequency`, float64[S, k] each."""
        r = self.probability(fitted)
        size = np.maximum(self.total, 1.0)[:, None]
        scale = self.gain[:, None]
        variance = r * (1 - r) / (size * scale**2)
        return variance, variance * (1 - 2 * r) / (size * scale)


@dataclass(frozen=True, eq=False)
class RegressionFit:
    """A weighted least-squares fit.

    coefficient : float64[a]; covariance : float64[a, a]; estimable : bool[a];
    residual, weight, third : float64[S, k], weight 0 in empty strata, third the third central
    moment of the noise; level, overdispersion : float64[S], background and added variance;
    freedom : residual degrees of freedom; spent : the caller's `spent`;
    inverse_mass : float64[S], 1 / the sum of weights of a stratum that has a background, else 0.
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
    spent: float
    inverse_mass: Floats


def fit_columns(table: BitTable, columns: sparse.csc_matrix, spent: float = 0.0) -> RegressionFit:
    """Regress the table on columns[S * k, a]: once for the weights, once for the estimates.

    spent : sum of squares, in units of variance, that choosing the columns on the same data has
        taken out of the residuals beyond one per column.
    """
    start = np.average(table.frequency, axis=1) if table.frequency.size else table.total
    variance, third = table.moments(np.broadcast_to(start[:, None], table.frequency.shape))
    extra = np.zeros(table.total.size)
    fit = _solve(table, columns, _inverse(variance, table.live), third, extra, spent)
    variance, third = table.moments(table.frequency - fit.residual)
    if fit.freedom > 0:
        extra = _overdispersion(table, fit, _inverse(variance, table.live))
    weight = _inverse(variance + extra[:, None], table.live)
    return _solve(table, columns, weight, third, extra, spent)


def _overdispersion(table: BitTable, fit: RegressionFit, weight: Floats) -> Floats:
    """Moment estimate, float64[S]: in each slot E sum(w residual^2) = freedom + extra sum(w)."""
    known = table.over_slots(weight.sum(axis=1))
    excess = table.over_slots((weight * fit.residual**2).sum(axis=1))
    excess -= table.slot_share() * (fit.freedom - fit.spent)
    extra = np.divide(excess, known, out=np.zeros_like(excess), where=known > 0)
    return np.asarray(np.maximum(extra, 0.0))


def _inverse(variance: Floats, live: Mask) -> Floats:
    return np.where(live[:, None], 1.0 / np.maximum(variance, 1e-300), 0.0)


def _solve(
    table: BitTable,
    columns: sparse.csc_matrix,
    weight: Floats,
    third: Floats,
    extra: Floats,
    spent: float,
) -> RegressionFit:
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
    rest = (y - np.asarray(columns @ coefficient)).reshape(strata, bits)
    level = (weight * rest).sum(axis=1) * inverse_mass
    residual = np.where(weight > 0, rest - level[:, None], 0.0)
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
        spent=spent,
        inverse_mass=inverse_mass,
    )


def stratum_sums(weighted: sparse.csc_matrix, strata: int, bits: int) -> Floats:
    """Column sums within each stratum, float64[S, a]."""
    block = np.repeat(np.arange(strata), bits)
    adder = sparse.csr_matrix((np.ones(block.size), (block, np.arange(block.size))))
    return np.asarray((adder @ weighted).toarray())


def invert_gram(gram: Floats, uncentred: Floats) -> tuple[Floats, Mask, int]:
    """Invert a Gram matrix, or what can be inverted of it.

    uncentred : float64[a], squared lengths before the background was removed, against which
    "nothing left" is judged. Returns the (pseudo-)inverse, which coefficients it determines, and
    the rank.
    """
    size = gram.shape[0]
    if size == 0:
        return gram, np.zeros(0, dtype=bool), 0
    present = gram.diagonal() > 1e-9 * uncentred
    scale = np.where(present, 1.0 / np.sqrt(np.where(present, gram.diagonal(), 1.0)), 0.0)
    unit = gram * scale[:, None] * scale
    # Threads cost more than they bring: 100 columns took 80 ms on two of them, beside other work,
    # and 1 ms on one.
    with one_blas_thread() if size < ONE_THREAD_BELOW else nullcontext():
        if present.all():
            factor, info = linalg.lapack.dpotrf(unit, lower=1)
            # A pivot is the share of a column that those before it leave unexplained.
            if info == 0 and factor.diagonal().min() > 1e-4:
                inverse, _ = linalg.lapack.dpotri(factor, lower=1)
                inverse = np.tril(inverse) + np.tril(inverse, -1).T
                return inverse * scale[:, None] * scale, present, size
        value, vector = linalg.eigh(unit)
        keep = value > 1e-8 * max(value[-1], 1.0)
        kept = vector[:, keep]
        inverse = (kept / value[keep]) @ kept.T
        determined = present & (np.abs((kept**2).sum(axis=1) - 1.0) < 1e-6)
        return inverse * scale[:, None] * scale, determined, int(keep.sum())
