"""The verb `compare`: which shares changed between two periods of a trend.

Two periods have errors in common if the same clients answered in both. With n clients per period,
R reports of each, φ the probability that permanent noise flips a bit, and h bits per value, the
estimate of a share t has, in each period, the variance
    t(1 − t)/n  +  φ(1 − φ) / ((1 − 2φ)² h n)  +  fresh noise
     the values       the permanent noise
Fresh noise is independent in the two periods. If of the holders of each value a share κ has the
same value in both periods, its permanent noise is the same, and the covariance is at least
    κ·t − t²  +  κ·φ(1 − φ) / ((1 − 2φ)² h),  divided by n,
because a client holds the value in both periods with probability κt or more. The first part is 0
instead if it is negative: a client's two answers are at least as alike as those of two clients.
"""

from __future__ import annotations

from typing import cast

import numpy as np
from scipy import special

from deniable.analysis.conditions import check_same_clients
from deniable.errors import InputError
from deniable.inference.marginal.detection import Correction, rejection_cutoff
from deniable.kernels.array_types import Floats
from deniable.protocols import from_canonical
from deniable.results import Change, FitCheck, Marginal, Provenance, Trend


def compare(
    trend: Trend[Marginal],
    earlier: str | None = None,
    later: str | None = None,
    *,
    same_clients: float | None = None,
) -> Change:
    """Test which shares changed between two periods.

    Reports do not say which client sent them. So the test cannot know whether the same clients
    answered in both periods, and by default it assumes that all of them are different ones. That is
    the safe assumption, but if many clients are the same, it misses changes that could be found:
    the same clients make the same errors in both periods, and these cancel.

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
    same_clients : float, optional
        A number from 0 to 1 that you know from elsewhere: of the clients with each value in the
        smaller period, at least this share also answers in the other period, with the same value.
        What was given to `trend` by default. If it is too large, the test is wrong more often than
        its significance level says.

    Returns
    -------
    Change
        One row per value: change, 95% confidence interval, p-value, and whether the value changed.
        Significance level and correction are those of the trend.

    Raises
    ------
    InputError
        If the trend has no two such periods, or `same_clients` is not between 0 and 1.

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
    if same_clients is None:
        same_clients = trend.same_clients
    parts = trend[periods[0]], trend[periods[1]]
    check_same_clients(same_clients, parts[0].where)
    provenance = parts[0].provenance or trend.provenance
    shared = _shared_variance(parts, same_clients, provenance)
    variance = sum(part.standard_error**2 for part in parts) - 2 * shared
    error = np.sqrt(np.maximum(variance, 0.0))
    tested = parts[0].identified & parts[1].identified & (error > 0)
    distance = np.abs(parts[1].estimate - parts[0].estimate)
    z = np.divide(distance, error, out=np.zeros_like(error), where=tested)
    # Trends that were saved by earlier versions have no p-values.
    absent = np.minimum(2 * np.nan_to_num(np.minimum(*(part.p_value for part in parts))), 1.0)
    p_value = np.where(tested, np.maximum(2 * special.ndtr(-z), absent), 1.0)
    first = parts[0]
    cutoff = rejection_cutoff(p_value, first.alpha, cast(Correction, first.correction))
    return Change(
        labels=first.names,
        periods=periods,
        earlier=first.estimate,
        later=parts[1].estimate,
        standard_error=error,
        p_value=p_value,
        changed=tested & (p_value <= cutoff),
        same_clients=same_clients,
        alpha=first.alpha,
        correction=first.correction,
        question=first.title,
        target=first.target,
        provenance=trend.provenance,
        fit=FitCheck.of_periods(periods, parts),
    )


def _shared_variance(
    parts: tuple[Marginal, Marginal], same_clients: float, provenance: Provenance | None
) -> Floats:
    """Return a lower bound of the covariance of the estimates of two periods, float64[values]."""
    if not same_clients:
        return np.zeros(len(parts[0].estimate))
    if provenance is None:
        raise InputError("same_clients needs a trend that says which survey it comes from")
    protocol = from_canonical(dict(provenance.parameters[parts[0].question]))
    permanent = protocol.mechanisms[0].permanent_variance
    clients = max((p.total_reports or p.reports) / p.reports_per_client for p in parts)
    shares = np.nan_to_num([part.estimate for part in parts])
    values = np.maximum(shares * (same_clients - shares), 0.0).min(axis=0)
    if parts[0].target == "respondents":
        values = 0.0
    return np.asarray((values + same_clients * permanent) / clients)
