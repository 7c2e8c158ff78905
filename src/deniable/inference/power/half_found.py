"""The mass at which half of the strings are found."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import ndtr

from deniable.kernels.array_types import Floats

MAX_STANDARD_ERRORS = 1e3
"""Thresholds above this many standard errors are not told apart."""
STEPS = 16
"""Halvings of the interval that holds a threshold; the last is .01% wide."""


def half_found_by(found: Callable[[float], float], standard_error: float) -> float:
    """Return the mass at which the share of found strings reaches one half.

    found : returns the share of strings of a given mass that are found
    standard_error : of the mass of a rare string
    """
    low, high = 0.0, np.log(MAX_STANDARD_ERRORS)
    for _ in range(STEPS):
        middle = (low + high) / 2
        enough = found(standard_error * np.exp(middle)) >= 0.5
        low, high = (low, middle) if enough else (middle, high)
    return float(standard_error * np.exp(high))


def half_found(needed: Floats, precision: float, spread: float) -> float:
    """Return the mass at which half of the strings pass one test.

    The evidence for a string of mass f is normal, with mean f·precision.

    needed : float64[n], evidence at which each string is accepted
    spread : standard deviation of the evidence
    """
    if not precision > 0:
        return 1.0
    error = 1 / np.sqrt(precision)
    return half_found_by(lambda f: float(ndtr((f * precision - needed) / spread).mean()), error)
