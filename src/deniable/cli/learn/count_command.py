"""`deniable count`: reports of two questions as counts, which can be kept instead."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import click

from deniable.cli.options import (
    executor_option,
    json_option,
    question_names,
    reports_argument,
    since_option,
    survey_argument,
    until_option,
)
from deniable.cli.output import OutputPath

EXAMPLE = """\b
Examples:
  deniable count survey.toml monday.parquet --question browser --question ad_blocker -o monday.npz
  deniable count survey.toml monday.npz tuesday.npz --question browser --question ad_blocker \\
      -o both.npz
"""


@click.command(epilog=EXAMPLE)
@survey_argument
@reports_argument
@click.option("--question", "questions", multiple=True, shell_complete=question_names,
              help="Two, given one by one; the survey's if it asks two.")  # fmt: skip
@since_option
@until_option
@executor_option
@click.option("-o", "--output", type=OutputPath((".npz",)), required=True, metavar="FILE",
              help="Where to write the counts: a file ending in .npz.")  # fmt: skip
@json_option
def count(
    survey_name: str, reports: tuple[str, ...], questions: tuple[str, ...], since: date | None,
    until: date | None, executor: str, output: Path, as_json: bool,
) -> None:  # fmt: skip
    """Count how two questions' bits go together.

    All that associate --from-counts needs of the reports. Counts add: those of shards, days and
    machines can be made apart, and given here together.

    SURVEY is a file, or a survey's name in a store. REPORTS are files (.parquet, .arrow, .dn),
    folders of such, a store (sqlite:///FILE.db, FILE.db, a folder, postgresql://…), or counts
    (.npz).
    """
    from deniable.analysis import pair_counts
    from deniable.cli.learn.report_sources import chosen_days, survey_of
    from deniable.cli.output import say
    from deniable.cli.progress import bars
    from deniable.compute.named import executor_of

    survey = survey_of(survey_name, reports)
    names = list(questions) or [question.name for question in survey.questions]
    with executor_of(executor) as runner, bars():
        counts = pair_counts(survey, chosen_days(reports, since, until), names, executor=runner)
    counts.save(output)
    size = output.stat().st_size
    say(
        {"file": str(output), "reports": counts.reports, "bytes": size},
        f"{counts.reports:,} reports of {' × '.join(counts.questions)} counted: {output}, "
        f"{size:,} bytes",
        as_json,
    )
