"""The same analysis of one day or week of a store after another."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Literal, TypeVar

from deniable.analysis.decoding import decode
from deniable.analysis.source import Stored
from deniable.compute.backend import Backend
from deniable.compute.progress import Progress, reports_progress
from deniable.errors import InputError
from deniable.inference.marginal.detection import Correction
from deniable.results import Marginal, Result, Trend
from deniable.store import Store
from deniable.survey import Survey

By = Literal["day", "week"]
R = TypeVar("R", bound=Result)


def by_period(
    survey: Survey,
    store: Store | str | Path,
    analyse: Callable[[Stored], R],
    *,
    by: By = "day",
    since: date | None = None,
    until: date | None = None,
    strict: bool = False,
) -> Trend[R]:
    """Analyse every day or week of a store that has reports, each by itself.

    Parameters
    ----------
    survey : Survey
    store : Store, str or Path
        An open store, or its URL.
    analyse : function of a Stored
        Calls a verb on the reports of one period.
    by : "day" or "week"
        Length of a period. Weeks begin on Monday.
    since, until : date, optional
        First and last day, both included.
    strict : bool
        Raise the error of a period that cannot be analysed, instead of skipping the period.

    Returns
    -------
    Trend
        One result per period; and for each period that could not be analysed, the reason.
    """
    if by not in ("day", "week"):
        raise InputError(f"expected by day or week, got {by!r}")
    parts: dict[str, R] = {}
    skipped: dict[str, str] = {}
    first, last = since or date.min, until or date.max
    with Stored(store, since, until).opened() as opened:
        days = sorted(day for day in opened.days(survey) if first <= day <= last)
        if not days:
            raise InputError(f"{opened.url} has no reports of {survey!r} in these days")
        for start, end in _periods(days, by).items():
            try:
                parts[str(start)] = analyse(Stored(opened, max(first, start), min(last, end)))
            except InputError as error:
                if strict:
                    raise
                skipped[str(start)] = str(error)
        origin = f"{opened.url}, {days[0]} to {days[-1]}, by {by}"
    sources = [part.provenance for part in parts.values() if part.provenance is not None]
    whole = None
    if sources:
        total = sum(source.reports for source in sources)
        whole = replace(sources[0], reports=total, origin=origin)
    return Trend(by, tuple(parts), tuple(parts.values()), skipped, whole)


@reports_progress
def trend(
    survey: Survey,
    store: Store | str | Path,
    question: str,
    candidates: Iterable[str] | None = None,
    *,
    by: By = "day",
    since: date | None = None,
    until: date | None = None,
    alpha: float = 0.05,
    correction: Correction = "holm",
    reports_per_client: float = 1.0,
    executor: Backend | None = None,
    progress: Progress | None = None,
) -> Trend[Marginal]:
    """Decode every day or week (from Monday) of a store that has reports, each by itself.

    The other arguments are those of `decode`; `reports_per_client` is within one period. Clients
    that report in several periods share their permanent noise between them: each interval is
    right by itself, but neighbouring errors may go together.
    """
    names = None if candidates is None else list(candidates)

    def analyse(reports: Stored) -> Marginal:
        return decode(
            survey,
            reports,
            question,
            names,
            alpha=alpha,
            correction=correction,
            reports_per_client=reports_per_client,
            executor=executor,
        )

    return by_period(survey, store, analyse, by=by, since=since, until=until, strict=True)


def _periods(days: list[date], by: By) -> dict[date, date]:
    """First and last day of every period that these days lie in."""
    if by == "day":
        return {day: day for day in days}
    mondays = (day - timedelta(days=day.weekday()) for day in days)
    return {monday: monday + timedelta(days=6) for monday in mondays}
