"""`deniable init`: the first survey file, from a conversation or from options."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from deniable.cli import options
from deniable.cli.interview.answers import number_range
from deniable.cli.interview.conversation import Conversation, say
from deniable.cli.interview.outline import DEFAULT_EPSILON, Outline, OutlineQuestion
from deniable.cli.interview.steps import interview
from deniable.cli.options import command
from deniable.cli.output import echo, print_outcome
from deniable.errors import InputError
from deniable.formatting import counted, epsilon_text
from deniable.privacy import NANO
from deniable.survey.draft import survey_name


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
@options.option("--number", multiple=True, metavar="NAME=LOW,HIGH[,BINS]")
@options.option("--boolean", multiple=True, metavar="NAME")
@options.option("--epsilon", type=options.POSITIVE_FLOAT, metavar="NUMBER")
@options.flag("--ask/--no-ask", default=None)
@options.flag("--force")
@options.json_option("the outcome")
def init(file: Path, ask: bool | None, force: bool, as_json: bool, **given: Any) -> None:
    """Write a survey file with comments to FILE (by default survey.toml).

    On a terminal, the command asks for what the options do not give, checks each answer at once,
    and shows what the survey will be able to detect. Unfinished answers are kept in FILE.draft.

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
    number
        Add a number question. Clients report which of the bins from LOW to HIGH (16 by default)
        holds their number; numbers outside count in the first or last bin. May be repeated.
    boolean
        Add a yes-or-no question. May be repeated.
    epsilon
        Total ε of all questions, divided among them; by default 1 to 4 per question,
        depending on its kind.
    ask
        Ask for what the options do not give. By default the command asks only on a terminal, and
        only if the owner, the description or the questions are not given.
    force
        Overwrite FILE if it exists.

    Examples
    --------
    deniable init
    deniable init survey.toml --owner "Ada, ada@example.com" --boolean dark_mode
    deniable init survey.toml --unknown homepage --choice browser=Firefox,Safari,another --epsilon 6
    """
    if ask and as_json:
        raise click.UsageError("--ask and --json cannot be combined")
    outline = _outline(given)
    if ask is None:
        terminal = sys.stdin.isatty() and sys.stdout.isatty() and not as_json
        ask = terminal and not (outline.owner and outline.description and outline.questions)
    _check_target(file, force, ask)
    # Find mistakes before anything is asked; ε is divided among questions that may not be known.
    (outline if outline.questions else replace(outline, epsilon=None)).draft().survey()
    if not ask and not outline.questions:
        raise click.UsageError(
            "a survey needs a question: add one, such as --boolean dark_mode or "
            "--choice pet=cat,dog, or --ask to be asked for it"
        )
    check = f"deniable check {shlex.quote(str(file))}"
    with _conversation(file) if ask else nullcontext() as talk:
        if talk is not None:
            outline, clients = interview(talk, outline, file)
            published = shlex.quote(str(file.with_suffix(".json")))
            check += f" --clients {clients} -o {published}"
        draft = outline.draft(survey_name(file.name))
        survey = draft.survey()
        file.write_text(draft.toml(file.name), encoding="utf-8")
    print_outcome(
        {"file": str(file), "name": survey.name, "questions": [q.name for q in survey.questions]},
        f"Wrote {file} with {counted(len(survey.questions), 'question')}, ε = "
        f"{epsilon_text(survey.budget / NANO)} in total. Next: {check}",
        as_json,
    )


def _outline(given: dict[str, Any]) -> Outline:
    """Return what the options say about the survey."""
    source = click.get_current_context().get_parameter_source("collect")
    expires, today = given["expires"], datetime.now(UTC).date()
    if expires is not None and expires < today:
        raise InputError(f"--expires {expires} has passed: choose {today} or a later day")
    return Outline(
        name=given["name"],
        owner=given["owner"],
        description=given["description"],
        expires=expires,
        collect=None if source is ParameterSource.DEFAULT else given["collect"],
        questions=tuple(_question(kind, item) for kind in DEFAULT_EPSILON for item in given[kind]),
        epsilon=given["epsilon"],
    )


def _question(kind: str, item: str) -> OutlineQuestion:
    """Return a question as an option gives it."""
    if kind not in ("choice", "number"):
        return OutlineQuestion(item, kind)
    name, equals, choices = item.partition("=")
    if kind == "number":
        if not equals:
            raise click.UsageError(f"expected --number NAME=LOW,HIGH, got {item!r}")
        return OutlineQuestion(name, kind, bins=number_range(choices))
    if not equals or not choices:
        raise click.UsageError(f"expected --choice NAME=A,B,C, got {item!r}")
    return OutlineQuestion(name, kind, tuple(part.strip() for part in choices.split(",")))


def _check_target(file: Path, force: bool, ask: bool) -> None:
    """Refuse a file that cannot be written, or that exists and shall not be overwritten."""
    if reason := options.not_writable(file):
        raise InputError(reason)
    overwrite = force or not file.exists()
    if not overwrite and ask:
        overwrite = click.confirm(f"{file} already exists. Overwrite it?")
    if not overwrite:
        raise InputError(f"{file} already exists: choose another name, or overwrite with --force")


@contextmanager
def _conversation(file: Path) -> Iterator[Conversation]:
    """Begin a conversation, or continue one; its answers are kept unless it ends well."""
    talk = Conversation(file.with_name(f"{file.name}.draft"))
    if talk.unfinished:
        answers = counted(talk.unfinished, "answer")
        if not click.confirm(f"Continue with the {answers} in {talk.path}?", default=True):
            talk.forget()
    say(f"This writes {file}. Ctrl-C interrupts; your answers are kept for the next time.")
    try:
        yield talk
    except BaseException:
        if talk.answers:
            again = shlex.join(["deniable", "init", str(file)])
            answers = counted(len(talk.answers), "answer")
            echo(f"\nKept {answers} in {talk.path}. To continue: {again}", err=True)
        raise
    talk.forget()
