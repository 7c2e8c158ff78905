"""The result of `compare`: which shares changed between two periods."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from deniable.formatting import Z95, Columns, counted, p_phrase, percent
from deniable.kernels.array_types import Floats, Indices, Mask
from deniable.results.base import Provenance, Result
from deniable.results.fit_check import FitCheck
from deniable.results.rows import ChangeRow, Rows

MAX_LISTED = 5
"""Values that a summary lists."""


@dataclass(frozen=True, eq=False, repr=False)
class Change(Rows[ChangeRow], Result):
    """Changes of the shares of one question's values between two periods.

    Parameters
    ----------
    labels : tuple of str
        The values.
    periods : tuple of str
        First days of the earlier and of the later period.
    earlier, later : ndarray of float64, shape (values,)
        Estimated shares in the two periods.
    standard_error : ndarray of float64, shape (values,)
        Standard errors of the differences.
    p_value : ndarray of float64, shape (values,)
        Two-sided p-values of "the share did not change", before the correction.
    changed : ndarray of bool, shape (values,)
        Whether the test rejects that hypothesis after the correction.
    alpha : float
        Significance level.
    correction : str or None
        Correction for testing many values: "holm", "bonferroni", "fdr" or None.
    question : str, default ""
        Name of the question.
    provenance : Provenance, optional
        Where both periods come from.
    fit : FitCheck, optional
        Whether the reports of both periods look as the survey promises.
    tested : bool, default True
        Whether both periods have tests. If not, p-values are NaN.

    Examples
    --------
    >>> change = Change(
    ...     ("vim", "emacs"), ("2027-01-04", "2027-01-11"),
    ...     np.array([0.5, 0.3]), np.array([0.4, 0.31]), np.array([0.02, 0.02]),
    ...     np.array([6e-7, 0.6]), np.array([True, False]), 0.05, "holm",
    ... )
    >>> print(change.summary())
    2027-01-04 to 2027-01-11: 1 of 2 values changed: vim 50.0% → 40.0% (p = 6e-07)
    >>> change["emacs"].changed
    False
    """

    labels: tuple[str, ...]
    periods: tuple[str, str]
    earlier: Floats
    later: Floats
    standard_error: Floats
    p_value: Floats
    changed: Mask
    alpha: float
    correction: str | None
    question: str = ""
    provenance: Provenance | None = None
    fit: FitCheck | None = None
    tested: bool = True

    @property
    def estimate(self) -> Floats:
        """Estimated changes, float64[values]: later minus earlier share."""
        return self.later - self.earlier

    @property
    def low(self) -> Floats:
        """Lower ends of the 95% confidence intervals of the changes."""
        return self.estimate - Z95 * self.standard_error

    @property
    def high(self) -> Floats:
        """Upper ends of the 95% confidence intervals of the changes."""
        return self.estimate + Z95 * self.standard_error

    @property
    def order(self) -> Indices:
        """Indices of the values, smallest p-value first."""
        return np.argsort(self.p_value, kind="stable")

    def columns(self) -> Columns:
        """Return one row per value, smallest p-value first.

        Returns
        -------
        dict of str to sequence
            Columns value, earlier, later, change, standard_error, low, high, p_value and changed.
        """
        order = self.order
        shown = {name: getattr(self, name) for name in ("earlier", "later")}
        shown["change"] = self.estimate
        for name in ("standard_error", "low", "high", "p_value", "changed"):
            shown[name] = getattr(self, name)
        numbers: Columns = {name: column[order].tolist() for name, column in shown.items()}
        return {"value": [self.labels[i] for i in order], **numbers}

    def _keys(self) -> Sequence[str]:
        return [self.labels[i] for i in self.order]

    def _make_rows(self) -> Iterable[ChangeRow]:
        return map(ChangeRow._make, zip(*self.columns().values(), strict=True))

    def summary(self) -> str:
        """Return the values that changed, in one line.

        Returns
        -------
        str
            Periods, and up to five values with their changes.
        """
        first, last = self.periods
        count, total = int(self.changed.sum()), len(self.labels)
        if not self.tested:
            return f"{first} to {last}: {counted(total, 'value')}"
        if not count:
            return f"{first} to {last}: no significant change of {counted(total, 'value')}"
        changes = [
            f"{self.labels[i]} {percent(self.earlier[i])} → {percent(self.later[i])} "
            f"({p_phrase(self.p_value[i])})"
            for i in self.order[: min(count, MAX_LISTED)]
        ]
        more = f" and {count - MAX_LISTED:,} more" if count > MAX_LISTED else ""
        which = f"{count:,} of {total:,} values " if total > 1 else ""
        return f"{first} to {last}: {which}changed: {', '.join(changes)}{more}"
