"""Arguments and options that several commands share, so that they are called alike everywhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from deniable.cli.collect.store_options import DAY
from deniable.cli.output import WRITERS, OutputPath

F = TypeVar("F", bound=Callable[..., Any])


def question_names(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """What a shell completes --question with."""
    from deniable.errors import DeniableError
    from deniable.survey import Survey

    try:
        # While --question has no value yet, click has not told arguments apart.
        survey = Survey.load(ctx.params.get("survey_name") or ctx.args[0])
    except (DeniableError, OSError, IndexError):
        return []
    return [q.name for q in survey.questions if q.name.startswith(incomplete)]


survey_argument = click.argument("survey_name", metavar="SURVEY")
reports_argument = click.argument("reports", metavar="REPORTS...", nargs=-1, required=True)
json_option = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
output_option = click.option(
    "-o", "--output", "outputs", multiple=True, type=OutputPath(tuple(WRITERS)), metavar="FILE",
    help=f"Also write it, as the ending says: {', '.join(WRITERS)}. May be given again.",
)  # fmt: skip
alpha_option = click.option(
    "--alpha", type=click.FloatRange(0, 1, min_open=True, max_open=True), default=0.05,
    show_default=True, help="The chance of any false detection that is accepted.",
)  # fmt: skip
since_option = click.option(
    "--since", type=DAY, metavar="YYYY-MM-DD", help="Only reports of this day and later."
)
until_option = click.option(
    "--until", type=DAY, metavar="YYYY-MM-DD", help="Only reports of this day and earlier."
)
by_option = click.option(
    "--by", type=click.Choice(["day", "week"]),
    help="A trend: one result for each day or week. Like --since and --until, of a store only.",
)  # fmt: skip
executor_option = click.option(
    "--executor", metavar="NAME", default="threads", show_default=True,
    help="Where the work is done: threads, threads:N, dask (processes of this machine), "
    "dask://HOST:PORT, whose workers read the reports themselves, or gpu (gpu:N, of several).",
)  # fmt: skip


def period_options(command: F) -> F:
    """--since, --until and --by."""
    for option in (by_option, until_option, since_option):
        command = option(command)
    return command
