"""Test whether memory or open files grow while a process lives.

A leak raises the floor of a series, so each life of the process is divided into blocks after a
warm-up, and the smallest value of each block is kept. Mann and Kendall's test asks whether later
blocks are higher than earlier ones more often than by chance; its sum over the lives is the
regional Kendall test. The slope is the median of the slopes between two blocks of a life (Theil and
Sen). A series grows if the test rejects at 1 % and the slope exceeds a limit: either alone is no
leak. With independent blocks a false alarm is rarer than 1 %.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import NormalDist

import numpy as np

BLOCKS = 10
"""Blocks per life."""
WARM_UP = 1 / 3
"""Share of a life that is left out at its start."""
LEAST_SECONDS = 300.0
"""A shorter life, after its warm-up, says nothing about a trend."""
ALPHA = 0.01

Series = tuple[Sequence[float], Sequence[float]]
"""Seconds, and values at these times."""


@dataclass(frozen=True)
class Trend:
    """A trend per hour, in the units of the series, and how likely such a rise is by chance.

    lives : number of lives that were long enough
    """

    per_hour: float
    p_value: float
    lives: int

    def grows(self, limit: float) -> bool:
        """Return whether the series grows, by more than `limit` per hour."""
        return self.lives > 0 and self.p_value < ALPHA and self.per_hour > limit


def floors(life: Series, least_seconds: float = LEAST_SECONDS) -> list[tuple[float, float]]:
    """Return middle and smallest value of each block of one life after its warm-up."""
    times, values = (np.asarray(column, float) for column in life)
    if len(times) == 0:
        return []
    first = times[0] + WARM_UP * (times[-1] - times[0])
    kept = times >= first
    edges = np.linspace(first, times[-1], BLOCKS + 1)
    if times[-1] - first < least_seconds or kept.sum() < 2 * BLOCKS:
        return []
    block = np.clip(np.searchsorted(edges, times[kept], side="right") - 1, 0, BLOCKS - 1)
    return [
        ((edges[i] + edges[i + 1]) / 2, float(values[kept][block == i].min()))
        for i in range(BLOCKS)
        if (block == i).any()
    ]


def trend(lives: Sequence[Series], least_seconds: float = LEAST_SECONDS) -> Trend:
    """Return the trend that the lives have in common."""
    score, variance, slopes = 0.0, 0.0, []
    blocks = [points for life in lives if (points := floors(life, least_seconds))]
    for points in blocks:
        for (t0, v0), (t1, v1) in combinations(points, 2):
            score += np.sign(v1 - v0)
            slopes.append((v1 - v0) / (t1 - t0))
        variance += _variance([value for _, value in points])
    z = (score - np.sign(score)) / math.sqrt(variance) if variance else 0.0
    slope = 3600 * float(np.median(slopes)) if slopes else 0.0
    return Trend(slope, 1 - NormalDist().cdf(float(z)), len(blocks))


def _variance(values: Sequence[float]) -> float:
    """Return the variance of Kendall's score without a trend, corrected for ties."""

    def of_size(n: int) -> float:
        return n * (n - 1) * (2 * n + 5) / 18

    _, ties = np.unique(values, return_counts=True)
    return of_size(len(values)) - sum(of_size(int(n)) for n in ties)
