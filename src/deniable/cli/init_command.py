"""`deniable init`: the first survey file, from a few questions or from options."""

from __future__ import annotations

import math
import sys
from datetime import date
from pathlib import Path
from typing import Any

import click

from deniable.cli import options
from deniable.cli.options import command
from deniable.cli.output import print_outcome
from deniable.errors import InputError
from deniable.formatting import counted
from deniable.survey.draft import (
    DESCRIPTION_PLACEHOLDER,
    OWNER_PLACEHOLDER,
    Draft,
    DraftQuestion,
    survey_name,
)

DEFAULT_EPSILON = {"string": 3.0, "unknown": 4.0, "choice": 2.0, "boolean": 1.0}
"""ε of a question by its kind; a given total is divided in these proportions."""
DICTIONARY = {
    "protocol": ("prefixes", "# each client reports one prefix; deniable discover reads them"),
    "max_length": (20, "# longer strings are cut"),
    "alphabet": ("a-z0-9._-", '# or "bytes" for any text at all'),
}
"""Dictionary section of a question whose strings nobody lists."""
AskedQuestion = tuple[str, str, tuple[str, ...]]
"""Name, kind and options of a question."""


@command()
@click.argument("file", default="survey.toml", type=options.FILE)
@options.option("--name")
@options.option("--owner")
@options.option("--description")
@options.day_option("--expires")
@options.collect_option
@options.option("--string", multiple=True, metavar="NAME")
@options.option("--unknown", multiple=True, metavar="NAME")
@options.option("--choice", multiple=True, metavar="NAME=A,B,C")
@options.option("--boolean", multiple=True, metavar="NAME")
@options.option("--epsilon", type=options.POSITIVE_FLOAT, metavar="NUMBER")
@options.flag("--force")
@options.json_option("the outcome")
def init(
    file: Path, expires: date | None, collect: str, epsilon: float | None, **given: Any
) -> None:
    """Write a survey file with comments to FILE (by default survey.toml).

    On a terminal, the command asks for everything that the options do not give.

    Parameters
    ----------
    name
        Name of the survey; by default that of the file.
    owner
        Who is responsible for the survey, and how to reach them.
    description
        What is asked and why, in words for the people who are asked.
    expires
        Last day of the survey; by default one year from today.
    string
        Add a string question with this name; you will list candidate strings. May be repeated.
    unknown
        Add a string question whose strings nobody lists: deniable discover finds them. May be
        repeated.
    choice
        Add a choice question with these options. May be repeated.
    boolean
        Add a yes-or-no question. May be repeated.
    epsilon
        Total ε of all questions, divided among them; by default 1 to 4 per question,
        depending on its kind.
    force
        Overwrite FILE if it exists.

    Examples
    --------
    deniable init
    deniable init survey.toml --owner "Ada, ada@example.com" --boolean dark_mode
    deniable init survey.toml --unknown homepage --choice browser=Firefox,Safari,another --epsilon 6
    """
    if file.exists() and not given["force"]:
        raise InputError(f"{file} already exists: choose another name, or overwrite with --force")
    asked = [_parse_question(kind, item) for kind in DEFAULT_EPSILON for item in given[kind]]
    name, owner, description = (given[text] for text in ("name", "owner", "description"))
    if sys.stdin.isatty() and sys.stdout.isatty() and not given["as_json"]:
        name = name or click.prompt("Name of the survey", default=survey_name(file.name))
        owner = owner or click.prompt("Who is responsible for it, and how to reach them")
        description = description or click.prompt("What you ask and why, for the people you ask")
        asked = asked or _prompt_questions()
    questions = _drafts(asked or [("answer", "boolean", ())], epsilon, collect)
    name, owner = name or survey_name(file.name), owner or OWNER_PLACEHOLDER
    draft = Draft(
        name, tuple(questions), owner, description or DESCRIPTION_PLACEHOLDER, expires, collect
    )
    survey = draft.survey()
    file.write_text(draft.toml(file.name), encoding="utf-8")
    print_outcome(
        {"file": str(file), "name": survey.name, "questions": [q.name for q in survey.questions]},
        f"Wrote {file} with {counted(len(survey.questions), 'question')}, ε = "
        f"{survey.budget / 1e9:.6g} in total. Next: deniable check {file}",
        given["as_json"],
    )


def _parse_question(kind: str, item: str) -> AskedQuestion:
    """Return a question as an option gives it."""
    if kind != "choice":
        return item, kind, ()
    name, equals, choices = item.partition("=")
    if not equals or not choices:
        raise click.UsageError(f"expected --choice NAME=A,B,C, got {item!r}")
    return name, kind, tuple(part.strip() for part in choices.split(","))


def _prompt_questions() -> list[AskedQuestion]:
    """Ask for questions until a name is left empty."""
    asked: list[AskedQuestion] = []
    while True:
        allowed = "" if asked else " (a-z, 0-9, _ and -)"
        name = click.prompt(
            f"Name of a question{allowed}, or empty to finish", default="", show_default=False
        )
        if not name and asked:
            return asked
        if not name:
            click.echo("  A survey needs at least one question.")
            continue
        kinds = "string (you list candidates), unknown (nobody lists them), choice or boolean"
        kind = click.prompt(
            f"  Kind: {kinds}", type=click.Choice(list(DEFAULT_EPSILON)), default="boolean"
        )
        choices = click.prompt("  Options, separated by commas") if kind == "choice" else ""
        asked.append((name, kind, tuple(o.strip() for o in choices.split(",") if o.strip())))


def _drafts(asked: list[AskedQuestion], epsilon: float | None, collect: str) -> list[DraftQuestion]:
    """Return the questions with their ε; rounded down, so that they never exceed the total."""
    whole = sum(DEFAULT_EPSILON[kind] for _, kind, _ in asked)
    drafts = []
    for name, kind, choices in asked:
        own = DEFAULT_EPSILON[kind]
        if epsilon is not None:
            own *= epsilon / whole
            own = math.floor(1e6 * own) / 1e6 or own
        settings: dict[str, Any] = {"options": list(choices)} if kind == "choice" else {}
        if kind == "unknown" and collect == "once":
            settings["mechanism"] = "localhash"
        dictionary = DICTIONARY if kind == "unknown" else None
        kind = "string" if kind == "unknown" else kind
        drafts.append(DraftQuestion(name, kind, own, settings=settings, dictionary=dictionary))
    return drafts
