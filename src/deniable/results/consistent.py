"""Consistent shares: non-negative and at most 1 in total, for charts; biased, unlike estimates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from deniable.errors import InputError
from deniable.formatting import Columns, counted
from deniable.kernels.array_types import Floats
from deniable.results.base import Provenance, Result
from deniable.results.fit_check import FitCheck
from deniable.results.joint import OTHER
from deniable.results.rows import Rows, ShareRow


@dataclass(frozen=True, eq=False, repr=False)
class ConsistentShares(Rows[ShareRow], Result):
    """Shares of the values of one question that are not negative and sum to at most 1.

    `Marginal.consistent` makes them, for pie charts and dashboards. They are biased: on average,
    rare values come out too common, because negative estimates become 0, and if the estimates sum
    to more than 1, common values come out too rare. Tests and confidence intervals are those of the
    unbiased estimates in the `Marginal`.

    Parameters
    ----------
    labels : tuple of str
        The values, largest share first. A value without an estimate is left out: it belongs to
        (other).
    share : ndarray of float64, shape (values,)
        Share of clients that hold each value.
    reports : int
        Number of reports.
    question : str, default ""
        Name of the question.
    provenance : Provenance, optional
        Where the result comes from.
    fit : FitCheck, optional
        Whether the reports look as the survey promises.

    Raises
    ------
    InputError
        If a share is negative, or the shares sum to more than 1.

    Examples
    --------
    >>> shares = ConsistentShares(("vim", "emacs"), np.array([0.6, 0.3]), 1000, "editor")
    >>> shares["vim"].share, round(shares.other, 3)
    (0.6, 0.1)
    >>> shares.columns()["value"]
    ['vim', 'emacs', '(other)']
    """

    labels: tuple[str, ...]
    share: Floats
    reports: int
    question: str = ""
    provenance: Provenance | None = None
    fit: FitCheck | None = None

    def __post_init__(self) -> None:
        if self.share.shape != (len(self.labels),):
            raise InputError(f"expected {len(self.labels)} shares, got {self.share.shape}")
        if not ((self.share >= 0).all() and self.share.sum() <= 1 + 1e-9):
            raise InputError("shares must be at least 0, and sum to at most 1")

    @property
    def other(self) -> float:
        """Share of the clients that hold none of the values: what is missing to 1."""
        return remainder(self.share)

    @property
    def whom(self) -> str:
        """Whom the shares are shares of: all clients, or the subgroup."""
        return "the subgroup" if " where " in self.question else "clients"

    @property
    def rest(self) -> str:
        """Name of the last row: (other), or no if the question is a boolean."""
        question = self.question.partition(" where ")[0]
        boolean = self.provenance is not None and self.provenance.is_boolean(question)
        return "no" if boolean and self.labels == ("yes",) else OTHER

    def columns(self) -> Columns:
        """Return one row per value, largest share first, and at the end that of (other).

        Returns
        -------
        dict of str to sequence
            Columns value and share, which sum to 1.
        """
        return {"value": [*self.labels, self.rest], "share": [*self.share.tolist(), self.other]}

    def _keys(self) -> Sequence[str]:
        return [*self.labels, self.rest]

    def _make_rows(self) -> Iterable[ShareRow]:
        return map(ShareRow, *self.columns().values())

    def summary(self) -> str:
        """Return the most important facts in a few words.

        Returns
        -------
        str
            Question, reports, and number of values.
        """
        return (
            f"{self.question or 'shares'}: {counted(self.reports, 'report')}; consistent shares of "
            f"{counted(len(self.labels) + (self.rest == 'no'), 'value')}"
        )

    def heading(self) -> str:
        """Return one line that summarises the result.

        Returns
        -------
        str
            Reports, values, and that the shares are biased.
        """
        return f"{self.summary()}, {self.caution}"

    @property
    def caution(self) -> str:
        """How the shares are biased."""
        return "biased: on average rare values come out too common and common ones too rare"


def remainder(shares: npt.ArrayLike) -> float:
    """Return what is missing to 1, apart from rounding errors."""
    missing = 1.0 - float(np.sum(shares))
    return missing if missing > 1e-12 else 0.0


def nearest_shares(estimate: Floats, variance: Floats) -> Floats:
    """Return the shares x ≥ 0 with Σx ≤ 1 that minimise Σ (x − estimate)² / variance.

    They are max(estimate − λ·variance, 0), with the least λ ≥ 0 for which they sum to at most 1:
    the most likely shares if errors are normal and independent. With equal variances this is
    Norm-Sub, one of the most accurate methods that Wang et al. compare ("Locally Differentially
    Private Frequency Estimation with Consistency", NDSS 2020).

    Parameters
    ----------
    estimate, variance : ndarray of float64, shape (values,)
        Finite estimates and their variances.

    Returns
    -------
    ndarray of float64
        The shares.

    Examples
    --------
    >>> nearest_shares(np.array([0.9, 0.3, -0.1]), np.array([0.1, 0.1, 0.1])).round(3)
    array([0.8, 0.2, 0. ])
    """
    if np.maximum(estimate, 0.0).sum() <= 1.0:
        return np.maximum(estimate, 0.0)
    # An estimate without error would leave no room for the others.
    variance = np.maximum(variance, 1e-12 * variance.max() or 1.0)
    # Values become 0 in the order of estimate / variance; λ_k makes the k first ones sum to 1.
    order = np.argsort(-estimate / variance)
    multiplier = (np.cumsum(estimate[order]) - 1.0) / np.cumsum(variance[order])
    positive = np.flatnonzero(estimate[order] > multiplier * variance[order])[-1]
    shares = np.maximum(estimate - multiplier[positive] * variance, 0.0)
    return np.asarray(shares / max(1.0, float(shares.sum())))  # rounding
