"""How commands are declared: the `command` decorator, parameter types, and shared options."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from inspect import cleandoc
from pathlib import Path
from typing import Any

import click

from deniable.cli.suggesting_group import SuggestingGroup
from deniable.errors import DeniableError
from deniable.formatting import printable
from deniable.survey import Survey

Decorator = Callable[[Any], Any]
Context = click.Context | None
SECTION = re.compile(r"\n\n(Parameters|Examples)\n-+\n")
ENTRY = re.compile(r"^(\w+)\n((?:    .*\n?)+)", re.MULTILINE)
REPORT_FILES = (".parquet", ".dn")
RESULT_FILES = (".csv", ".parquet", ".json", ".png", ".svg", ".html")
WRITERS = {".parquet": "pyarrow", ".png": "matplotlib", ".svg": "matplotlib"}
"""Packages that write files with these extensions."""
STORES = "STORE is sqlite:///FILE.db, FILE.db or postgresql://…."
SOURCES = (
    "SURVEY is a survey file, or the name of a survey in the store. REPORTS are one or more report "
    "files (.parquet, .dn) or folders of them, URLs of Parquet files or folders of them (s3://…, "
    "gs://…), or one store (sqlite:///FILE.db, FILE.db or postgresql://…)."
)


def command(
    *names: str, make: Callable[..., Any] = click.command, note: str = "", **settings: Any
) -> Callable[[Callable[..., None]], Any]:
    """Return a decorator that makes a command from a function and its docstring.

    The help of the command is the text before the first section of the docstring. The section
    `Parameters` has the help of each option: its name on one line, its text indented below. The
    section `Examples` has command lines. A shared option brings its own help.

    Parameters
    ----------
    *names
        Name of the command; by default that of the function.
    make
        `click.command`, `new_group`, or the `command` method of a group.
    note
        Last paragraph of the help.
    **settings
        Further settings of click.
    """

    def decorate(function: Callable[..., None]) -> Any:
        about, *sections = SECTION.split(cleandoc(function.__doc__ or "") + "\n")
        parts = dict(zip(sections[::2], sections[1::2], strict=True))
        text = f"{about}\n\n{note}" if note else about
        examples = parts["Examples"].strip().splitlines()
        epilog = "\b\nExamples:\n" + "\n".join(f"  {line}" for line in examples)
        made: click.Command = make(*names, help=text, epilog=epilog, **settings)(function)
        helps = {
            name: " ".join(t.split()) for name, t in ENTRY.findall(parts.get("Parameters", ""))
        }
        for parameter in made.params:
            if isinstance(parameter, click.Option) and parameter.help is None:
                parameter.help = helps.pop(str(parameter.name))
        if helps:
            raise TypeError(f"{made.name} has no option {', '.join(helps)}")
        return made

    return decorate


new_group = partial(click.group, cls=SuggestingGroup)


# --- types ---------------------------------------------------------------------------------------

EXISTING_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
FILE = click.Path(dir_okay=False, path_type=Path)
FOLDER = click.Path(file_okay=False, path_type=Path)
EXISTING_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


class Number(click.FloatRange):
    """A finite number in a range."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: Context) -> Any:
        """Return the number; fail for text, NaN and infinity, which click would accept."""
        if not math.isfinite(_number(str(value))):
            self.fail(f"expected a number, got {value!r}", param, ctx)
        return super().convert(value, param, ctx)


class WholeNumber(click.IntRange):
    """An integer in a range."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: Context) -> Any:
        """Return the integer, which may be typed as 1000000, 1,000,000 or 1e6."""
        text = re.sub(r",(?=\d{3}(,|$))", "", str(value))
        if not (number := _number(text)).is_integer():
            self.fail(f"expected a whole number, got {value!r}", param, ctx)
        if isinstance(value, str):
            value = int(number) if "e" in text.lower() else text
        return super().convert(value, param, ctx)


class CheckedText(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.5
    """What a function returns for a text; the function raises DeniableError for a wrong one."""

    name = "text"

    def __init__(self, parse: Callable[[str], Any]) -> None:
        self.parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: Context) -> Any:
        """Return the value; fail with the sentence of the error."""
        try:
            return self.parse(value)
        except DeniableError as error:
            self.fail(printable(str(error)), param, ctx)


POSITIVE_INT = WholeNumber(1)
POSITIVE_FLOAT = Number(0, min_open=True)


class Day(click.DateTime):
    """A day, written as YYYY-MM-DD."""

    def __init__(self) -> None:
        super().__init__(["%Y-%m-%d"])

    def convert(self, value: Any, param: click.Parameter | None, ctx: Context) -> Any:
        """Return the day as a `datetime.date`."""
        try:
            return super().convert(value, param, ctx).date()
        except click.BadParameter:
            self.fail(f"expected a day as YYYY-MM-DD, such as 2027-01-31; got {value!r}")


class OutputPath(click.Path):
    """A file to write, whose extension chooses its format."""

    def __init__(self, *suffixes: str) -> None:
        super().__init__(dir_okay=False, writable=True, path_type=Path)
        self.suffixes = suffixes

    def convert(self, value: Any, param: click.Parameter | None, ctx: Context) -> Path:
        """Return the path; fail if its extension is unknown or it cannot be written."""
        path = Path(str(super().convert(value, param, ctx)))
        if path.suffix not in self.suffixes:
            self.fail(f"expected a file name that ends in {', '.join(self.suffixes)}; got {path}")
        if reason := not_writable(path):
            self.fail(reason)
        package = WRITERS.get(path.suffix)
        if package and find_spec(package) is None:  # said before an analysis of perhaps an hour
            raise ModuleNotFoundError(name=package)
        return path


def not_writable(path: Path) -> str:
    """Say why a file cannot be written, before the work that makes its content; else empty."""
    if not path.parent.is_dir():
        return f"the folder {path.parent} does not exist; create it first"
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        return f"you are not allowed to write {path}"
    return ""


def parse_share(text: str) -> float:
    """Return a share of the clients that was typed as 0.001 or as 0.1%."""
    scale = 100 if text.endswith("%") else 1
    value = _number(text.removesuffix("%")) / scale
    if not 0 < value < 1:
        raise click.BadParameter(
            f"expected a share between 0 and 1, such as 0.001 or 0.1%; got {text!r}"
        )
    return value


def parse_count(text: str) -> int:
    """Return a number of clients that was typed as 1000000, 1,000,000 or 1e6."""
    value = _number(text.replace(",", ""))
    if not 1 <= value < 1e12:
        raise click.BadParameter(
            f"expected a number from 1 to 10^12, such as 1000000 or 1e6; got {text!r}"
        )
    return round(value)


def _number(text: str) -> float:
    """Return the number, or NaN, which every range refuses."""
    try:
        return float(text)
    except ValueError:
        return float("nan")


def complete_question(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Return the names of questions with which a shell completes --question."""
    try:
        # While --question has no value yet, click has not assigned the arguments.
        survey = Survey.load(ctx.params.get("survey_name") or ctx.args[0])
    except (DeniableError, OSError, IndexError):
        return []
    return [q.name for q in survey.questions if q.name.startswith(incomplete)]


# --- options -------------------------------------------------------------------------------------


def option(*names: str, **settings: Any) -> Decorator:
    """Return an option whose help shows its default, if it has one."""
    settings.setdefault("show_default", "default" in settings)
    return click.option(*names, **settings)


flag = partial(click.option, is_flag=True)


def json_option(what: str = "the result") -> Decorator:
    """Return the option --json, which prints the outcome of a command as JSON."""
    return flag("--json", "as_json", help=f"Print {what} as JSON.")


def combine(*decorators: Decorator) -> Decorator:
    """Return one decorator that adds several options; the help lists them in this order."""

    def decorate(function: Any) -> Any:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


output_option = option(
    "-o",
    "--output",
    "outputs",
    multiple=True,
    type=OutputPath(*RESULT_FILES),
    metavar="FILE",
    help="Also write the result to FILE; the format follows its extension: "
    f"{', '.join(RESULT_FILES)}. May be repeated.",
)
alpha_option = option(
    "--alpha",
    type=Number(0, 1, min_open=True, max_open=True),
    default=0.05,
    metavar="NUMBER",
    help="Significance level: maximum probability of any false detection (family-wise).",
)
collect_option = option(
    "--collect",
    type=click.Choice(["once", "repeatedly"]),
    default="once",
    help="Collect one report per client (once), or any number of reports about values that seldom "
    "change (repeatedly).",
)
day_option = partial(option, type=Day(), metavar="YYYY-MM-DD")
days_options = combine(
    day_option("--since", help="Use only reports that the store received on this day or later."),
    day_option("--until", help="Use only reports that the store received on this day or earlier."),
)
question_option = partial(option, "--question", shell_complete=complete_question, metavar="NAME")
