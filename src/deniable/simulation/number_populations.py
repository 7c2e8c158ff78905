"""Populations of numbers: equally likely points that represent a distribution."""

from __future__ import annotations

from collections.abc import Callable
from statistics import NormalDist

import numpy as np

from deniable.columns.partition import naming
from deniable.errors import InputError
from deniable.kernels.array_types import Floats
from deniable.simulation.populations import Population, check_settings, from_csv, parsed_spec

NUMBER_POINTS = 10_000
"""Number of points that represent a distribution."""


def normal(mean: float = 0.0, sd: float = 1.0) -> Floats:
    """Return points that represent a normal distribution: quantiles at equal distances.

    Parameters
    ----------
    mean : float, default 0.0
        Mean.
    sd : float, default 1.0
        Standard deviation.

    Returns
    -------
    ndarray of float64
        Equally likely numbers, in increasing order.

    Examples
    --------
    >>> normal(50, 10).mean().round(3)
    np.float64(50.0)
    """
    check_settings(sd=sd)
    unit = NormalDist()
    return np.array([mean + sd * unit.inv_cdf(p) for p in _levels().tolist()])


def lognormal(median: float = 1.0, sigma: float = 1.0) -> Floats:
    """Return points that represent a lognormal distribution.

    Parameters
    ----------
    median : float, default 1.0
        Median.
    sigma : float, default 1.0
        Standard deviation of the natural logarithm.

    Returns
    -------
    ndarray of float64
        Equally likely numbers, in increasing order.

    Examples
    --------
    >>> bool(lognormal(100, 1).mean() > 150)
    True
    """
    check_settings(median=median, sigma=sigma)
    return np.asarray(median * np.exp(normal(0.0, sigma)))


def uniform(low: float = 0.0, high: float = 1.0) -> Floats:
    """Return points that represent a uniform distribution from `low` to `high`.

    Parameters
    ----------
    low, high : float
        Ends of the interval.

    Returns
    -------
    ndarray of float64
        Equally likely numbers, in increasing order.

    Examples
    --------
    >>> uniform(0, 10).mean().round(3)
    np.float64(5.0)
    """
    if not low <= high:
        raise InputError(f"low must not be above high, not {low:g} and {high:g}")
    return np.asarray(low + (high - low) * _levels())


NUMBER_SHAPES: dict[str, Callable[..., Floats]] = {
    "normal": normal,
    "lognormal": lognormal,
    "uniform": uniform,
}
"""Functions that return equally likely numbers, by name."""


def numbers_from_spec(spec: str) -> Population:
    """Return the population of numbers that a short text describes.

    Parameters
    ----------
    spec : str
        Name of a distribution and its settings, as "normal:mean=50,sd=10", "lognormal" (median,
        sigma) or "uniform" (low, high). Or the path of a CSV file; see `from_csv`.

    Returns
    -------
    Population
        Numbers and weights; those of a CSV file are still text.

    Raises
    ------
    InputError
        If the distribution is unknown or does not have one of the settings.

    Examples
    --------
    >>> len(numbers_from_spec("uniform:low=0,high=10").values)
    10000
    """
    if spec.endswith(".csv"):
        return from_csv(spec)
    name, settings = parsed_spec(spec, NUMBER_SHAPES, "mean=50,sd=10")
    with naming(spec):
        points = NUMBER_SHAPES[name](**settings)
    if not np.isfinite(points).all():
        raise InputError(f"the numbers of {spec!r} are too large")
    return Population(tuple(points.tolist()), np.full(len(points), 1 / len(points)))


def _levels() -> Floats:
    """Return the probabilities of the quantiles that stand for a distribution of numbers."""
    return (np.arange(NUMBER_POINTS) + 0.5) / NUMBER_POINTS
