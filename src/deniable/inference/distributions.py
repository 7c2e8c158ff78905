"""Tails and quantiles of distributions, from `scipy.special`.

`scipy.stats` has them too, but importing it takes half a second, longer than most analyses.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from deniable.kernels.array_types import Floats

NEARLY_NORMAL = 1.6e-5
"""Skewness below which Pearson's distribution cannot be told from the normal one."""


def normal_quantile(tail: float) -> float:
    """Return the z for which P(Z >= z) = tail.

    >>> round(normal_quantile(0.025), 2)
    1.96
    """
    return -float(special.ndtri(tail))


def pearson3_tail(z: float, skewness: float) -> float:
    """Return P(Z >= z) of a gamma distribution, shifted and scaled to mean 0 and variance 1.

    A negative skewness mirrors the distribution.

    >>> round(pearson3_tail(1.96, 0.0), 3), round(pearson3_tail(1.96, 0.5), 3)
    (0.025, 0.037)
    """
    if abs(skewness) < NEARLY_NORMAL:
        return float(special.ndtr(-z))
    shape = 4.0 / skewness**2
    point = max(shape + 2 * z / skewness, 0.0)
    tail = special.gammaincc if skewness > 0 else special.gammainc
    return float(tail(shape, point))


def pearson3_quantile(tail: ArrayLike, skewness: float) -> Floats:
    """Return the z for which P(Z >= z) = tail; see `pearson3_tail`.

    >>> pearson3_quantile([0.5, 0.025], 0.5).round(2).tolist()
    [-0.08, 2.19]
    """
    if abs(skewness) < NEARLY_NORMAL:
        return np.asarray(-special.ndtri(tail))
    shape = 4.0 / skewness**2
    inverse = special.gammainccinv if skewness > 0 else special.gammaincinv
    return np.asarray((inverse(shape, tail) - shape) * (skewness / 2))


def binomial_pmf(number: ArrayLike, size: int, p: ArrayLike) -> Floats:
    """Return P(X = number) of a binomial distribution.

    >>> binomial_pmf([0, 1, 2], 2, 0.5).round(3).tolist()
    [0.25, 0.5, 0.25]
    """
    k, p = np.asarray(number, np.float64), np.asarray(p, np.float64)
    ways = special.gammaln(size + 1) - special.gammaln(k + 1) - special.gammaln(size - k + 1)
    return np.asarray(np.exp(ways + special.xlogy(k, p) + special.xlog1py(size - k, -p)))


def binomial_quantile(tail: float, size: int, p: float) -> int:
    """Return the least number for which P(X > number) <= tail, 0 < p < 1.

    >>> binomial_quantile(0.2, 3, 0.5), binomial_quantile(0.1, 3, 0.5)
    (2, 3)
    """
    low, high = 0, size
    while low < high:
        middle = (low + high) // 2
        if special.betainc(middle + 1, size - middle, p) <= tail:
            high = middle
        else:
            low = middle + 1
    return low


def poisson_tail(number: int, mean: float) -> float:
    """Return P(X >= number) of a Poisson distribution.

    >>> round(poisson_tail(1, 0.5), 3), poisson_tail(0, 0.0)
    (0.393, 1.0)
    """
    return float(special.gammainc(number, mean)) if number > 0 else 1.0


def poisson_quantile(chance: Floats, mean: Floats) -> Floats:
    """Return the least number for which P(X <= number) >= chance; each row has a mean.

    >>> poisson_quantile(np.array([[0.5, 0.95], [0.5, 0.9]]), np.array([0.5, 3.0])).tolist()
    [[0.0, 2.0], [3.0, 5.0]]
    """
    number = np.empty(chance.shape)
    for value in np.unique(mean):
        # Inverting one table of the distribution is far quicker than each number by itself.
        reach = 10.0 * np.sqrt(value) + 40.0
        possible = np.arange(max(np.floor(value - reach), 0.0), value + reach)
        rows = mean == value
        number[rows] = possible[0] + np.searchsorted(special.pdtr(possible, value), chance[rows])
    return number
