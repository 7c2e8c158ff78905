"""Whether the reports behind a result look as the survey promises."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from deniable.formatting import p_phrase

LEVEL = 0.001
"""Reports of honest clients are called suspicious with about this probability, or a smaller one."""
SUSPICIOUS = "SUSPICIOUS REPORTS"
"""Mark of results that must not be taken for findings."""
MAX_PERIODS = 3
"""Suspicious periods that are named."""


class Checked(Protocol):
    """A result whose reports may have been checked."""

    @property
    def fit(self) -> FitCheck | None:
        """Whether the reports look as the survey promises; None if that was not checked."""


@dataclass(frozen=True)
class FitCheck:
    """Whether the reports look like those that honest clients of the survey send.

    Parameters
    ----------
    p_value : float
        Smallest p-value of all checks, corrected for their number (Bonferroni). NaN if nothing
        could be checked.
    problems : tuple of str
        What honest clients would hardly ever send, found at significance level 0.001 (Holm).
    checked : tuple of str
        What was checked.
    unchecked : tuple of str
        Faults that these reports cannot show.
    conclusive : bool, default True
        False if only impossible shares would have been noticed, as for a boolean, or if there are
        fewer than 1,000 reports.

    Examples
    --------
    >>> print(FitCheck(0.4, (), ("cohorts",), ("the hashing of strings",)))
    The reports look as expected (cohorts; p = 0.4). Cannot be checked: the hashing of strings.
    """

    p_value: float
    problems: tuple[str, ...]
    checked: tuple[str, ...]
    unchecked: tuple[str, ...]
    conclusive: bool = True

    @property
    def suspicious(self) -> bool:
        """Whether a check failed."""
        return bool(self.problems)

    @classmethod
    def of_periods(cls, periods: Sequence[str], parts: Sequence[Checked]) -> FitCheck | None:
        """Return one verdict on reports that were checked period by period.

        Parameters
        ----------
        periods : sequence of str
            Names of the periods.
        parts : sequence of Result
            Result of each period.

        Returns
        -------
        FitCheck or None
            p-values are corrected for the number of periods, too. None if nothing was checked.
        """
        named = zip(periods, parts, strict=True)
        checks = {period: part.fit for period, part in named if part.fit is not None}
        if not checks:
            return None
        each = list(checks.values())
        problems = [
            f"{period}: {'; '.join(check.problems)}"
            for period, check in checks.items()
            if len(each) * check.p_value <= LEVEL
        ]
        if (others := len(problems) - MAX_PERIODS) > 0:
            problems[MAX_PERIODS:] = [f"{others:,} periods more"]
        return cls(
            p_value=float(np.minimum(1, len(each) * np.fmin.reduce([c.p_value for c in each]))),
            problems=tuple(problems),
            checked=tuple(dict.fromkeys(what for check in each for what in check.checked)),
            unchecked=tuple(dict.fromkeys(what for check in each for what in check.unchecked)),
            conclusive=all(check.conclusive for check in each),
        )

    def __str__(self) -> str:
        if self.problems:
            return (
                f"{SUSPICIOUS}: they do not look like answers of honest clients to this "
                f"survey ({p_phrase(self.p_value)}): {'; '.join(self.problems)}. Do not rely on "
                "these results before you know why."
            )
        unchecked = f"Cannot be checked: {'; '.join(self.unchecked)}."
        if not self.conclusive:
            return unchecked
        what = ", ".join(self.checked)
        return f"The reports look as expected ({what}; {p_phrase(self.p_value)}). {unchecked}"
