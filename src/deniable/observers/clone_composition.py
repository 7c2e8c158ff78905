"""Several shuffled batches with independent reports of the same clients. Needs NumPy.

For one batch, let C of the other reports be clones of the two reports that the observer wants to
distinguish, half of them of each in the mean (`clones`, with β as large as ε₀ allows). More clones
only help, so C is replaced by a number that it exceeds almost surely. The privacy loss of a batch
is then a function of one binomial count; the losses of several batches add. Their distribution is
computed by a Fourier transform on a lattice, with each loss rounded up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from deniable.extras import needs_packages
from deniable.observers.clones import smallest_epsilon
from deniable.observers.closed_forms import smallest_crowd

with needs_packages("deniable.observers.clone_composition"):
    import numpy as np
    from numpy.typing import NDArray
    from scipy.special import gammaln

LATTICE = 1 << 16
DEVIATIONS = 12.0
"""Counts of clones further from their mean than this many standard deviations are given up."""
NEVER = 4 * math.exp(-(DEVIATIONS**2) / 2)
"""Bound of their probability (Hoeffding)."""
FLOATING = 1e-13
"""What errors of floating point may add to a probability."""


@dataclass(frozen=True)
class Losses:
    """Privacy losses of one batch in f64[L], and their probabilities under the first value."""

    losses: NDArray[np.float64]
    probabilities: NDArray[np.float64]

    @classmethod
    def of_batch(cls, local: float, others: int) -> Losses:
        """Return the losses if `others` reports are clones, half of each kind in the mean."""
        margin = DEVIATIONS * math.sqrt(others) / 2 + 1
        low = max(0, math.floor(others / 2 - margin))
        first = np.arange(low, min(others, math.ceil(others / 2 + margin)) + 2, dtype=np.float64)
        second = others + 1 - first
        # log of the binomial probability of `first` ones in others + 1 draws
        log_mass = gammaln(others + 2) - gammaln(first + 1) - gammaln(second + 1)
        log_mass -= (others + 1) * math.log(2)
        p = math.exp(local)
        weighted = 2 * (p * first + second) / ((p + 1) * (others + 1))
        losses = np.log(p * first + second) - np.log(first + p * second)
        return cls(losses, np.exp(log_mass) * weighted)


def composed_batches(local: float, crowd: int, batches: int, delta: float) -> float:
    """Return ε at δ of several batches, in each of which `crowd` clients report independently.

    local : ε₀ of one report
    """
    slack = delta / (10 * batches)
    clones = smallest_crowd(crowd, 2 / (math.exp(local) + 1), slack) - 1
    lost = batches * (slack + NEVER) + FLOATING
    if clones < 1 or delta <= 2 * lost:
        return local * batches
    composed = _Composed.of(Losses.of_batch(local, clones), batches)
    high = min(
        local * batches, composed.mean + composed.deviation * math.sqrt(-2 * math.log(delta))
    )
    if composed.delta(high) + lost > delta:
        high = local * batches  # the loss is far from normal
    return smallest_epsilon(lambda e: composed.delta(e) + lost, delta, high, 0.9 * high)


@dataclass(frozen=True)
class _Composed:
    """Lattice of the sum of losses: values and probabilities in f64[LATTICE], and mass above."""

    mean: float
    deviation: float
    losses: NDArray[np.float64]
    probabilities: NDArray[np.float64]
    above: float

    @classmethod
    def of(cls, one: Losses, times: int) -> _Composed:
        """Return the distribution of the sum of this many losses, each rounded up."""
        mean = float(one.probabilities @ one.losses)
        variance = float(one.probabilities @ (one.losses - mean) ** 2)
        deviation = math.sqrt(times * variance)
        width = DEVIATIONS * deviation + float(np.abs(one.losses).max())
        step = 2 * width / LATTICE
        points = np.ceil((one.losses - mean) / step).astype(np.int64)
        lattice = np.bincount(points % LATTICE, one.probabilities, LATTICE)
        total = np.fft.irfft(np.fft.rfft(lattice) ** times, LATTICE)
        sums = np.fft.fftfreq(LATTICE, 1 / LATTICE) * step
        # Chernoff bound of sums above the lattice, which wrapped around
        slopes = np.arange(2, 12) / deviation
        moments = [one.probabilities @ np.exp(t * points * step) for t in slopes]
        half = step * (LATTICE // 2 - 1)
        above = min(times * math.log(m) - t * half for m, t in zip(moments, slopes, strict=True))
        values = np.asarray(sums + times * mean, np.float64)
        above = math.exp(min(0.0, above))
        return cls(times * mean, deviation, values, np.maximum(total, 0.0), above)

    def delta(self, epsilon: float) -> float:
        """Return δ at ε."""
        larger = self.losses > epsilon
        excess = -np.expm1(epsilon - self.losses[larger])
        return min(1.0, float(self.probabilities[larger] @ excess) + self.above)
