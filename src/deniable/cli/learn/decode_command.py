"""`deniable decode`: how common each value is."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any, cast

import click

from deniable.cli.learn.string_lists import FILE, read_strings
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

EXAMPLE = """\b
Examples:
  deniable decode survey.toml reports.parquet --question browser
  deniable decode survey.toml reports.parquet --question page --candidates pages.txt -o pages.csv
  deniable decode survey.json sqlite:///reports.db --question browser --by week -o browser.svg
"""


@click.command(epilog=EXAMPLE)
@survey_argument
@reports_argument
@click.option("--question", shell_complete=question_names,
              help="Which; needed if the survey asks several.")  # fmt: skip
@click.option("--candidates", "candidates_file", type=FILE,
              help="Strings to look for: a line each, a CSV with a column value, or what discover "
              "or decode wrote as JSON.")  # fmt: skip
@alpha_option
@click.option("--correction", type=click.Choice(["holm", "bonferroni", "fdr", "none"]),
              default="holm", show_default=True,
              help="False detections: alpha over all candidates (in steps, or at once), a share "
              "alpha of the detected, or alpha each.")  # fmt: skip
@click.option("--reports-per-client", type=click.FloatRange(1), default=1.0, show_default=True,
              help="Of repeated collection; standard errors allow for it.")  # fmt: skip
@period_options
@executor_option
@output_option
@json_option
def decode(
    survey_name: str, reports: tuple[str, ...], question: str | None,
    candidates_file: Path | None, alpha: float, correction: str, reports_per_client: float,
    since: date | None, until: date | None, by: str | None, executor: str,
    outputs: tuple[Path, ...], as_json: bool,
) -> None:  # fmt: skip
    """Estimate how common each value is.

    And which values are there at all, with every candidate counted.

    SURVEY is a file, or a survey's name in a store. REPORTS are files (.parquet, .arrow, .dn),
    folders of such, or a store (sqlite:///FILE.db, FILE.db, a folder, postgresql://…). Strings
    need candidates; a choice and a boolean have their own.
    """
    from deniable.analysis import decode as verb
    from deniable.analysis import trend
    from deniable.cli.learn.report_sources import chosen_days, question_of, survey_of, the_store
    from deniable.cli.output import finished
    from deniable.cli.progress import bars
    from deniable.compute.named import executor_of
    from deniable.results import Result

    survey = survey_of(survey_name, reports)
    name = question_of(survey, question)
    candidates = read_strings(candidates_file) if candidates_file else None
    settings: dict[str, Any] = {
        "alpha": alpha, "correction": None if correction == "none" else correction,
        "reports_per_client": reports_per_client,
    }  # fmt: skip
    found: Result
    with bars(), executor_of(executor) as settings["executor"]:
        if by is None:
            some = chosen_days(reports, since, until)
            found = verb(survey, some, name, candidates, **settings)
        else:
            store, period = the_store(reports), cast(Any, by)
            found = trend(
                survey, store, name, candidates, by=period, since=since, until=until, **settings
            )
    finished(found, outputs, as_json, survey)
