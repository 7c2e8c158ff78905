"""Cut-offs of tests that share α, by the odds of each candidate before its test.

Candidate i is accepted if its p-value is at most w_i, with Σ w_i = α over *all* candidates. The
likelihood-ratio rule accepts the most true strings: w_i = Φ(−t_i) with
t_i = (λ − log P_i)/z_i + z_i/2, where P_i is the probability that the string is present, z_i its
expected test statistic, and the height λ follows from the sum.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from deniable.kernels.array_types import Floats

MIN_Z, MAX_Z = 0.3, 7.0


def cutoffs_at(height: float, odds: Floats, z: Floats) -> Floats:
    """float64[n]: the largest p-value at which each candidate is accepted, for this height λ."""
    return np.asarray(ndtr(-deviations_at(height, odds, z)))


def deviations_at(height: float, odds: Floats, z: Floats) -> Floats:
    """Return the same cut-offs as test statistics."""
    z = np.clip(z, MIN_Z, MAX_Z)
    return np.asarray((height + np.logaddexp(0, -odds)) / z + z / 2)


def cutoff_height(odds: Floats, z: Floats, alpha: float, count: Floats | float = 1.0) -> float:
    """Return the height λ at which the cut-offs sum to at most α.

    odds : float64[n], log-odds that the string is present
    z : float64[n], expected test statistic if it is
    count : number of candidates that each entry stands for
    """
    low, high = -200.0, 400.0
    for _ in range(50):
        middle = (low + high) / 2
        too_low = (count * cutoffs_at(middle, odds, z)).sum() > alpha
        low, high = (middle, high) if too_low else (low, middle)
    return high
