"""What a discovery gives back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Stage:
    """One step of a discovery: what it kept, what it dropped, and how long it took."""

    name: str
    kept: int
    dropped: int
    seconds: float


@dataclass(frozen=True, eq=False)
class Discovery:
    """Strings that were found, heaviest first, each with its share of clients.

    The probability that any string is among them that no client holds is at most `alpha`, whatever
    the population. Intervals are of 95 %.
    """

    strings: tuple[str, ...]
    estimate: NDArray[np.float64]
    standard_error: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    p_value: NDArray[np.float64]
    candidates_looked_at: int
    stages: tuple[Stage, ...]
    detection_threshold: float
    unexplained_mass: float
    alpha: float
