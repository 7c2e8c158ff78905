"""`deniable init`: the first survey file, by a few questions or from flags."""

from __future__ import annotations

import math
import sys
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from deniable.cli import options
from deniable.cli.documented import command
from deniable.cli.output import say
from deniable.errors import InputError

if TYPE_CHECKING:
    from deniable.survey.draft import DraftQuestion

SPENDS = {"string": 3.0, "unknown": 4.0, "choice": 2.0, "boolean": 1.0}
"""ε of a question whose author named none; a total is divided in these proportions."""
UNKNOWN = {
    "protocol": ("prefixes", "# each client reports one prefix; deniable discover reads them"),
    "max_length": (20, "# longer strings are cut"),
    "alphabet": ("a-z0-9._-", '# or "bytes" for any text at all'),
}


@command()
@click.argument("file", default="survey.toml", type=options.FILE)
@options.option("--name")
@options.option("--owner")
@options.option("--description")
@options.day_option("--expires")
@options.collect_option()
@options.option("--string", multiple=True, metavar="NAME")
@options.option("--unknown", multiple=True, metavar="NAME")
@options.option("--choice", multiple=True, metavar="NAME=A,B,C")
@options.option("--boolean", multiple=True, metavar="NAME")
@options.option("--epsilon", type=options.POSITIVE)
@options.flag("--force")
@options.json_option("what was done")
def init(
    file: Path, expires: date | None, collect: str, epsilon: float | None, **given: Any
) -> None:
    """Write a survey file, with comments.

    On a terminal it asks for what is left out; FILE is survey.toml if not given.

    Parameters
    ----------
    name : Of the survey; the file's name if not given.
    owner : Who answers for it, and how to reach them.
    description : What is asked and why, for those who are asked.
    expires : The last day; in a year if not given.
    collect : One report a client, or any number about values that seldom change.
    string : A question for text, estimated for strings that you list.
    unknown : A question for text that nobody lists: strings are discovered.
    choice : A question with options.
    boolean : A yes-or-no question.
    epsilon : ε of all questions together; divided among them.
    force : Write over a file that is there.

    Examples
    --------
    deniable init
    deniable init survey.toml --owner "Ada, ada@example.com" --boolean dark_mode
    deniable init survey.toml --unknown homepage --choice browser=Firefox,Safari,another --epsilon 6
    """
    from deniable.survey.draft import DESCRIPTION, OWNER, Draft, survey_name

    if file.exists() and not given["force"]:
        raise InputError(f"{file} is there already: choose another name, or --force")
    asked = [_asked(kind, item) for kind in SPENDS for item in given[kind]]
    name, owner, description = (given[text] for text in ("name", "owner", "description"))
    if sys.stdin.isatty() and sys.stdout.isatty() and not given["as_json"]:
        name = name or click.prompt("Name of the survey", default=survey_name(file.name))
        owner = owner or click.prompt("Who answers for it, and how to reach them")
        description = description or click.prompt("What is asked and why, for those who are asked")
        asked = asked or _interview()
    questions = _questions(asked or [("answer", "boolean", ())], epsilon, collect)
    name, owner = name or survey_name(file.name), owner or OWNER
    draft = Draft(name, tuple(questions), owner, description or DESCRIPTION, expires, collect)
    survey = draft.survey()
    file.write_text(draft.toml(file.name), encoding="utf-8")
    say(
        {"file": str(file), "name": survey.name, "questions": [q.name for q in survey.questions]},
        f"{file}: {len(survey.questions)} questions, ε = {survey.budget / 1e9:.6g} in all. "
        f"Next: deniable check {file}",
        given["as_json"],
    )


Asked = tuple[str, str, tuple[str, ...]]


def _asked(kind: str, item: str) -> Asked:
    """Return a question as an option names it."""
    if kind != "choice":
        return item, kind, ()
    name, equals, choices = item.partition("=")
    if not equals or not choices:
        raise click.UsageError(f"expected --choice NAME=A,B,C, got {item!r}")
    return name, kind, tuple(part.strip() for part in choices.split(","))


def _interview() -> list[Asked]:
    """Questions, until a name is left empty."""
    asked: list[Asked] = []
    while True:
        first = "" if asked else " (a-z, 0-9, _ and -)"
        name = click.prompt(
            f"Name of a question{first}; empty to end", default="", show_default=False
        )
        if not name and asked:
            return asked
        if not name:
            click.echo("  A survey asks at least one question.")
            continue
        kinds = "string (you list candidates), unknown (nobody does), choice or boolean"
        kind = click.prompt(
            f"  Its kind: {kinds}", type=click.Choice(list(SPENDS)), default="boolean"
        )
        choices = click.prompt("  Its options, with commas") if kind == "choice" else ""
        asked.append((name, kind, tuple(o.strip() for o in choices.split(",") if o.strip())))


def _questions(asked: list[Asked], epsilon: float | None, collect: str) -> list[DraftQuestion]:
    from deniable.survey.draft import DraftQuestion

    whole = sum(SPENDS[kind] for _, kind, _ in asked)
    drafts = []
    for name, kind, choices in asked:
        spends = SPENDS[kind] if epsilon is None else _share(epsilon, SPENDS[kind] / whole)
        settings: dict[str, Any] = {"options": list(choices)} if kind == "choice" else {}
        if kind == "unknown" and collect == "once":
            settings["mechanism"] = "localhash"
        dictionary = UNKNOWN if kind == "unknown" else None
        kind = "string" if kind == "unknown" else kind
        drafts.append(DraftQuestion(name, kind, spends, settings=settings, dictionary=dictionary))
    return drafts


def _share(epsilon: float, part: float) -> float:
    """Rounded down, so that the parts never add up to more."""
    return math.floor(1e6 * epsilon * part) / 1e6 or epsilon * part
