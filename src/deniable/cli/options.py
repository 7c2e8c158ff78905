"""Arguments and options that several commands share, so that they are called alike everywhere."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., object])
Decorator = Callable[[Any], Any]
Context = click.Context | None
STORES = "STORE is sqlite:///FILE.db, FILE.db, postgresql://…, or a folder of Parquet files."
REPORT_FILES = (".parquet", ".arrow", ".dn")
RESULT_FILES = (".csv", ".parquet", ".json", ".png", ".svg", ".html")

# --- types ---------------------------------------------------------------------------------------

EXISTING_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
FILE = click.Path(dir_okay=False, path_type=Path)
FOLDER = click.Path(file_okay=False, path_type=Path)
AT_LEAST_ONE = click.IntRange(1)
POSITIVE = click.FloatRange(0, min_open=True)


class Day(click.DateTime):
    """A day as YYYY-MM-DD."""

    def __init__(self) -> None:
        super().__init__(["%Y-%m-%d"])

    def convert(self, value: Any, param: click.Parameter | None, ctx: Context) -> Any:
        return super().convert(value, param, ctx).date()


DAY = Day()


class OutputPath(click.Path):
    """A file to write, its form chosen by its ending."""

    def __init__(self, *suffixes: str) -> None:
        super().__init__(dir_okay=False, writable=True, path_type=Path)
        self.suffixes = suffixes

    def convert(self, value: Any, param: click.Parameter | None, ctx: Context) -> Path:
        path = Path(str(super().convert(value, param, ctx)))
        if path.suffix not in self.suffixes:
            self.fail(f"expected a file ending in {', '.join(self.suffixes)}, got {path}")
        if not path.parent.is_dir():
            self.fail(f"there is no folder {path.parent}")
        return path


def a_share(text: str) -> float:
    """Return a share of the clients that was typed as 0.001 or 0.1%."""
    expected = "a share between 0 and 1, such as 0.001 or 0.1%"
    value = _number(text.removesuffix("%"), text, expected) / (100 if text.endswith("%") else 1)
    if not 0 < value < 1:
        raise click.BadParameter(f"expected {expected}; got {text!r}")
    return value


def a_count(text: str) -> int:
    """Return a number of clients that was typed, also as 1e6 or 1,000,000."""
    expected = "a number from 1 to 10^12, such as 1000000 or 1e6"
    value = _number(text.replace(",", ""), text, expected)
    if not 1 <= value < 1e12:
        raise click.BadParameter(f"expected {expected}; got {text!r}")
    return round(value)


def _number(digits: str, text: str, expected: str) -> float:
    try:
        return float(digits)
    except ValueError:
        raise click.BadParameter(f"expected {expected}; got {text!r}") from None


def question_names(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Return what a shell completes --question with."""
    from deniable.errors import DeniableError
    from deniable.survey import Survey

    try:
        # While --question has no value yet, click has not told arguments apart.
        survey = Survey.load(ctx.params.get("survey_name") or ctx.args[0])
    except (DeniableError, OSError, IndexError):
        return []
    return [q.name for q in survey.questions if q.name.startswith(incomplete)]


# --- options -------------------------------------------------------------------------------------


def option(*names: str, **settings: Any) -> Decorator:
    """Return an option; its default, if it has one, is shown."""
    settings.setdefault("show_default", "default" in settings)
    return click.option(*names, **settings)


flag = partial(click.option, is_flag=True)


def json_option(what: str = "the result") -> Decorator:
    """Return --json, which prints the result of a command as JSON."""
    return flag("--json", "as_json", help=f"Print {what} as JSON.")


def together(*decorators: Decorator) -> Decorator:
    """Return options as one decorator; they are listed in this order."""

    def decorate(command: Command) -> Command:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return decorate


survey_argument = click.argument("survey_name", metavar="SURVEY")
reports_argument = click.argument("reports", metavar="REPORTS...", nargs=-1, required=True)
output_option = option(
    "-o",
    "--output",
    "outputs",
    multiple=True,
    type=OutputPath(*RESULT_FILES),
    metavar="FILE",
    help=f"Also write it, as the ending says: {', '.join(RESULT_FILES)}. May be given again.",
)
alpha_option = option(
    "--alpha",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.05,
    help="The chance of any false detection that is accepted.",
)
collect_option = partial(
    option, "--collect", type=click.Choice(["once", "repeatedly"]), default="once"
)
day_option = partial(option, type=DAY, metavar="YYYY-MM-DD")
days_options = together(
    day_option("--since", help="Only reports of this day and later."),
    day_option("--until", help="Only reports of this day and earlier."),
)
by_option = option(
    "--by",
    type=click.Choice(["day", "week"]),
    help="A trend: one result for each day or week. Like --since and --until, of a store only.",
)
executor_option = option(
    "--executor",
    metavar="NAME",
    default="threads",
    help="Where the work is done: threads, threads:N, dask (processes of this machine), "
    "dask://HOST:PORT, whose workers read the reports themselves, or gpu (gpu:N, of several).",
)
