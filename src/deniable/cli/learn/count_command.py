"""`deniable count`: reports of two questions as counts, which can be kept instead."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from deniable.cli import options
from deniable.cli.documented import command
from deniable.cli.learn.analysis_run import AnalysisRun, source_arguments
from deniable.cli.output import say
from deniable.cli.progress_bars import bars


@command()
@source_arguments
@options.option("--question", "questions", multiple=True, shell_complete=options.question_names)
@options.days_options
@options.executor_option
@options.option("-o", "--output", type=options.OutputPath(".npz"), required=True, metavar="FILE")
@options.json_option()
def count(questions: tuple[str, ...], output: Path, **common: Any) -> None:
    r"""Count how two questions' bits go together.

    All that associate --from-counts needs of the reports. Counts add: those of shards, days and
    machines can be made apart, and given here together.

    SURVEY is a file, or a survey's name in a store. REPORTS are files (.parquet, .arrow, .dn),
    folders of such, a store (sqlite:///FILE.db, FILE.db, a folder, postgresql://…), or counts
    (.npz).

    Parameters
    ----------
    questions : Two, given one by one; the survey's if it asks two.
    output : Where to write the counts: a file ending in .npz.

    Examples
    --------
    deniable count survey.toml monday.parquet --question browser --question ad_blocker -o monday.npz
    deniable count survey.toml monday.npz tuesday.npz --question browser --question ad_blocker \
        -o both.npz
    """
    from deniable.analysis import pair_counts
    from deniable.compute.named import executor_of

    run = AnalysisRun(**common)
    names = list(questions) or [question.name for question in run.survey.questions]
    with executor_of(run.executor) as executor, bars():
        counts = pair_counts(run.survey, run.chosen_reports(), names, executor=executor)
    counts.save(output)
    size = output.stat().st_size
    say(
        {"file": str(output), "reports": counts.reports, "bytes": size},
        f"{counts.reports:,} reports of {' × '.join(counts.questions)} counted: {output}, "
        f"{size:,} bytes",
        run.as_json,
    )
