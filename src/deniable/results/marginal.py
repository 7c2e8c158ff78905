"""The result of a marginal decode."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deniable.formatting import Columns, percent
from deniable.results.base import Provenance, Result

Z95 = 1.9599639845400545
"""Standard errors from an estimate to each end of its 95% interval."""


@dataclass(frozen=True)
class Measured:
    """A number with its uncertainty: [low, high] is a 95% interval."""

    estimate: float
    standard_error: float
    low: float
    high: float

    @classmethod
    def normal(cls, estimate: float, standard_error: float) -> Measured:
        """The interval of an estimate whose error is normal."""
        reach = Z95 * standard_error
        return cls(estimate, standard_error, estimate - reach, estimate + reach)

    def __str__(self) -> str:
        return f"{percent(self.estimate)} ± {percent(1.96 * self.standard_error)}"


UNMEASURED = Measured(np.nan, np.nan, np.nan, np.nan)


def explained(found: Measured, rest: Measured) -> str:
    """Say which share of the clients was found and which was not, for a heading."""
    return (
        f"mass {found.estimate:.3f} ± {1.96 * found.standard_error:.3f}, "
        f"unexplained {rest.estimate:.3f}"
    )


@dataclass(frozen=True, eq=False)
class Marginal(Result):
    """How frequent every candidate is, detected or not.

    estimate, standard_error, low, high : float64[m]. Unbiased and never clipped, so estimates may
        be below 0; [low, high] is a 95% interval.
    p_value : float64[m], one-sided, of "this candidate is absent", before correction.
    detected : bool[m], the test after correction. Always False where not identified.
    identified : bool[m]. False where the design cannot tell the candidate from others or from
        the background; see `groups`.
    groups : candidates that set the same bits in every stratum. Only their sum is identified: each
        member shows an equal share of it, an interval from 0 to the whole, and the p-value of
        "all are absent". Candidates not identified for another reason have estimate NaN.
    detection_threshold : the frequency at which a typical candidate is detected half the time.
    mass_found, mass_unexplained : what the detected candidates sum to, and the rest.
    background : float64[S], average lift of a bit, per stratum, from strings nobody listed.
    overdispersion : standard deviation of a bit's frequency beyond the mechanism's own noise, the
        largest of any slot.
    reports : N.
    """

    estimate: NDArray[np.float64]
    standard_error: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    p_value: NDArray[np.float64]
    detected: NDArray[np.bool_]
    identified: NDArray[np.bool_]
    groups: tuple[tuple[int, ...], ...]
    detection_threshold: float
    mass_found: Measured
    mass_unexplained: Measured
    background: NDArray[np.float64]
    overdispersion: float
    reports: int
    alpha: float
    correction: str | None
    labels: tuple[str, ...] | None = None
    question: str = ""
    provenance: Provenance | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The candidates' labels, or their numbers if they have none."""
        return self.labels or tuple(str(i) for i in range(len(self.estimate)))

    @property
    def order(self) -> NDArray[np.intp]:
        """The candidates, largest estimate first; those without an estimate last."""
        return np.argsort(-np.nan_to_num(self.estimate, nan=-np.inf), kind="stable")

    def columns(self) -> Columns:
        """Return every candidate, largest estimate first."""
        order = self.order
        named: Columns = {"value": [self.names[i] for i in order]}
        for name in ("estimate", "standard_error", "low", "high", "p_value", "detected"):
            named[name] = getattr(self, name)[order].tolist()
        return named

    def heading(self) -> str:
        """Return what was found in one line."""
        return (
            f"{self.question or 'marginal'}: {self.reports:,} reports, "
            f"{int(self.detected.sum())} of {len(self.estimate):,} candidates detected, "
            f"{explained(self.mass_found, self.mass_unexplained)}; "
            f"detectable from {self.detection_threshold:.4f}"
        )

    @property
    def z(self) -> NDArray[np.float64]:
        """Estimates in standard errors; 0 where there is no estimate."""
        z = np.zeros(self.estimate.shape)
        known = np.isfinite(self.estimate) & (self.standard_error > 0)
        np.divide(self.estimate, self.standard_error, out=z, where=known)
        return z

    def top(self, count: int) -> NDArray[np.intp]:
        """Return the detected candidates of largest estimate, at most `count`, largest first."""
        found = np.flatnonzero(self.detected)
        return found[np.argsort(-self.estimate[found], kind="stable")][:count]
