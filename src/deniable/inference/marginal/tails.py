"""Logarithms of tail probabilities, which do not underflow to 0."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from deniable.formatting import SMALLEST_P, PValue
from deniable.kernels.array_types import Complexes, Floats, Int64s

SMALLEST = 1e-290
"""Probabilities below this are computed as logarithms."""
LEAST_SUMMED = 1e-10
"""Tails below this are not resolved by a Fourier transform: Chernoff's bound is used."""
SLOPES = np.geomspace(3.0, 1e4, 120)
"""Parameters of the Chernoff bound, times the standard deviation; the best one is chosen."""


def p_values(log_p: Floats) -> Floats:
    """Return probabilities from their logarithms; those below 1e-300 as 1e-300, so none is 0."""
    return np.maximum(np.exp(log_p), SMALLEST_P)


def log_upper_tail(z: Floats, skewness: Floats) -> Floats:
    """Return log P(Z >= z) for standardised variables of known skewness.

    A gamma distribution with that skewness (Pearson's third type) replaces the normal distribution.
    If p* is small, counts are nearly Poisson; at the z = 4 of a corrected test, a skewness of 0.1
    already makes the normal tail too small by a factor of three.

    Examples
    --------
    >>> np.exp(log_upper_tail(np.array([1.96]), np.zeros(1))).round(3)
    array([0.025])
    >>> log_upper_tail(np.array([60.0, 60.0]), np.array([0.0, 0.1])).round()
    array([-1805.,  -650.])
    """
    normal = special.log_ndtr(-z)
    # Below this skewness the two tails agree to 1% even at z = 5.
    skewed = np.abs(skewness) > 5e-4
    shape = 4.0 / np.square(skewness, where=skewed, out=np.ones_like(skewness))
    point = np.maximum(shape + z * np.sqrt(shape) * np.sign(skewness), 0.0)
    # A distribution with a negative skewness ends somewhere: beyond, only a bound is known.
    mirrored = np.log(np.maximum(special.gammainc(shape, point), SMALLEST))
    gamma = np.where(skewness > 0, log_gamma_tail(shape, point), mirrored)
    return np.asarray(np.where(skewed, gamma, normal))


def log_gamma_tail(shape: ArrayLike, x: ArrayLike) -> Floats:
    """Return log Q(a, x), the tail of the gamma distribution; χ² of f is twice that of a = f/2.

    Examples
    --------
    >>> log_gamma_tail(1.0, [2.0, 500.0, 5000.0]).round(3).tolist()
    [-2.0, -500.0, -5000.0]
    """
    a, x = np.asarray(shape, np.float64), np.asarray(x, np.float64)
    tail = special.gammaincc(a, x)
    # Far out, Q(a, x) <= x^a e^-x / (Gamma(a) (x - a + 1)) if a >= 1, which is close; else with x.
    far = a * np.log(np.maximum(x, 1e-300)) - x - special.gammaln(a)
    far = far - np.log(np.maximum(x - np.maximum(a, 1.0) + 1, 1e-300))
    return np.asarray(np.where(tail < SMALLEST, far, np.log(np.maximum(tail, SMALLEST))))


def chi2_tail(freedom: int, statistic: float) -> PValue:
    """Return P(χ² ≥ statistic); 1 without degrees of freedom."""
    log_p = log_gamma_tail(freedom / 2, max(statistic, 0.0) / 2) if freedom > 0 else np.zeros(())
    return PValue(float(p_values(log_p)), float(log_p))


def weighted_chi2_tail(weights: Floats, statistic: float) -> PValue:
    """Return P(Σ w_i χ²_1 ≥ statistic) for weights above 0, by a saddlepoint approximation.

    With K(s) = −½ Σ log(1 − 2 w_i s), it is the one of Lugannani and Rice in Barndorff-Nielsen's
    form, whose relative error is small in the tail. Near the mean, where it is 0/0, three moments
    replace it. 1 without weights.

    Examples
    --------
    >>> [round(float(weighted_chi2_tail(np.full(4, 2.0), x)), 4) for x in (8.0, 19.0)]
    [0.406, 0.0501]
    >>> round(float(chi2_tail(4, 9.5)), 4)
    0.0497
    """
    from scipy import optimize

    if not len(weights) or statistic <= 0:
        return PValue(1.0, 0.0)
    unit = float(weights.max())
    w, q = weights / unit, statistic / unit
    mean, deviation = float(w.sum()), float(np.sqrt(2 * np.square(w).sum()))
    z = (q - mean) / deviation
    if abs(z) < 0.01:
        skewness = 8 * float((w**3).sum()) / deviation**3
        log_p = float(log_upper_tail(np.array(z), np.array(skewness)))
        return PValue(float(p_values(np.array(log_p))), log_p)
    low, high = (0.0, (1 - 0.999999 / q) / 2) if q > mean else (-len(w) / (2 * q), 0.0)
    s = optimize.brentq(lambda s: float((w / (1 - 2 * w * s)).sum()) - q, low, high, xtol=1e-15)
    exponent = s * q + 0.5 * float(np.log1p(-2 * w * s).sum())
    root = np.sign(s) * np.sqrt(2 * max(exponent, 0.0))
    slope = s * np.sqrt(2 * float(np.square(w / (1 - 2 * w * s)).sum()))
    log_p = float(special.log_ndtr(-(root + np.log(slope / root) / root)))
    return PValue(float(p_values(np.array(log_p))), log_p)


def log_binomial_tail(ones: ArrayLike, p: float, size: int) -> Floats:
    """Return log P(X >= ones) for X binomial(size, p), 0 < p < 1.

    Examples
    --------
    >>> np.exp(log_binomial_tail(np.array([0, 1, 3]), 0.5, 3)).round(3)
    array([1.   , 0.875, 0.125])
    >>> log_binomial_tail(np.array([900]), 0.01, 1000).round()
    array([-3824.])
    """
    k = np.asarray(ones, np.float64)
    tail = np.where(k > 0, special.betainc(np.maximum(k, 1.0), size - k + 1, p), 1.0)
    # P(X >= k) <= P(X = k) / (1 - ratio), where the ratio of successive terms is at most this.
    ratio = (size - k) * p / ((k + 1) * (1 - p))
    log_choose = special.gammaln(size + 1) - special.gammaln(k + 1) - special.gammaln(size - k + 1)
    far = log_choose + special.xlogy(k, p) + special.xlog1py(size - k, -p)
    far = far - np.log1p(-np.minimum(ratio, 0.999))
    return np.asarray(np.where(tail < SMALLEST, far, np.log(np.maximum(tail, SMALLEST))))


def fast_length(least: int) -> int:
    """Return the smallest length >= `least` of a fast Fourier transform: 2^a 3^b 5^c.

    >>> [fast_length(size) for size in (1, 7, 1000, 1001)]
    [1, 8, 1000, 1024]
    """
    best: int = 1 << (least - 1).bit_length()
    five = 1
    while five < best:
        odd = five
        while odd < best:
            best = min(best, odd << (-(-least // odd) - 1).bit_length())
            odd *= 3
        five *= 5
    return best


@dataclass(frozen=True, eq=False)
class IntegerSum:
    """Distribution of a sum of independent integers.

    Parameters
    ----------
    least, most : int
        Range of the sum.
    size : int
        Length of Fourier transforms, greater than the range of all sums that are added.
    transform : complex128 array of shape (size // 2 + 1,)
        Fourier transform of the distribution of the sum less its least value.
    slopes, log_moments : float64 arrays
        Slopes s of the Chernoff bound, and log E exp(s (sum - most)).
    """

    least: int
    most: int
    size: int
    transform: Complexes
    slopes: Floats
    log_moments: Floats

    @classmethod
    def of(
        cls, draws: Iterable[tuple[Int64s, Floats, int]], size: int, deviation: float
    ) -> IntegerSum:
        """Return the sum of draws: values in increasing order, their chances, number of draws.

        deviation : standard deviation of the sum, or its order of magnitude
        """
        slopes = SLOPES / deviation
        out = cls(0, 0, size, np.ones(size // 2 + 1, complex), slopes, np.zeros(slopes.size))
        for value, chance, times in draws:
            mass = np.zeros(size)
            mass[value - value[0]] = chance
            moments = np.log(np.exp(np.outer(slopes, value - value[-1])) @ chance)
            ends, power = (
                (times * int(value[0]), times * int(value[-1])),
                np.fft.rfft(mass) ** times,
            )
            out = out + cls(*ends, size, power, slopes, times * moments)
        return out

    def __add__(self, other: IntegerSum) -> IntegerSum:
        """Return the sum of two independent sums."""
        return IntegerSum(
            self.least + other.least,
            self.most + other.most,
            self.size,
            self.transform * other.transform,
            self.slopes,
            self.log_moments + other.log_moments,
        )

    def log_tail(self, total: Int64s) -> Floats:
        """Return log P(sum >= total), float64[n].

        Examples
        --------
        >>> coin = (np.array([0, 1]), np.array([0.5, 0.5]), 3)
        >>> np.exp(IntegerSum.of([coin], 4, 1.0).log_tail(np.array([0, 1, 3]))).round(3)
        array([1.   , 0.875, 0.125])
        """
        mass = np.maximum(np.fft.irfft(self.transform, self.size), 0.0)
        tail = np.append(np.cumsum(mass[::-1])[::-1], 0.0)[np.maximum(total - self.least, 0)]
        bound = (self.log_moments + self.slopes * (self.most - total[:, None])).min(axis=1)
        # Rounding errors of the transform make small tails too large, so the bound may be closer.
        return np.asarray(np.minimum(np.log(np.clip(tail, LEAST_SUMMED, 1.0)), bound))
