"""The weight at which half of the strings pass a test that compares their bits with random ones.

Such a test adds up a score per stratum and hash. A string's bits are random, and its clients add
ones to their counts. If few ones are expected per bit, counts are discrete and skewed, and neither
the sum nor its cut-off is that of a normal distribution. So strings are drawn: the bit of each
stratum, and the ones that its clients add.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from deniable.inference.distributions import poisson_quantile
from deniable.inference.power.half_found import half_found_by
from deniable.kernels.array_types import Floats, Int64s

DRAWN = 256
"""Strings that are drawn."""

Scores = Callable[[Int64s, Floats], Int64s]
"""Scores, int64[R, DRAWN], of bits of given ranks, int64[R, DRAWN], to which ones are added."""


def weight_half_found(
    scores: Scores, expected: Floats, bits: int, needed: int, standard_error: float
) -> float:
    """Return the weight at which half of the strings have a sum of scores of at least `needed`.

    expected : float64[R], ones that a string of weight 1 would add, by stratum and hash
    bits : number of bits of a stratum
    standard_error : of the weight of a rare string

    Examples
    --------
    >>> def total(rank, added):
    ...     return added.astype(np.int64)
    >>> round(weight_half_found(total, np.array([1000.0]), 16, 11, 0.003), 3)
    0.011
    """
    rng, middles = np.random.default_rng(0), (np.arange(DRAWN) + 0.5) / DRAWN
    # A Latin hypercube: in each stratum, ranks and chances are spread evenly over the strings.
    even = np.broadcast_to(middles, (expected.size, DRAWN))
    rank = (rng.permuted(even, axis=1) * bits).astype(np.int64)
    chance = rng.permuted(even, axis=1)

    def found(weight: float) -> float:
        added = poisson_quantile(chance, weight * expected)
        return float((scores(rank, added).sum(axis=0) >= needed).mean())

    return half_found_by(found, standard_error)
