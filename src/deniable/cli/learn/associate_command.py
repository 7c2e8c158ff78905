"""`deniable associate`: how values of several questions go together."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from deniable.cli import options
from deniable.cli.documented import command
from deniable.cli.learn.analysis_run import AnalysisRun, run_options, source_arguments
from deniable.cli.learn.string_lists import read_strings

if TYPE_CHECKING:
    from deniable.survey import Survey

OTHERS: dict[str, bool | str] = {"mixture": True, "product": "product", "none": False}


@command()
@source_arguments
@options.option("--question", "questions", multiple=True, shell_complete=options.question_names)
@options.option("--candidates", "lists", multiple=True, metavar="QUESTION=FILE")
@options.option("--top", type=options.AT_LEAST_ONE, default=10)
@options.option("--other", type=click.Choice(list(OTHERS)), default="mixture")
@options.option("--fitted", type=options.AT_LEAST_ONE)
@options.option("--test", type=click.Choice(["score", "paper", "lrt"]), default="score")
@options.flag("--from-counts")
@options.alpha_option
@run_options
def associate(
    questions: tuple[str, ...],
    lists: tuple[str, ...],
    other: str,
    test: str,
    top: int,
    fitted: int | None,
    from_counts: bool,
    alpha: float,
    **common: Any,
) -> None:
    r"""Estimate how values of several questions go together.

    And test whether they do.

    SURVEY is a file, or a survey's name in a store. REPORTS are files (.parquet, .arrow, .dn),
    folders of such, or a store (sqlite:///FILE.db, FILE.db, a folder, postgresql://…).

    Parameters
    ----------
    questions : Two or more, given one by one; all of the survey's if not given.
    lists : Strings to look for in a question; the file as for decode.
    top : Strings of a question that get a category; the rest is (other).
    other : Model of the rest; none leaves it out, which biases the table.
    fitted : Strings that are fitted before those beyond --top are added up.
    test : The test of independence of two questions.
    from_counts : Two questions by counts of their bits, in one pass; less exact where strings have
        several hashes. REPORTS may be files that count wrote.

    Examples
    --------
    deniable associate survey.toml reports.parquet --question browser --question ad_blocker
    deniable associate survey.toml reports.parquet --question homepage --question ad_blocker \
        --candidates homepage=found.csv --top 5 -o joint.png
    deniable associate survey.toml monday.npz tuesday.npz --from-counts \
        --question browser --question ad_blocker
    """
    from deniable.analysis import associate as verb
    from deniable.render.view import NoteOptions

    run = AnalysisRun(**common)
    names = _questions(run.survey, questions)
    settings: dict[str, Any] = {
        "candidates": dict(_candidates(run.survey, item) for item in lists),
        "other": OTHERS[other],
        "top": top,
        "fitted": fitted,
        "from_counts": from_counts,
        "alpha": alpha,
    }
    run.perform(
        lambda reports, executor: verb(run.survey, reports, names, executor=executor, **settings),
        notes=NoteOptions(test=test),
    )


def _questions(survey: Survey, given: tuple[str, ...]) -> list[str]:
    names = list(given) or [question.name for question in survey.questions]
    if len(names) < 2:
        raise click.UsageError(f"expected two questions or more, got {', '.join(names)}")
    return [survey.question(name).name for name in names]


def _candidates(survey: Survey, item: str) -> tuple[str, list[str]]:
    name, equals, file = item.partition("=")
    if not equals or not file:
        raise click.UsageError(f"expected --candidates QUESTION=FILE, got {item!r}")
    return survey.question(name).name, read_strings(Path(file))
