"""`deniable simulate`: a crowd that does not exist answers a survey."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from deniable.cli import options
from deniable.cli.documented import command
from deniable.cli.output import say
from deniable.cli.values import typed

if TYPE_CHECKING:
    import numpy as np

    from deniable.columns import ReportBatch
    from deniable.simulation import Coded
    from deniable.survey import Survey

    Draw = Callable[[int, np.random.Generator], Mapping[str, Coded]]


@command()
@click.argument("survey_file", metavar="SURVEY", type=options.EXISTING_FILE)
@options.option("--values", type=options.EXISTING_FILE)
@options.option("--population", "populations", multiple=True, metavar="[QUESTION=]SPEC")
@options.option("--table", "tables", multiple=True, metavar="Q1,Q2=FILE.csv")
@options.option("--clients", type=options.AT_LEAST_ONE)
@options.option("--seed", type=click.IntRange(0))
@options.option("-o", "--output", required=True, type=options.OutputPath(*options.REPORT_FILES))
@options.json_option("what was done")
def simulate(
    survey_file: Path,
    values: Path | None,
    populations: tuple[str, ...],
    tables: tuple[str, ...],
    clients: int | None,
    seed: int | None,
    output: Path,
    as_json: bool,
) -> None:
    r"""Simulate the reports of a crowd and write them to a file.

    Parameters
    ----------
    values : CSV with a column for each question, a row for each client; an empty cell is no
        answer.
    populations : zipf, power, geometric, step, uniform or exponential with settings after a colon
        (n, s, exponent, floor, p, scale, length), or a CSV of value,weight.
    tables : A contingency table of two questions: Q1's values down, Q2's across.
    clients : How many clients, with --population.
    seed : Repeat exactly; else the system's randomness.
    output : Where the reports go: .parquet, .arrow or .dn.

    Examples
    --------
    deniable simulate survey.toml --values answers.csv -o reports.parquet
    deniable simulate survey.toml --population zipf:n=100,s=1 --clients 1000000 -o reports.parquet
    deniable simulate survey.toml --population page=urls.csv --table browser,ads=shares.csv \
        --clients 1000000 --seed 7 -o reports.parquet
    """
    import numpy as np

    from deniable.cli.progress_bars import track
    from deniable.columns.files import ROWS, ReportWriter
    from deniable.simulation import simulate_stream
    from deniable.survey import Survey

    survey = Survey.load(survey_file)
    rng = np.random.default_rng(seed)
    if (values is None) == (not populations and not tables):
        raise click.UsageError("give either --values, or --population and --table")
    origin = f"simulated, seed {seed}" if seed is not None else "simulated"
    if values is not None:
        if clients is not None:
            raise click.UsageError("--clients goes with --population, not with --values")
        batches = _from_values(survey, values, rng)
    else:
        if clients is None:
            raise click.UsageError("--population needs --clients")
        draw = _population(survey, populations, tables, rng)
        stream = simulate_stream(survey, draw, clients, rng=rng, rows=ROWS)
        batches = track(stream, clients, "simulating", size=len)
    with ReportWriter(output, survey, origin) as writer:
        for batch in batches:
            writer.write(batch)
    size = output.stat().st_size
    say(
        {"reports": writer.reports, "bytes": size, "file": str(output)},
        f"{writer.reports:,} reports, {size:,} bytes: {output}",
        as_json,
    )


def _from_values(survey: Survey, path: Path, rng: np.random.Generator) -> Iterator[ReportBatch]:
    from itertools import islice

    from deniable.columns.files import ROWS
    from deniable.columns.spreadsheet import read_rows
    from deniable.errors import InputError
    from deniable.simulation import simulate

    rows = read_rows(path)
    _, header = next(rows, (0, []))
    for name in header:
        survey.question(name)
    if not header:
        raise InputError(f"{path} is empty: expected a header of questions")
    if len(set(header)) != len(header):
        raise InputError(f"{path}: expected each question once in the header, got {header}")
    kinds = [survey.question(name).kind for name in header]
    while some := list(islice(rows, ROWS)):
        columns: dict[str, list[str | bool | None]] = {name: [] for name in header}
        for line, row in some:
            if len(row) != len(header):
                raise InputError(f"{path}, line {line}: expected {len(header)} cells, got {row}")
            for name, kind, cell in zip(header, kinds, row, strict=True):
                value = typed(cell, kind, f"{path}, line {line}") if cell else None
                columns[name].append(value)
        yield simulate(survey, columns, rng=rng)


def _population(
    survey: Survey, populations: tuple[str, ...], tables: tuple[str, ...], rng: np.random.Generator
) -> Draw:
    """One function that draws every question's answers."""
    from deniable.simulation import Coded, Population, from_spec, table_from_csv

    alone: dict[str, Population] = {}
    for item in populations:
        name, equals, spec = item.partition("=")
        if not equals or ":" in name or name.endswith(".csv"):
            if len(survey.questions) > 1:
                raise click.UsageError(f"say which question has population {item!r}: QUESTION=SPEC")
            name, spec = survey.questions[0].name, item
        alone[survey.question(name).name] = from_spec(spec, rng)
    joint = []
    for item in tables:
        names, _, path = item.partition("=")
        pair = names.split(",")
        if len(pair) != 2 or not path:
            raise click.UsageError(f"expected --table Q1,Q2=FILE.csv, got {item!r}")
        joint.append(table_from_csv(path, *(survey.question(n).name for n in pair)))
    named = [*alone, *(name for population in joint for name in population.values)]
    if len(set(named)) != len(named):
        raise click.UsageError(f"expected one population a question, got {', '.join(named)}")

    def fitted(name: str, coded: Coded) -> Coded:
        """Booleans are text in a CSV."""
        if survey.question(name).kind != "boolean":
            return coded
        levels = tuple(
            v if isinstance(v, bool) else typed(v, "boolean", name) if v else None
            for v in coded.levels
        )
        return Coded(levels, coded.codes)

    def draw(clients: int, rng: np.random.Generator) -> dict[str, Coded]:
        found = {name: population.draw(clients, rng) for name, population in alone.items()}
        for population in joint:
            found.update(population.draw(clients, rng))
        return {name: fitted(name, coded) for name, coded in found.items()}

    return draw
