"""How common values were, period after period."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.results.base import Provenance, Result


@dataclass(frozen=True, eq=False)
class Trend(Result):
    """Estimates of the same values in T periods, each decoded by itself.

    periods : first day of each, ISO; by : "day" or "week"
    estimate, standard_error, low, high : float64[T, m], as in a Marginal; 95% intervals
    detected : bool[T, m], controlled at alpha within each period
    reports : int64[T]
    """

    question: str
    by: str
    periods: tuple[str, ...]
    labels: tuple[str, ...]
    estimate: NDArray[np.float64]
    standard_error: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    detected: NDArray[np.bool_]
    reports: NDArray[np.int64]
    alpha: float
    correction: str | None
    provenance: Provenance | None = None

    def columns(self) -> dict[str, Sequence[Any]]:
        """A row for each value and period, the values that are most common on average first."""
        order = self.largest(len(self.labels))
        named: dict[str, Sequence[Any]] = {
            "value": [self.labels[i] for i in order for _ in self.periods],
            self.by: list(self.periods) * len(order),
            "reports": self.reports.tolist() * len(order),
        }
        for name in ("estimate", "standard_error", "low", "high", "detected"):
            named[name] = getattr(self, name)[:, order].T.reshape(-1).tolist()
        return named

    def heading(self) -> str:
        """What was asked in one line."""
        return (
            f"{self.question} by {self.by}: {len(self.labels):,} values, {len(self.periods)} "
            f"periods, {int(self.reports.sum()):,} reports"
        )

    def largest(self, count: int) -> NDArray[np.intp]:
        """The values of largest estimate on average, at most `count`, largest first."""
        average = np.nan_to_num(self.estimate, nan=0.0).mean(axis=0)
        return np.argsort(-average, kind="stable")[:count]
