"""Surveys, questions, answers and lists of strings as users name or write them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from deniable import store
from deniable.arguments import BOOLEANS
from deniable.cli.options import REPORT_FILES
from deniable.errors import InputError, did_you_mean
from deniable.survey import Survey
from deniable.text_files import read_text

if TYPE_CHECKING:
    from deniable.results import Result


# --- surveys, questions, answers -----------------------------------------------------------------


def survey_in(opened: store.Store, name: str) -> Survey:
    """Return the survey NAME (its newest version) or NAME@VERSION of a store."""
    wanted, _, version = name.partition("@")
    surveys = opened.surveys()
    for survey in reversed(surveys):
        if survey.name == wanted and version in ("", str(survey.version)):
            return survey
    known = ", ".join(f"{s.name}@{s.version}" for s in surveys) or "no survey"
    hint = did_you_mean(wanted, [s.name for s in surveys])
    raise InputError(f"there is no survey {name!r} in {opened.url}, which has {known}.{hint}")


def survey_of(name: str, reports: Sequence[str]) -> Survey:
    """Return the survey in the file NAME, or the one called NAME in the first store."""
    if store.is_url(name) or Path(name).suffix in REPORT_FILES:
        raise InputError(
            f"expected a survey before the reports, got {name}: write SURVEY, then REPORTS"
        )
    if Path(name).is_file():
        return Survey.load(name)
    for url in filter(store.is_url, reports):
        with store.open(url) as opened:
            return survey_in(opened, name)
    raise InputError(
        f"there is no survey file {name}; a survey can be given by its name only if its reports "
        "are in a store"
    )


def question_of(survey: Survey, given: str | None, names: Sequence[str] = ()) -> str:
    """Return the given question, or the only one.

    Parameters
    ----------
    survey
        The survey.
    given
        Name that the user gave, if any.
    names
        Questions to choose from; by default all questions of the survey.
    """
    names = names or [question.name for question in survey.questions]
    if given is not None:
        return survey.question(given).name
    if len(names) > 1:
        raise click.UsageError(
            f"choose one of the questions {', '.join(names)}, for example --question {names[0]}"
        )
    return names[0]


def parse_answer(text: str, kind: str, where: str) -> str | bool | float:
    """Return an answer as a question of this kind takes it; `where` begins the error message."""
    if kind == "number":
        try:
            return float(text)
        except ValueError:
            raise InputError(f"{where}: expected a number; got {text!r:.80}") from None
    if kind != "boolean":
        return text
    if text.lower() not in BOOLEANS:
        raise InputError(f"{where}: expected yes, no, true, false, 1 or 0; got {text!r}")
    return BOOLEANS[text.lower()]


# --- lists of strings ----------------------------------------------------------------------------


def read_strings(path: Path) -> list[str]:
    """Return the strings in a file: lines, the column `value` of a CSV, or a result in JSON."""
    if path.suffix == ".csv":
        return [row[0] for row in _columns(path, ("value",))]
    if path.suffix == ".json":
        return _strings_of_result(path)
    strings = [line for line in read_text(path).replace("\r\n", "\n").split("\n") if line]
    if not strings:
        raise InputError(f"{path} is empty: expected one string per line")
    return strings


def read_words(path: Path) -> dict[str, float]:
    """Return the weight of each word in a file: lines, or the columns `value,weight` of a CSV."""
    if path.suffix != ".csv":
        return dict.fromkeys(read_strings(path), 1.0)
    try:
        return {word: float(weight) for word, weight in _columns(path, ("value", "weight"))}
    except ValueError as error:
        raise InputError(f"{path}: expected numbers in the column 'weight': {error}") from None


def _columns(path: Path, names: tuple[str, ...]) -> list[list[str]]:
    """Return the cells of these columns, one list per row."""
    from deniable.columns.spreadsheet import read_rows

    rows = read_rows(path)
    _, header = next(rows, (0, []))
    for name in names:
        if name not in header:
            hint, found = did_you_mean(name, header), ", ".join(header) or "an empty file"
            raise InputError(f"{path}: expected a column {name!r}, found {found}.{hint}")
    chosen = []
    for line, row in rows:
        if len(row) != len(header):
            raise InputError(f"{path}, line {line}: expected {len(header)} cells, got {len(row)}")
        chosen.append([row[header.index(name)] for name in names])
    return chosen


def read_result(path: Path) -> Result:
    """Return a result that was saved as JSON."""
    from deniable.results import Result

    try:
        return Result.from_json(read_text(path))
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _strings_of_result(path: Path) -> list[str]:
    """Return the strings that a saved result of `decode` or `discover` detected."""
    from deniable.results import Discovery, Marginal

    result = read_result(path)
    if isinstance(result, Discovery):
        return list(result.strings)
    if isinstance(result, Marginal):
        pairs = zip(result.labels or (), result.detected, strict=True)
        return [name for name, detected in pairs if detected]
    kind = type(result).__name__
    raise InputError(f"{path}: expected a result of decode or discover, got a {kind}")
