"""`deniable discover`: strings that nobody listed."""

from __future__ import annotations

from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from deniable.cli.learn.string_lists import FILE, read_words
from deniable.cli.options import (
    alpha_option,
    executor_option,
    json_option,
    output_option,
    period_options,
    question_names,
    reports_argument,
    survey_argument,
)

if TYPE_CHECKING:
    from deniable.analysis.periods import By
    from deniable.analysis.source import Reports
    from deniable.compute.backend import Backend
    from deniable.results import Discovery, Result

EXAMPLE = """\b
Examples:
  deniable discover survey.toml reports.parquet -o found.csv -o found.png
  deniable discover survey.json sqlite:///reports.db --question homepage --since 2027-01-01
  deniable discover survey.toml reports.parquet --accept '[a-z0-9-]+\\.(com|org)' --words words.txt
"""


@click.command(epilog=EXAMPLE)
@survey_argument
@reports_argument
@click.option("--question", shell_complete=question_names,
              help="Which; needed if several are asked with a dictionary.")  # fmt: skip
@click.option("--accept", metavar="REGEX",
              help="Only strings that match as a whole; others are neither tested nor paid for.",
              )  # fmt: skip
@alpha_option
@click.option("--reading", type=click.Choice(["fused", "paper"]),
              help="Of n-grams: ours (fused, the default), or the paper's.")  # fmt: skip
@click.option("--delta", type=click.FloatRange(0, min_open=True),
              help="Pair threshold of the paper's reading.")  # fmt: skip
@click.option("--words", "words_file", type=FILE,
              help="Of prefixes: strings that may be held and words they may be made of, a line "
              "each, a CSV of value,weight, or what discover found in earlier reports. They need "
              "not be there.")  # fmt: skip
@click.option("--stages", is_flag=True, help="Also show what each step kept and dropped.")
@period_options
@executor_option
@output_option
@json_option
def discover(
    survey_name: str, reports: tuple[str, ...], question: str | None, accept: str | None,
    alpha: float, reading: str | None, delta: float | None, words_file: Path | None, stages: bool,
    since: date | None, until: date | None, by: str | None, executor: str,
    outputs: tuple[Path, ...], as_json: bool,
) -> None:  # fmt: skip
    """Find strings that clients reported and nobody listed.

    SURVEY is a file, or a survey's name in a store. REPORTS are files (.parquet, .arrow, .dn),
    folders of such, or a store (sqlite:///FILE.db, FILE.db, a folder, postgresql://…). The
    question must have been asked with a dictionary.
    """
    from deniable.analysis import by_period
    from deniable.cli.learn.report_sources import chosen_days, question_of, survey_of, the_store
    from deniable.cli.output import finished
    from deniable.cli.progress import bars
    from deniable.compute.named import executor_of
    from deniable.discovery import discover as verb

    survey = survey_of(survey_name, reports)
    asked = [q.name for q in survey.questions if q.protocol.name in ("ngrams", "prefixes")]
    name = asked[0] if question is None and len(asked) == 1 else question_of(survey, question)
    words = read_words(words_file) if words_file else {}

    def analyse(runner: Backend, some: Reports) -> Discovery:
        return verb(
            survey, some, name, accept=accept, alpha=alpha, reading=reading, delta=delta,
            words=words, executor=runner,
        )  # fmt: skip

    found: Result
    with executor_of(executor) as runner:
        with bars():
            if by is None:
                found = analyse(runner, chosen_days(reports, since, until))
            else:
                found = by_period(
                    survey,
                    the_store(reports),
                    partial(analyse, runner),
                    by=cast("By", by),
                    since=since,
                    until=until,
                )
        finished(found, outputs, as_json, survey, notes=lambda result: _notes(result, stages))


def _notes(result: Discovery, stages: bool) -> list[str]:
    notes = [f"Found from about {100 * result.detection_threshold:.3g}% of the clients."]
    if result.mass_at_end is not None and result.mass_at_end.low > 0.01:
        notes.append(
            f"{100 * result.mass_at_end.estimate:.1f}% of the strings fill the greatest length: "
            "longer ones may have been cut"
        )
    if stages:
        notes += result.stage_table().split("\n")
    return notes
