"""The verb `compare`: which shares changed between two periods of a trend."""

from __future__ import annotations

from typing import cast

import numpy as np
from scipy import special

from deniable.errors import InputError
from deniable.inference.marginal.detection import Correction, rejection_cutoff
from deniable.results import Change, FitCheck, Marginal, Trend


def compare(trend: Trend[Marginal], earlier: str | None = None, later: str | None = None) -> Change:
    """Test which shares changed between two periods.

    Reports do not say which client sent them. The test assumes that different clients answered in
    the two periods. That is the safe assumption: if many of them are the same, they make the same
    errors in both periods, and the test misses changes.

    A value changes only if some clients hold it. So a value that is not detected in either period
    by its own test counts as unchanged, which matters in small crowds. A common string that is not
    listed, and comes or goes between the periods, can make listed strings seem to change a little:
    list it as well.

    Parameters
    ----------
    trend : Trend of Marginal
        Result of `trend`.
    earlier : str, optional
        First day of the earlier period. The first period by default.
    later : str, optional
        First day of the later period. The last period by default.

    Returns
    -------
    Change
        One row per value: change, 95% confidence interval, p-value, and whether the value changed.
        Significance level and correction are those of the trend.

    Raises
    ------
    InputError
        If the trend has no two such periods.

    Examples
    --------
    >>> from deniable import decode, simulate
    >>> from deniable.analysis import compare
    >>> from deniable.results import Trend
    >>> from deniable.survey import example_survey
    >>> survey, weeks = example_survey(), []
    >>> for yes in (500, 700):
    ...     answers = {"dark_mode": [True] * yes + [False] * (1000 - yes)}
    ...     weeks.append(decode(survey, simulate(survey, answers, rng=yes), "dark_mode"))
    >>> change = compare(Trend("week", ("2027-01-04", "2027-01-11"), tuple(weeks)))
    >>> print(change.summary())
    2027-01-04 to 2027-01-11: changed: yes 51.5% → 65.6% (p = 0.00348)
    """
    if not trend.of_marginals or len(trend.periods) < 2:
        raise InputError("a comparison needs a trend of marginals with at least two periods")
    periods = (earlier or trend.periods[0], later or trend.periods[-1])
    if periods[0] >= periods[1]:
        raise InputError(f"the earlier period must come first, got {periods[0]} and {periods[1]}")
    parts = trend[periods[0]], trend[periods[1]]
    error = np.sqrt(sum(part.standard_error**2 for part in parts))
    tested = parts[0].identified & parts[1].identified & (error > 0)
    distance = np.abs(parts[1].estimate - parts[0].estimate)
    z = np.divide(distance, error, out=np.zeros_like(error), where=tested)
    absent = np.minimum(2 * np.minimum(*(part.p_value for part in parts)), 1.0)
    p_value = np.where(tested, np.maximum(2 * special.ndtr(-z), absent), 1.0)
    first, has_tests = parts[0], all(part.tested for part in parts)
    if not has_tests:
        p_value = np.full(len(p_value), np.nan)
    cutoff = rejection_cutoff(p_value, first.alpha, cast(Correction, first.correction))
    return Change(
        labels=first.names,
        periods=periods,
        earlier=first.estimate,
        later=parts[1].estimate,
        standard_error=error,
        p_value=p_value,
        changed=tested & (p_value <= cutoff),
        alpha=first.alpha,
        correction=first.correction,
        question=first.title,
        provenance=trend.provenance,
        fit=FitCheck.of_periods(periods, parts),
        tested=has_tests,
    )
