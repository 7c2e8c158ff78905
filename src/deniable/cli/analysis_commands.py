"""`deniable decode`, `associate`, `discover` and `count`: what analysts ask of reports."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from deniable import store
from deniable.cli import options
from deniable.cli.inputs import question_of, read_strings, read_words, survey_of
from deniable.cli.options import command
from deniable.cli.output import print_outcome, print_result, progress_bars, write_result
from deniable.errors import InputError
from deniable.formatting import counted

if TYPE_CHECKING:
    from deniable.analysis.source import Reports
    from deniable.results import Result
    from deniable.survey import Survey

OTHER_MODELS: dict[str, bool | str] = {"mixture": True, "product": "product", "none": False}

source_arguments = options.combine(
    click.argument("survey_name", metavar="SURVEY"),
    click.argument("reports", metavar="REPORTS...", nargs=-1, required=True),
)
executor_option = options.option(
    "--executor",
    metavar="NAME",
    default="threads",
    help="What does the work: threads, threads:N, or a Dask cluster, whose workers read the "
    "reports: dask://HOST:PORT or tls://HOST:PORT.",
)
run_options = options.combine(
    options.days_options,
    options.option(
        "--by",
        type=click.Choice(["day", "week"]),
        help="Analyse each day or week separately and show the trend (stores only).",
    ),
    executor_option,
    options.output_option,
    options.json_option(),
)


@dataclass(frozen=True, kw_only=True)
class AnalysisRun:
    """The arguments and options that all analyses share."""

    survey_name: str
    reports: tuple[str, ...]
    since: date | None
    until: date | None
    executor: str
    as_json: bool
    by: Literal["day", "week"] | None = None
    outputs: tuple[Path, ...] = ()

    @cached_property
    def survey(self) -> Survey:
        """The survey, from its file or from the store."""
        survey = survey_of(self.survey_name, self.reports)
        for name in {question.name for question in survey.questions} & set(self.reports):
            if not Path(name).exists():
                raise click.UsageError(f"choose a question with an option: --question {name}")
        return survey

    def perform(
        self, analyse: Callable[[Reports], Result], *, strict: bool = False, **notes: Any
    ) -> None:
        """Analyse the reports, all at once or by period; print and write the result.

        Parameters
        ----------
        analyse
            Function of the reports.
        strict
            Whether an error in one period ends the whole analysis.
        **notes
            Options of the notes below the table, see `View.notes`.
        """
        with progress_bars():
            if self.by is None:
                result = analyse(self.chosen_reports())
            else:
                from deniable.analysis import by_period

                result = by_period(
                    self.survey,
                    self.store(),
                    analyse,
                    by=self.by,
                    since=self.since,
                    until=self.until,
                    strict=strict,
                )
        print_result(result, self.as_json, **notes)
        write_result(result, self.outputs, self.survey)

    def chosen_reports(self) -> Reports:
        """Return the reports of the chosen days."""
        from deniable.analysis import Stored

        if self.since or self.until:
            return Stored(self.store(), self.since, self.until)
        return self.reports

    def store(self) -> str:
        """Return the only source, which must be a store: files do not know days."""
        if len(self.reports) != 1 or not store.is_url(self.reports[0]):
            raise InputError(
                "--since, --until and --by need one store, which knows the day of each report; got "
                f"{', '.join(self.reports)}"
            )
        return self.reports[0]


@command(note=options.SOURCES)
@source_arguments
@options.question_option()
@options.option("--candidates", "lists", multiple=True, metavar="[QUESTION=]FILE")
@options.option("--where", multiple=True, metavar="QUESTION=ANSWER")
@options.alpha_option
@options.option(
    "--correction", type=click.Choice(["holm", "bonferroni", "fdr", "none"]), default="holm"
)
@options.option("--reports-per-client", type=options.Number(1), default=1.0, metavar="NUMBER")
@run_options
def decode(
    question: str | None,
    lists: tuple[str, ...],
    where: tuple[str, ...],
    alpha: float,
    correction: str,
    reports_per_client: float,
    **common: Any,
) -> None:
    """Estimate how common each value of a question is, and test which values occur at all.

    A string question needs a list of candidate strings. Choice and boolean questions need none.

    Parameters
    ----------
    question
        Question to decode. Required if the survey has several.
    lists
        Candidate strings: a text file with one per line, a CSV file with a column "value", or a
        JSON result of discover or decode. QUESTION=FILE gives candidates of a question in --where.
    where
        Decode only a subgroup: clients that gave this answer to another question. Several questions
        mean clients that gave all of these answers; several answers to one question mean any of
        them.
    correction
        Correction for testing many candidates. It decides what --alpha bounds: the probability of
        any false detection (holm or bonferroni), the expected share of false detections (fdr), or
        the probability of a false detection per candidate (none).
    reports_per_client
        Average number of reports per client in repeated collection; widens the standard errors.

    Examples
    --------
    deniable decode survey.toml reports.parquet --question browser
    deniable decode survey.toml reports.parquet --question page --candidates pages.txt -o pages.csv
    deniable decode survey.toml reports.parquet --question browser --where ad_blocker=yes
    deniable decode survey.json sqlite:///reports.db --question browser --by week -o browser.svg
    """
    from deniable.analysis import decode as verb
    from deniable.analysis.conditions import Subgroup

    run = AnalysisRun(**common)
    name = question_of(run.survey, question)
    candidates = dict(_candidates(run.survey, item, name) for item in lists)
    if extra := sorted(candidates.keys() - {name} if not where else ()):
        raise click.UsageError(
            f"--candidates {extra[0]}=FILE is for a condition: add --where {extra[0]}=ANSWER"
        )
    settings: dict[str, Any] = {
        "where": _conditions(where),
        "alpha": alpha,
        "correction": None if correction == "none" else correction,
        "reports_per_client": reports_per_client,
        "executor": run.executor,
    }

    def analyse(reports: Reports) -> Result:
        strings = candidates if where else candidates.get(name)
        return verb(run.survey, reports, name, strings, **settings)

    if where:
        Subgroup.of(run.survey, name, settings["where"])  # raises before any period is analysed
    run.perform(analyse, strict=not where)


@command(note=options.SOURCES)
@source_arguments
@options.question_option("questions", multiple=True)
@options.option("--candidates", "lists", multiple=True, metavar="QUESTION=FILE")
@options.option("--top", type=options.POSITIVE_INT, default=10, metavar="COUNT")
@options.option("--other", type=click.Choice(list(OTHER_MODELS)), default="mixture")
@options.option("--fitted", type=options.POSITIVE_INT, metavar="COUNT")
@options.option("--test", type=click.Choice(["score", "paper", "lrt"]), default="score")
@options.alpha_option
@run_options
def associate(
    questions: tuple[str, ...],
    lists: tuple[str, ...],
    other: str,
    test: str,
    top: int,
    fitted: int | None,
    alpha: float,
    **common: Any,
) -> None:
    r"""Estimate the joint distribution of several questions, and test whether they are independent.

    Parameters
    ----------
    questions
        Question of the joint table; give the option two or more times. By default all questions of
        the survey.
    lists
        Candidate strings of a string question, in a file as for decode --candidates. May be
        repeated.
    top
        Number of most common strings per question that get a category; all other strings are
        counted as (other).
    other
        How the reports of (other) are modelled: as a mixture of the candidates without a category
        and unlisted strings (mixture), or with independent bits (product). Without (other) (none),
        the table is biased.
    fitted
        Number of detected strings per question that have their own category during the fit; those
        beyond --top are added to (other) afterwards. By default about twice --top.
    test
        Test of independence of two questions: score test (score), the statistic of Fanti, Pihur and
        Erlingsson, 2016 (paper), or likelihood ratio test (lrt).

    Examples
    --------
    deniable associate survey.toml reports.parquet --question browser --question ad_blocker
    deniable associate survey.toml reports.parquet --question homepage --question ad_blocker \
        --candidates homepage=found.csv --top 5 -o joint.png
    deniable associate survey.toml monday.npz tuesday.npz
    """
    from deniable.analysis import associate as verb

    run = AnalysisRun(**common)
    asked = [run.survey.question(name) for name in questions] or run.survey.questions
    names = [question.name for question in asked]
    if len(names) < 2:
        raise click.UsageError(
            f"expected at least two questions, got {', '.join(names)}; add another --question"
        )
    settings: dict[str, Any] = {
        "candidates": dict(_candidates(run.survey, item) for item in lists),
        "other": OTHER_MODELS[other],
        "top": top,
        "fitted": fitted,
        "alpha": alpha,
        "executor": run.executor,
    }
    run.perform(lambda reports: verb(run.survey, reports, names, **settings), test=test)


def _candidates(survey: Survey, item: str, default: str | None = None) -> tuple[str, list[str]]:
    """Return the question and the strings that QUESTION=FILE names.

    A FILE alone lists the strings of the question `default`, if there is one.
    """
    name, equals, file = item.partition("=")
    if default is not None and (not equals or Path(item).is_file()):
        name, file = default, item
    elif not equals or not file:
        raise click.UsageError(f"expected --candidates QUESTION=FILE, got {item!r}")
    path = options.EXISTING_FILE.convert(file, None, click.get_current_context())
    return survey.question(name).name, read_strings(path)


def _conditions(items: tuple[str, ...]) -> dict[str, list[str]]:
    """Return the answers of each question that QUESTION=ANSWER items name."""
    conditions: dict[str, list[str]] = {}
    for item in items:
        name, equals, answer = item.partition("=")
        if not equals:
            raise click.UsageError(f"expected --where QUESTION=ANSWER, got {item!r}")
        conditions.setdefault(name, []).append(answer)
    return conditions


@command(note=options.SOURCES)
@source_arguments
@options.question_option()
@options.option("--accept", metavar="REGEX")
@options.alpha_option
@options.option("--reading", type=click.Choice(["fused", "paper"]))
@options.option("--delta", type=options.POSITIVE_FLOAT, metavar="NUMBER")
@options.option("--words", type=options.EXISTING_FILE, metavar="FILE")
@options.flag("--stages")
@run_options
def discover(question: str | None, words: Path | None, stages: bool, **given: Any) -> None:
    r"""Find strings that clients reported and that nobody listed in advance.

    The question must have a dictionary section in the survey: clients report prefixes or n-grams of
    their strings.

    Parameters
    ----------
    question
        Question to search. Required if several questions have a dictionary section.
    accept
        Consider only strings that match this regular expression as a whole. Other strings are not
        tested, so they do not make the test of the accepted ones stricter.
    reading
        Algorithm for questions with n-grams: use all n-grams jointly (fused, the default), or
        the algorithm of Fanti, Pihur and Erlingsson, 2016 (paper).
    delta
        For --reading paper: minimum frequency at which two n-grams count as parts of
        one string. By default it follows from the noise and the number of reports.
    words
        Hints for prefixes: strings that clients may hold and words that these may contain. A text
        file with one per line, a CSV file with columns "value,weight", or a JSON result of discover
        from earlier reports. Hints that do not occur do no harm.
    stages
        Also show how many strings each stage of the search kept and dropped.

    Examples
    --------
    deniable discover survey.toml reports.parquet -o found.csv -o found.png
    deniable discover survey.json sqlite:///reports.db --question homepage --since 2027-01-01
    deniable discover survey.toml reports.parquet --accept '[a-z0-9-]+\.(com|org)' --words words.txt
    """
    from deniable.discovery import discover as verb

    settings = {name: given.pop(name) for name in ("accept", "alpha", "reading", "delta")}
    settings["words"] = read_words(words) if words else {}
    run = AnalysisRun(**given)
    searchable = [q.name for q in run.survey.questions if q.protocol.name in ("ngrams", "prefixes")]
    if question is None and not searchable and len(run.survey.questions) > 1:
        raise click.UsageError(
            f"no question of survey {run.survey.name!r} has a dictionary, so there is nothing to "
            "discover; use decode, with --candidates for string questions"
        )
    name = question_of(run.survey, question, searchable)
    run.perform(
        lambda reports: verb(run.survey, reports, name, executor=run.executor, **settings),
        stages=stages,
    )


@command(note=options.SOURCES)
@source_arguments
@options.question_option("questions", multiple=True)
@options.days_options
@executor_option
@options.option("-o", "--output", type=options.OutputPath(".npz"), required=True, metavar="FILE")
@options.json_option("the outcome")
def count(questions: tuple[str, ...], output: Path, **common: Any) -> None:
    r"""Count how often bits of two questions occur together.

    The counts are all that deniable associate needs, so that reports can be deleted. Counts add up:
    REPORTS of both commands may be counts of shards, days or machines (.npz files).

    Parameters
    ----------
    questions
        Question to count; give the option twice. By default the two questions of the survey.
    output
        Write the counts to FILE, which must end in .npz.

    Examples
    --------
    deniable count survey.toml monday.parquet --question browser --question ad_blocker -o monday.npz
    deniable count survey.toml monday.npz tuesday.npz --question browser --question ad_blocker \
        -o both.npz
    """
    from deniable.analysis import count as verb

    run = AnalysisRun(**common)
    names = list(questions) or [question.name for question in run.survey.questions]
    with progress_bars():
        counts = verb(run.survey, run.chosen_reports(), names, executor=run.executor)
    counts.save(output)
    size = output.stat().st_size
    print_outcome(
        {"file": str(output), "reports": counts.reports, "bytes": size},
        f"Counted {counted(counts.reports, 'report')} of {' × '.join(counts.questions)}: {output}, "
        f"{size:,} bytes.",
        run.as_json,
    )
