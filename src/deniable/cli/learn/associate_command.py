"""`deniable associate`: how values of several questions go together."""

from __future__ import annotations

from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from deniable.cli.learn.string_lists import read_strings
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
    from deniable.results import Joint, Result
    from deniable.survey import Survey

OTHERS: dict[str, Any] = {"mixture": True, "product": "product", "none": False}
EXAMPLE = """\b
Examples:
  deniable associate survey.toml reports.parquet --question browser --question ad_blocker
  deniable associate survey.toml reports.parquet --question homepage --question ad_blocker \\
      --candidates homepage=found.csv --top 5 -o joint.png
  deniable associate survey.toml monday.npz tuesday.npz --from-counts \\
      --question browser --question ad_blocker
"""


@click.command(epilog=EXAMPLE)
@survey_argument
@reports_argument
@click.option("--question", "questions", multiple=True, shell_complete=question_names,
              help="Two or more, given one by one; all of the survey's if not given.")  # fmt: skip
@click.option("--candidates", "lists", multiple=True, metavar="QUESTION=FILE",
              help="Strings to look for in a question; the file as for decode.")  # fmt: skip
@click.option("--top", type=click.IntRange(1), default=10, show_default=True,
              help="Strings of a question that get a category; the rest is (other).")  # fmt: skip
@click.option("--other", type=click.Choice(list(OTHERS)), default="mixture", show_default=True,
              help="Model of the rest; none leaves it out, which biases the table.")  # fmt: skip
@click.option("--fitted", type=click.IntRange(1),
              help="Strings that are fitted before those beyond --top are added up.")  # fmt: skip
@click.option("--test", "method", type=click.Choice(["score", "paper", "lrt"]), default="score",
              show_default=True, help="The test of independence of two questions.")  # fmt: skip
@click.option("--from-counts", is_flag=True,
              help="Two questions by counts of their bits, in one pass; less exact where strings "
              "have several hashes. REPORTS may be files that count wrote.")  # fmt: skip
@alpha_option
@period_options
@executor_option
@output_option
@json_option
def associate(
    survey_name: str, reports: tuple[str, ...], questions: tuple[str, ...], lists: tuple[str, ...],
    top: int, other: str, fitted: int | None, method: str, from_counts: bool, alpha: float,
    since: date | None, until: date | None, by: str | None, executor: str,
    outputs: tuple[Path, ...], as_json: bool,
) -> None:  # fmt: skip
    """Estimate how values of several questions go together.

    And test whether they do.

    SURVEY is a file, or a survey's name in a store. REPORTS are files (.parquet, .arrow, .dn),
    folders of such, or a store (sqlite:///FILE.db, FILE.db, a folder, postgresql://…).
    """
    from deniable.analysis import associate as verb
    from deniable.analysis import by_period
    from deniable.cli.learn.report_sources import chosen_days, survey_of, the_store
    from deniable.cli.output import finished
    from deniable.cli.progress import bars
    from deniable.compute.named import executor_of

    survey = survey_of(survey_name, reports)
    names = _questions(survey, questions)
    candidates = dict(_candidates(survey, item) for item in lists)

    def analyse(runner: Backend, some: Reports) -> Joint:
        return verb(
            survey, some, names, candidates=candidates, top=top, other=OTHERS[other],
            fitted=fitted, alpha=alpha, from_counts=from_counts, executor=runner,
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
        # Within: the tests pass over the evidence again.
        finished(found, outputs, as_json, survey, notes=lambda joint: _notes(joint, method))


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


def _notes(joint: Joint, method: str) -> list[str]:
    """The test, and what (other) stands for."""
    if len(joint.questions) == 2:
        test, effect = joint.test(method), joint.cramers_v()
        told = f"Cramér's V {effect.estimate:.3f} ({effect.low:.3f} to {effect.high:.3f})"
    else:
        test, told = joint.mutual_independence(), "of all questions"
    small = "p < 1e-300" if test.p_value == 0 else f"p = {test.p_value:.3g}"
    words = "goes together" if test.p_value < 0.05 else "no association is shown"
    others = [
        f"(other) of {q}: {o}" for q, o in zip(joint.questions, joint.other, strict=True) if o
    ]
    return [
        f"Independence ({test.method}): statistic {test.statistic:.2f}, "
        f"{test.degrees_of_freedom} degrees of freedom, {small}: {words}. {told}",
        *others,
    ]
