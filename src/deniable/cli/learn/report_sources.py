"""Reports as people name them: files, folders and stores, or some days of a store."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from deniable.errors import InputError

if TYPE_CHECKING:
    from deniable.survey import Survey


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
