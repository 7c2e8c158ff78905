"""`deniable simulate`: reports of a simulated crowd."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

import click

from deniable.cli import options
from deniable.cli.inputs import parse_answer
from deniable.cli.options import command
from deniable.cli.output import print_outcome, track
from deniable.errors import InputError
from deniable.formatting import counted
from deniable.survey import Survey
from deniable.survey.lossy_answers import LossyAnswers

if TYPE_CHECKING:
    import numpy as np

    from deniable.columns import ReportBatch
    from deniable.simulation import Coded

    Draw = Callable[[int, np.random.Generator], Mapping[str, Coded]]


@command()
@click.argument("survey_file", metavar="SURVEY", type=options.EXISTING_FILE)
@options.option("--values", type=options.EXISTING_FILE, metavar="FILE")
@options.option("--population", "populations", multiple=True, metavar="[QUESTION=]SPEC")
@options.option("--table", "tables", multiple=True, metavar="Q1,Q2=FILE.csv")
@options.option("--clients", type=options.POSITIVE_INT, metavar="N")
@options.option("--unanswered", multiple=True, metavar="QUESTION")
@options.flag("--strict")
@options.option("--seed", type=options.WholeNumber(0), metavar="NUMBER")
@options.option(
    "-o", "--output", required=True, type=options.OutputPath(*options.REPORT_FILES), metavar="FILE"
)
@options.json_option("the outcome")
def simulate(
    survey_file: Path,
    values: Path | None,
    populations: tuple[str, ...],
    tables: tuple[str, ...],
    clients: int | None,
    unanswered: tuple[str, ...],
    strict: bool,
    seed: int | None,
    output: Path,
    as_json: bool,
) -> None:
    r"""Simulate the reports of a crowd that answers SURVEY, and write them to a file.

    Give the answers themselves (--values), or draw them from distributions (--population, --table).

    Parameters
    ----------
    values
        CSV file of answers: one column per question, one row per client. An empty cell means that
        the client does not answer the question.
    populations
        Distribution of the answers to a question: a CSV file with columns "value,weight"; or, for
        string questions, random strings with one of these frequencies: zipf (setting s: exponent),
        power (exponent; floor: constant added to each frequency), geometric (p: success
        probability), exponential (scale), step or uniform. All have the settings n (number of
        strings) and length (of each string). For example, zipf:n=100,s=1 means 100 strings with
        frequencies proportional to 1/rank. For number questions: normal (settings mean and sd),
        lognormal (median, and sigma of the logarithm) or uniform (low and high), such as
        normal:mean=50,sd=10. May be repeated.
    tables
        Joint distribution of two questions: a CSV file with one row per answer to Q1 and one column
        per answer to Q2. May be repeated.
    clients
        Number of clients, with --population or --table.
    unanswered
        Question that nobody answers, if the file of --values has no column for it. May be repeated.
    strict
        Refuse an answer that cannot be reported in full: a choice that is not an option, or a
        string that is too long or has characters outside the question's alphabet. By default, a
        warning counts them.
    seed
        Seed of the random numbers, to get the same reports again. By default a new seed is drawn;
        it is recorded in the file.
    output
        Write the reports to FILE, which must end in .parquet or .dn.

    Examples
    --------
    deniable simulate survey.toml --values answers.csv -o reports.parquet
    deniable simulate survey.toml --population zipf:n=100,s=1 --clients 1000000 -o reports.parquet
    deniable simulate survey.toml --population page=urls.csv --table browser,ads=shares.csv \
        --clients 1000000 --seed 7 -o reports.parquet
    """
    import numpy as np

    from deniable.columns.files import MAX_BATCH_ROWS, ReportWriter
    from deniable.simulation import simulate_stream
    from deniable.simulation.crowd import origin_of

    survey = Survey.load(survey_file)
    rng = np.random.default_rng(seed)
    if (values is None) == (not populations and not tables):
        raise click.UsageError("give either --values, or --population and --table")
    if values is not None:
        if clients is not None:
            raise click.UsageError("--clients goes with --population, not with --values")
        batches = _simulate_values(survey, values, unanswered, rng, strict)
    else:
        if clients is None:
            raise click.UsageError("--population needs --clients")
        if unanswered:
            raise click.UsageError("--unanswered goes with --values, not with --population")
        draw = _population(survey, populations, tables, rng)
        stream = simulate_stream(survey, draw, clients, rng=rng, rows=MAX_BATCH_ROWS, strict=strict)
        batches = track(stream, clients, "simulating", size=len)
    with ReportWriter(output, survey, origin_of(rng)) as writer:
        for batch in batches:
            writer.write(batch)
    size = output.stat().st_size
    print_outcome(
        {"reports": writer.reports, "bytes": size, "file": str(output)},
        f"Wrote {counted(writer.reports, 'report')} to {output}, {size:,} bytes.",
        as_json,
    )


def _questions_of(
    survey: Survey, path: Path, header: list[str], unanswered: tuple[str, ...]
) -> Mapping[str, str]:
    """Return the kind of each question in the header of a CSV file of answers.

    Every question needs a column, unless the user says that nobody answers it.
    """
    from deniable.columns.partition import naming

    if not header:
        raise InputError(f"{path} is empty: expected a header with names of questions")
    with naming(path):
        kinds = {name: survey.question(name).kind for name in header}
    if len(kinds) != len(header):
        raise InputError(f"{path}: a question occurs twice in the header {','.join(header)}")
    skipped = {survey.question(name).name for name in unanswered}
    for question in survey.questions:
        if (question.name in kinds) == (question.name in skipped):
            problem, advice = (
                ("a", "leave out")
                if question.name in kinds
                else ("no", "if nobody answers it, add")
            )
            raise InputError(
                f"{path} has {problem} column for question {question.name!r}; its columns are "
                f"{', '.join(header)}: {advice} --unanswered {question.name}"
            )
    return kinds


def _simulate_values(
    survey: Survey, path: Path, unanswered: tuple[str, ...], rng: np.random.Generator, strict: bool
) -> Iterator[ReportBatch]:
    """Yield the reports of the clients whose answers are the rows of a CSV file."""
    from deniable.columns.files import MAX_BATCH_ROWS
    from deniable.columns.spreadsheet import read_rows
    from deniable.simulation.crowd import crowd_of

    rows = read_rows(path)
    _, header = next(rows, (0, []))
    kinds = _questions_of(survey, path, header, unanswered)
    lossy = LossyAnswers(strict)
    first = next(rows, None)
    if first is None:
        raise InputError(f"{path} has a header and no rows: expected one row per client")
    rows = chain([first], rows)
    while chunk := list(islice(rows, MAX_BATCH_ROWS)):
        columns: dict[str, list[str | bool | float | None]] = {name: [] for name in header}
        for line, row in chunk:
            if len(row) != len(header):
                raise InputError(
                    f"{path}, line {line}: expected {len(header)} cells, got {len(row)}"
                )
            for (name, kind), cell in zip(kinds.items(), row, strict=True):
                answer = parse_answer(cell, kind, f"{path}, line {line}") if cell else None
                columns[name].append(answer)
        crowd, codes = crowd_of(survey, columns, lossy)
        yield crowd.report(codes, rng=rng)
    lossy.warn(stacklevel=1)


def _population(
    survey: Survey, populations: tuple[str, ...], tables: tuple[str, ...], rng: np.random.Generator
) -> Draw:
    """Return a function that draws the answers to every question."""
    from deniable.simulation import Coded, JointPopulation, Population, from_spec, table_from_csv
    from deniable.simulation.number_populations import numbers_from_spec

    single: dict[str, Population] = {}
    for item in populations:
        name, equals, spec = item.partition("=")
        if not equals or ":" in name or name.endswith(".csv"):
            if len(survey.questions) > 1:
                raise click.UsageError(
                    f"name the question of population {item!r}: --population QUESTION=SPEC"
                )
            name, spec = survey.questions[0].name, item
        if (question := survey.question(name)).kind == "number":
            single[question.name] = numbers_from_spec(spec)
        else:
            single[question.name] = from_spec(spec, rng)
    joint: list[JointPopulation] = []
    for item in tables:
        names, _, path = item.partition("=")
        pair = names.split(",")
        if len(pair) != 2 or not path:
            raise click.UsageError(f"expected --table Q1,Q2=FILE.csv, got {item!r}")
        joint.append(table_from_csv(path, *(survey.question(n).name for n in pair)))
    named = [*single, *(name for population in joint for name in population.values)]
    if len(set(named)) != len(named):
        raise click.UsageError(f"a question has two populations; got {', '.join(named)}")

    def typed(name: str, coded: Coded) -> Coded:
        """Turn the text of a CSV file into booleans or numbers where the question needs them."""
        if (kind := survey.question(name).kind) not in ("boolean", "number"):
            return coded
        where = f"population of the {kind} question {name!r}, which must be a CSV file or table"
        levels = tuple(
            v if not isinstance(v, str) else parse_answer(v, kind, where) if v else None
            for v in coded.levels
        )
        return Coded(levels, coded.codes)

    def draw(clients: int, rng: np.random.Generator) -> dict[str, Coded]:
        answers = {name: population.draw(clients, rng) for name, population in single.items()}
        for population in joint:
            answers.update(population.draw(clients, rng))
        return {name: typed(name, coded) for name, coded in answers.items()}

    return draw
