"""Surveys and questions as people name them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from deniable.errors import InputError

if TYPE_CHECKING:
    from deniable.store import Store
    from deniable.survey import Survey


def survey_in(store: Store, name: str) -> Survey:
    """Return the survey called NAME (its newest version) or NAME@VERSION."""
    wanted, _, version = name.partition("@")
    surveys = store.surveys()
    for survey in reversed(surveys):
        if survey.name == wanted and version in ("", str(survey.version)):
            return survey
    known = ", ".join(f"{s.name}@{s.version}" for s in surveys) or "none"
    raise InputError(f"expected one of the surveys in {store.url}: {known}; got {name!r}")


def survey_of(name: str, reports: Sequence[str]) -> Survey:
    """Return the survey in this file, or of this name in the first store among the reports."""
    from deniable import store
    from deniable.survey import Survey

    if Path(name).is_file():
        return Survey.load(name)
    for url in filter(store.is_url, reports):
        with store.open(url) as opened:
            return survey_in(opened, name)
    raise InputError(f"there is no survey file {name}; only a store knows surveys by name")


def question_of(survey: Survey, given: str | None) -> str:
    """Return the question that was named, or the only one there is."""
    names = [question.name for question in survey.questions]
    if given is None and len(names) == 1:
        return names[0]
    if given is None:
        raise click.UsageError(f"say which question: --question {' or '.join(names)}")
    return survey.question(given).name
