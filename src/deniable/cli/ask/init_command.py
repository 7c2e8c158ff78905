"""`deniable init`: the first survey file, by a few questions or from flags."""

from __future__ import annotations

import math
import sys
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from deniable.cli.collect.store_options import DAY
from deniable.cli.output import say
from deniable.errors import InputError

if TYPE_CHECKING:
    from deniable.survey.draft import DraftQuestion

SPENDS = {"string": 3.0, "unknown": 4.0, "choice": 2.0, "boolean": 1.0}
"""ε of a question whose author named none; a total is divided in these proportions."""
UNKNOWN = {
    "protocol": ("prefixes", "# each client reports one prefix; deniable discover reads them"),
    "max_length": (20, "# longer strings are cut"),
    "alphabet": ("a-z0-9._-", "# or \"bytes\" for any text at all"),
}  # fmt: skip
EXAMPLE = """\b
Examples:
  deniable init
  deniable init survey.toml --owner "Ada, ada@example.com" --boolean dark_mode
  deniable init survey.toml --unknown homepage --choice browser=Firefox,Safari,another --epsilon 6
"""


@click.command(epilog=EXAMPLE)
@click.argument("file", default="survey.toml", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--name", help="Of the survey; the file's name if not given.")
@click.option("--owner", help="Who answers for it, and how to reach them.")
@click.option("--description", help="What is asked and why, for those who are asked.")
@click.option("--expires", type=DAY, metavar="YYYY-MM-DD",
              help="The last day; in a year if not given.")  # fmt: skip
@click.option(
    "--collect", type=click.Choice(["once", "repeatedly"]), default="once", show_default=True,
    help="One report a client, or any number about values that seldom change.",
)  # fmt: skip
@click.option("--string", "strings", multiple=True, metavar="NAME",
              help="A question for text, estimated for strings that you list.")  # fmt: skip
@click.option("--unknown", "unknowns", multiple=True, metavar="NAME",
              help="A question for text that nobody lists: strings are discovered.")  # fmt: skip
@click.option("--choice", "choices", multiple=True, metavar="NAME=A,B,C",
              help="A question with options.")  # fmt: skip
@click.option("--boolean", "booleans", multiple=True, metavar="NAME", help="A yes-or-no question.")
@click.option("--epsilon", type=click.FloatRange(0, min_open=True),
              help="ε of all questions together; divided among them.")  # fmt: skip
@click.option("--force", is_flag=True, help="Write over a file that is there.")
@click.option("--json", "as_json", is_flag=True, help="Print what was done as JSON.")
def init(
    file: Path, name: str | None, owner: str | None, description: str | None, expires: date | None,
    collect: str, strings: tuple[str, ...], unknowns: tuple[str, ...], choices: tuple[str, ...],
    booleans: tuple[str, ...], epsilon: float | None, force: bool, as_json: bool,
) -> None:  # fmt: skip
    """Write a survey file, with comments.

    On a terminal it asks for what is left out; FILE is survey.toml if not given.
    """
    from deniable.survey.draft import DESCRIPTION, OWNER, Draft, survey_name

    if file.exists() and not force:
        raise InputError(f"{file} is there already: choose another name, or --force")
    asked = [
        *((n, "string", ()) for n in strings), *((n, "unknown", ()) for n in unknowns),
        *(_choice(item) for item in choices), *((n, "boolean", ()) for n in booleans),
    ]  # fmt: skip
    if sys.stdin.isatty() and sys.stdout.isatty() and not as_json:
        name = name or click.prompt("Name of the survey", default=survey_name(file.name))
        owner = owner or click.prompt("Who answers for it, and how to reach them")
        description = description or click.prompt("What is asked and why, for those who are asked")
        asked = asked or _interview()
    draft = Draft(
        name or survey_name(file.name),
        tuple(_questions(asked or [("answer", "boolean", ())], epsilon, collect)),
        owner or OWNER, description or DESCRIPTION, expires, collect,
    )  # fmt: skip
    survey = draft.survey()
    file.write_text(draft.toml(file.name), encoding="utf-8")
    say(
        {"file": str(file), "name": survey.name, "questions": [q.name for q in survey.questions]},
        f"{file}: {len(survey.questions)} questions, ε = {survey.budget / 1e9:.6g} in all. "
        f"Next: deniable check {file}",
        as_json,
    )


Asked = tuple[str, str, tuple[str, ...]]


def _choice(item: str) -> Asked:
    name, equals, options = item.partition("=")
    if not equals or not options:
        raise click.UsageError(f"expected --choice NAME=A,B,C, got {item!r}")
    return name, "choice", tuple(part.strip() for part in options.split(","))


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
        kind = click.prompt(
            "  Its kind: string (you list candidates), unknown (nobody does), choice or boolean",
            type=click.Choice(list(SPENDS)), default="boolean",
        )  # fmt: skip
        options = click.prompt("  Its options, with commas") if kind == "choice" else ""
        asked.append((name, kind, tuple(o.strip() for o in options.split(",") if o.strip())))


def _questions(asked: list[Asked], epsilon: float | None, collect: str) -> list[DraftQuestion]:
    from deniable.survey.draft import DraftQuestion

    whole = sum(SPENDS[kind] for _, kind, _ in asked)
    found = []
    for name, kind, options in asked:
        spends = SPENDS[kind] if epsilon is None else _share(epsilon, SPENDS[kind] / whole)
        settings: dict[str, Any] = {"options": list(options)} if kind == "choice" else {}
        if kind == "unknown" and collect == "once":
            settings["mechanism"] = "localhash"
        dictionary = UNKNOWN if kind == "unknown" else None
        kind = "string" if kind == "unknown" else kind
        found.append(DraftQuestion(name, kind, spends, settings=settings, dictionary=dictionary))
    return found


def _share(epsilon: float, part: float) -> float:
    """Rounded down, so that the parts never add up to more."""
    return math.floor(1e6 * epsilon * part) / 1e6 or epsilon * part
