"""Reports as people name them: files, folders and stores; some days of them, or one period after
another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from deniable.errors import InputError

if TYPE_CHECKING:
    from deniable.results import Result, Series
    from deniable.survey import Survey

R = TypeVar("R", bound="Result")


def survey_of(name: str, reports: Sequence[str]) -> Survey:
    """The survey in this file, or of this name in the first store among the reports."""
    from deniable import store
    from deniable.cli.collect.store_options import chosen
    from deniable.survey import Survey

    if Path(name).is_file():
        return Survey.load(name)
    for url in filter(store.is_url, reports):
        with store.open(url) as opened:
            return chosen(opened, name)
    raise InputError(f"there is no survey file {name}; only a store knows surveys by name")


def question_of(survey: Survey, given: str | None) -> str:
    """The question that was named, or the only one there is."""
    names = [question.name for question in survey.questions]
    if given is None and len(names) == 1:
        return names[0]
    if given is None:
        raise click.UsageError(f"say which question: --question {' or '.join(names)}")
    return survey.question(given).name


def the_store(names: Sequence[str]) -> str:
    """The one store that was named: only a store knows on which day a report came."""
    from deniable import store

    if len(names) != 1 or not store.is_url(names[0]):
        raise InputError(
            f"expected one store, which knows days, for --since, --until and --by; got "
            f"{', '.join(names)}"
        )
    return names[0]


def chosen_days(names: Sequence[str], since: date | None, until: date | None) -> list[Any]:
    """The reports, of these days only."""
    from deniable.analysis import Stored

    return [Stored(the_store(names), since, until)] if since or until else list(names)


def by_period(
    survey: Survey,
    names: Sequence[str],
    since: date | None,
    until: date | None,
    by: str,
    analyse: Callable[[list[Any]], R],
) -> Series:
    """The analysis of each day or week that has reports."""
    from deniable import store
    from deniable.results import Series

    url = the_store(names)
    with store.open(url) as opened:
        days = [d for d in opened.days(survey) if (since or d) <= d <= (until or d)]
    if not days:
        raise InputError(f"{url} has no reports of {survey!r} in these days")
    parts: dict[str, R] = {}
    skipped = {}
    for first, last in _periods(sorted(days), by):
        start, end = max(first, since or first), min(last, until or last)
        try:
            parts[first.isoformat()] = analyse(chosen_days(names, start, end))
        except InputError as error:
            skipped[first.isoformat()] = str(error)
    return Series(by, tuple(parts), tuple(parts.values()), skipped)


def _periods(days: Sequence[date], by: str) -> Iterator[tuple[date, date]]:
    """First and last day of each; weeks begin on Monday."""
    if by == "day":
        yield from zip(days, days, strict=True)
        return
    for monday in sorted({day - timedelta(days=day.weekday()) for day in days}):
        yield monday, monday + timedelta(days=6)
