"""`deniable decode`: how common each value is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from deniable.cli import options
from deniable.cli.documented import command
from deniable.cli.learn.analysis_run import AnalysisRun, run_options, source_arguments
from deniable.cli.learn.string_lists import read_strings
from deniable.cli.surveys import question_of


@command()
@source_arguments
@options.option("--question", shell_complete=options.question_names)
@options.option("--candidates", type=options.EXISTING_FILE)
@options.alpha_option
@options.option(
    "--correction", type=click.Choice(["holm", "bonferroni", "fdr", "none"]), default="holm"
)
@options.option("--reports-per-client", type=click.FloatRange(1), default=1.0)
@run_options
def decode(
    question: str | None,
    candidates: Path | None,
    alpha: float,
    correction: str,
    reports_per_client: float,
    **common: Any,
) -> None:
    """Estimate how common each value is.

    And which values are there at all, with every candidate counted.

    SURVEY is a file, or a survey's name in a store. REPORTS are files (.parquet, .arrow, .dn),
    folders of such, or a store (sqlite:///FILE.db, FILE.db, a folder, postgresql://…). Strings
    need candidates; a choice and a boolean have their own.

    Parameters
    ----------
    question : Which; needed if the survey asks several.
    candidates : Strings to look for: a line each, a CSV with a column value, or what discover or
        decode wrote as JSON.
    correction : False detections: alpha over all candidates (in steps, or at once), a share alpha
        of the detected, or alpha each.
    reports_per_client : Of repeated collection; standard errors allow for it.

    Examples
    --------
    deniable decode survey.toml reports.parquet --question browser
    deniable decode survey.toml reports.parquet --question page --candidates pages.txt -o pages.csv
    deniable decode survey.json sqlite:///reports.db --question browser --by week -o browser.svg
    """
    from deniable.analysis import decode as verb

    run = AnalysisRun(**common)
    name = question_of(run.survey, question)
    strings = read_strings(candidates) if candidates else None
    settings: dict[str, Any] = {
        "alpha": alpha,
        "correction": None if correction == "none" else correction,
        "reports_per_client": reports_per_client,
    }
    run.perform(
        lambda reports, executor: verb(
            run.survey, reports, name, strings, executor=executor, **settings
        ),
        strict=True,
    )
