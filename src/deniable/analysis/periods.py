"""The verb `trend`, and any other analysis of a store by day or week."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Literal, TypeVar

from deniable.analysis.categories import Strings
from deniable.analysis.conditions import Subgroup, Where
from deniable.analysis.decoding import decode
from deniable.analysis.source import Stored, no_reports
from deniable.arguments import Day, as_names, as_optional_day
from deniable.compute.executors import AnyExecutor
from deniable.compute.progress import Progress, reports_progress
from deniable.errors import InputError, did_you_mean
from deniable.inference.marginal.detection import Correction
from deniable.results import Discovery, Marginal, Result, Trend
from deniable.results.base import TEST_DATA
from deniable.store import Store
from deniable.survey import Survey, SurveyOrPath

By = Literal["day", "week"]
R = TypeVar("R", bound=Result)


def by_period(
    survey: SurveyOrPath,
    store: Store | str | Path,
    analyse: Callable[[Stored], R],
    *,
    by: By = "day",
    since: Day | None = None,
    until: Day | None = None,
    strict: bool = False,
) -> Trend[R]:
    """Analyse each day or week of a store separately.

    Periods without reports are left out.

    Parameters
    ----------
    survey : Survey, str or Path
        Survey that the reports answer, or the path of its file.
    store : Store, str or Path
        An open store, or its URL.
    analyse : callable
        Called with the `Stored` reports of one period; returns a result.
    by : {"day", "week"}, default "day"
        Length of a period. Weeks begin on Monday.
    since : date or str, optional
        First day to analyse.
    until : date or str, optional
        Last day to analyse.
    strict : bool, default False
        If a period cannot be analysed, raise the error instead of skipping the period.

    Returns
    -------
    Trend
        One result per period, and for each skipped period the reason.

    Raises
    ------
    InputError
        If the store has no reports in these days; with `strict`, also if a period cannot be
        analysed.

    Examples
    --------
    >>> from deniable import associate
    >>> from deniable.analysis import by_period
    >>> def weekly_table(survey, store):
    ...     return by_period(
    ...         survey,
    ...         store,
    ...         lambda reports: associate(survey, reports, ["browser", "dark"]),
    ...         by="week",
    ...     )
    """
    if by not in ("day", "week"):
        raise InputError(
            f"by must be 'day' or 'week', got {by!r}.{did_you_mean(by, ('day', 'week'))}"
        )
    parts: dict[str, R] = {}
    skipped: dict[str, str] = {}
    survey = Survey.of(survey)
    since, until = as_optional_day("since", since), as_optional_day("until", until)
    first, last = since or date.min, until or date.max
    with Stored(store, since, until).opened() as opened:
        days = sorted(day for day in opened.days(survey) if first <= day <= last)
        if not days:
            raise no_reports(survey, opened.url, Stored(store, since, until))
        for start, end in _periods(days, by).items():
            try:
                parts[str(start)] = analyse(Stored(opened, max(first, start), min(last, end)))
            except InputError as error:
                if strict:
                    raise
                skipped[str(start)] = str(error)
        origin = f"{opened.url}, {days[0]} to {days[-1]}, by {by}"
    sources = [part.provenance for part in parts.values() if part.provenance is not None]
    provenance = None
    if sources:
        total = sum(source.reports for source in sources)
        if sources[0].is_test_data:
            origin = f"{TEST_DATA}; {origin}"
        provenance = replace(sources[0], reports=total, origin=origin)
    return Trend(by, tuple(parts), tuple(parts.values()), skipped, provenance)


@reports_progress
def trend(
    survey: SurveyOrPath,
    store: Store | str | Path,
    question: str,
    candidates: Strings | Mapping[str, Strings] | None = None,
    *,
    where: Where | None = None,
    by: By = "day",
    since: Day | None = None,
    until: Day | None = None,
    alpha: float = 0.05,
    correction: Correction = "holm",
    reports_per_client: float = 1.0,
    executor: AnyExecutor = None,
    progress: Progress | None = None,
) -> Trend[Marginal]:
    """Decode each day or week of a store separately.

    Periods without reports are left out. A client that reports in several periods reuses its
    permanent noise. The interval of each period is correct, but errors of different periods may be
    correlated: use `compare` to find out what changed.

    Parameters
    ----------
    survey : Survey, str or Path
        Survey that the reports answer, or the path of its file.
    store : Store, str or Path
        An open store, or its URL.
    question : str
        Name of the question to decode.
    candidates : iterable of str, Discovery or Marginal, optional
        Strings to look for, or a result of `discover` or `decode`. Required for a string question.
    where : mapping of str to answers, optional
        Decode only a subgroup of the clients; see `decode`. Periods in which no candidate is
        detected are skipped.
    by : {"day", "week"}, default "day"
        Length of a period. Weeks begin on Monday.
    since : date or str, optional
        First day to analyse.
    until : date or str, optional
        Last day to analyse.
    alpha : float, default 0.05
        Significance level in each period; see `decode`. Divide it by the number of periods to
        bound the probability of any false detection in the whole trend.
    correction : {"holm", "bonferroni", "fdr"} or None, default "holm"
        How `alpha` accounts for testing many values; see `decode`.
    reports_per_client : float, default 1.0
        Average number of reports per client in one period; see `decode`.
    executor : str or distributed.Client, optional
        Where the computation runs: "threads" (default), "threads:N", "dask://HOST:PORT",
        "tls://HOST:PORT" or a `distributed.Client`.
    progress : callable, optional
        Called with the name of the current stage and the fraction of it that is done.

    Returns
    -------
    Trend
        One `Marginal` per period.

    Raises
    ------
    InputError
        If the store has no reports in these days, or the question cannot be decoded.

    Examples
    --------
    >>> import tempfile
    >>> from datetime import date
    >>> import numpy as np
    >>> from deniable import Survey, simulate, store, trend
    >>> from deniable.columns.batch import to_bodies
    >>> from deniable.store import Upload
    >>> survey = Survey.from_toml('''
    ... name = "modes"
    ... version = 1
    ... owner = "you@example.com"
    ... description = "Do you use dark mode?"
    ... expires = 2999-12-31
    ... collect = "once"
    ... [questions.dark]
    ... kind = "boolean"
    ... epsilon = 2.0
    ... ''')
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with store.open(f"{folder}/reports.db", create=True) as reports:
    ...         reports.add_survey(survey)
    ...         for day, share in ((1, 0.2), (2, 0.8)):
    ...             answers = np.arange(5000) < 5000 * share
    ...             batch = simulate(survey, answers.tolist(), rng=np.random.default_rng(day))
    ...             data = to_bodies(batch)
    ...             key = bytes([day] * 16)
    ...             upload = Upload(
    ...                 key, survey.digest, len(data), data.tobytes(), date(2025, 3, day), key
    ...             )
    ...             outcomes = reports.append([upload])
    ...         result = trend(survey, reports, "dark")
    >>> [part.estimate.round(1).tolist() for part in result.parts]
    [[0.2], [0.8]]
    """
    survey = Survey.of(survey)
    if candidates is not None and not isinstance(candidates, Discovery | Marginal | Mapping):
        candidates = as_names("candidates", candidates)  # read once, used in every period

    def analyse(reports: Stored) -> Marginal:
        return decode(
            survey,
            reports,
            question,
            candidates,
            where=where,
            alpha=alpha,
            correction=correction,
            reports_per_client=reports_per_client,
            executor=executor,
        )

    strict = not where
    if where:
        Subgroup.of(survey, question, where)  # raises before the periods are analysed
    return by_period(
        survey,
        store,
        analyse,
        by=by,
        since=since,
        until=until,
        strict=strict,
    )


def _periods(days: list[date], by: By) -> dict[date, date]:
    """Return the first and last day of each period that contains one of these days."""
    if by == "day":
        return {day: day for day in days}
    mondays = (day - timedelta(days=day.weekday()) for day in days)
    return {monday: monday + timedelta(days=6) for monday in mondays}
