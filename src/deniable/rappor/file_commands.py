"""The commands of `deniable rappor` that convert files: its own tools, and the way to a survey."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from deniable import store
from deniable.cli.options import (
    EXISTING_FILE,
    EXISTING_FOLDER,
    FILE,
    FOLDER,
    POSITIVE_INT,
    REPORT_FILES,
    STORES,
    OutputPath,
    WholeNumber,
    command,
    day_option,
    json_option,
    option,
)
from deniable.cli.output import echo, echo_data, print_outcome, progress_bars
from deniable.errors import InputError
from deniable.formatting import counted
from deniable.survey import Survey
from deniable.survey.draft import OWNER_PLACEHOLDER

if TYPE_CHECKING:
    from deniable.columns import ReportBatch

FILE_OR_STDIN = click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path)
CLIENTS = click.Choice(["python", "cpp", "java"])
CANDIDATES_PER_CHUNK = 1000

output_option = option("-o", "--output", type=FILE, metavar="FILE")


@command("example")
@click.argument("folder", type=FOLDER, default=Path())
@option("--clients", type=POSITIVE_INT, default=20_000, metavar="N")
@option("--seed", type=WholeNumber(0), default=1, metavar="NUMBER")
def example(folder: Path, clients: int, seed: int) -> None:
    """Write example files in the formats of google/rappor to FOLDER, by default the current one.

    The reports are simulated: a domain and, in the association reports, whether it uses https.

    Parameters
    ----------
    clients
        Number of clients.
    seed
        Seed of the random numbers.

    Examples
    --------
    deniable rappor example legacy
    """
    from deniable.rappor.example import FILES, write_example

    if there := [name for name in FILES if (folder / name).exists()]:
        raise InputError(f"{folder / there[0]} already exists: choose another folder")
    write_example(folder, clients, seed)
    for name, content in FILES.items():
        echo(f"{folder / name}: {content}")


@command("sum-bits")
@click.argument("params", type=EXISTING_FILE)
@click.argument("reports", type=FILE_OR_STDIN, default="-")
@option("--column", metavar="NAME")
@output_option
def sum_bits(params: Path, reports: Path, column: str | None, output: Path | None) -> None:
    """Count the set bits of REPORTS per cohort, as sum_bits.py does: counts.csv.

    PARAMS is params.csv, with the number of bits and cohorts. REPORTS are lines
    client,cohort,BITS,… with a header; by default they are read from standard input.

    Parameters
    ----------
    column
        Column of the bits; by default irr, or the only one.
    output
        Write the counts to FILE; by default to standard output.

    Examples
    --------
    deniable rappor sum-bits params.csv reports.csv -o counts.csv
    deniable rappor sum-bits params.csv < reports.csv > counts.csv
    """
    from deniable.kernels.counting.bit_sums import count_ones
    from deniable.rappor.csv_files import csv_bytes
    from deniable.rappor.files import count_rows, read_params
    from deniable.rappor.reports import ReportsFile

    own = read_params(params)
    with progress_bars():
        file = ReportsFile(reports)
        chosen = file.main_column("--column NAME") if column is None else column
        read = file.read(columns=[chosen], cohorts=own.m, bits={chosen: own.k})
        ones, total = count_ones(read.columns[chosen][0], own.k, read.cohort, own.m)
    _write([csv_bytes(count_rows(ones, total))], output)


@command("hash-candidates")
@click.argument("params", type=EXISTING_FILE)
@click.argument("candidates", type=FILE_OR_STDIN, default="-")
@option("--client", type=CLIENTS, default="cpp")
@output_option
def hash_candidates(params: Path, candidates: Path, client: str, output: Path | None) -> None:
    """Hash CANDIDATES, one string per line, as hash_candidates.py does: map.csv.

    PARAMS is params.csv, with the number of bits, hashes and cohorts. CANDIDATES are by default
    read from standard input; blanks around a string are removed.

    Parameters
    ----------
    client
        Client that made the reports. The Python and C++ clients hash alike.
    output
        Write the map to FILE; by default to standard output.

    Examples
    --------
    deniable rappor hash-candidates params.csv candidates.txt -o map.csv
    deniable rappor hash-candidates params.csv < candidates.txt > map.csv
    """
    from deniable.compute.progress import report_progress
    from deniable.rappor.csv_files import csv_bytes, input_lines
    from deniable.rappor.files import hash_map, map_rows, read_params
    from deniable.rappor.survey_file import SCHEMES

    own = read_params(params)
    words = [line.strip() for line in input_lines(candidates)]
    with progress_bars():
        parts = []
        for start in range(0, len(words), CANDIDATES_PER_CHUNK):
            chunk = words[start : start + CANDIDATES_PER_CHUNK]
            parts.append(csv_bytes(map_rows(hash_map(chunk, own, SCHEMES[client]), own)))
            report_progress("hashing", (start + len(chunk)) / len(words))
    _write(parts, output)


def _write(parts: Iterable[bytes], output: Path | None) -> None:
    """Write bytes to a file, or to standard output, unchanged on every system."""
    if output is None:
        for part in parts:
            echo_data(part)
    else:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_bytes(b"".join(parts))
        echo(f"Wrote {output}.", err=True)


@command("survey")
@click.argument("file", type=EXISTING_FILE)
@option("--client", type=CLIENTS, required=True)
@option("--question", default="value", metavar="NAME")
@option("--metric-name", metavar="NAME")
@option("--params-dir", type=EXISTING_FOLDER, metavar="FOLDER")
@option("--owner", default=OWNER_PLACEHOLDER, show_default=False, metavar="TEXT")
@option("-o", "--output", required=True, type=OutputPath(".toml"), metavar="FILE")
def survey(
    file: Path,
    client: str,
    question: str,
    metric_name: str | None,
    params_dir: Path | None,
    owner: str,
    output: Path,
) -> None:
    """Write the survey file that describes reports of google/rappor's clients.

    FILE is params.csv, for the reports of one string, or a schema (metric,var,var_type,params), for
    association reports.

    Parameters
    ----------
    client
        Client that made the reports, which decides the hash functions.
    question
        Name of the question, if FILE is params.csv.
    metric_name
        Metric of the schema. Required if it has several.
    params_dir
        Folder of the parameter files that the schema names; by default that of the schema.
    owner
        Who is responsible for the survey, and how to reach them.
    output
        Write the survey to FILE, which must end in .toml.

    Examples
    --------
    deniable rappor survey params.csv --client cpp --question domain -o survey.toml
    deniable rappor survey schema.csv --client python -o survey.toml
    """
    from deniable.rappor.survey_file import read_questions, survey_toml

    if output.exists():
        raise InputError(f"{output} already exists: choose another name, or delete it")
    name, questions = read_questions(
        file, question=question, metric=metric_name, params_dir=params_dir
    )
    text = survey_toml(name or output.name, owner, questions, client)
    output.write_text(text, encoding="utf-8")
    names = ", ".join(q.name for q in questions)
    echo(f"Wrote {output} with {counted(len(questions), 'question')}: {names}.", err=True)


@command("import", note=STORES)
@click.argument("to")
@click.argument("files", nargs=-1, required=True, type=EXISTING_FILE)
@option("--survey", "survey_file", required=True, type=EXISTING_FILE, metavar="FILE")
@option("--column", "columns", multiple=True, metavar="QUESTION=COLUMN")
@day_option("--day")
@json_option("the outcome")
def import_(
    to: str,
    files: tuple[Path, ...],
    survey_file: Path,
    columns: tuple[str, ...],
    day: date | None,
    as_json: bool,
) -> None:
    """Add the reports in FILES, which google/rappor's clients made, to TO.

    TO is a STORE, which is created if it does not exist, or a new file (.parquet, .dn).
    FILES have lines client,cohort,BITS,…; if one of their lines is wrong, nothing is imported. The
    ids of the clients are not kept. A file that is imported into a store twice is counted once, as
    long as the store has the idempotency keys of the first import (see deniable compact
    --keep-keys).

    Parameters
    ----------
    survey_file
        Survey that describes the reports; deniable rappor survey writes one.
    columns
        Bit column with the reports of a question; by default that of the same name, or, if the
        survey has one question, irr or the only one. May be repeated.
    day
        Day on which a store received the reports; by default today.

    Examples
    --------
    deniable rappor import reports.parquet reports.csv --survey survey.toml
    deniable rappor import reports.db march.csv --survey survey.toml --column domain=irr \
        --day 2017-03-31
    """
    from deniable.rappor.importing import count_clients, read_files

    asked = Survey.load(survey_file)
    to_file = Path(to).suffix in REPORT_FILES
    if to_file and day is not None:
        raise click.UsageError("--day goes with a store; files of reports have no days")
    if Path(to) in files or Path(to).suffix in (".csv", ".gz"):
        raise click.UsageError(f"expected a store or a .parquet file before the files, got {to}")
    with progress_bars():
        read = read_files(files, asked, _pairs(columns))
        clients = count_clients(read)
        batches = [file.batch for file in read]
        outcome = (
            _to_file(Path(to), batches)
            if to_file
            else _to_store(to, batches, day or datetime.now(UTC).date())
        )
    if clients < outcome["reports"]:
        echo(
            f"warning: the {counted(outcome['reports'], 'report')} come from "
            f"{counted(clients, 'client')}. Estimates will be shares of reports, not of clients, "
            "and intervals will be too narrow, because reports of one client are not independent.",
            err=True,
        )
    text = (
        f"Wrote {counted(outcome['reports'], 'report')} to {to}."
        if to_file
        else f"Read {counted(outcome['reports'], 'report')} and added {outcome['new']:,} new ones "
        f"to {outcome['store']}."
    )
    print_outcome({**outcome, "clients": clients}, text, as_json)


def _pairs(columns: Iterable[str]) -> dict[str, str]:
    """Return the columns by question, from QUESTION=COLUMN."""
    pairs = [item.partition("=") for item in columns]
    for question, equals, column in pairs:
        if not (question and equals and column):
            raise click.UsageError(
                f"expected --column QUESTION=COLUMN, got {question + equals + column!r}"
            )
    return {question: column for question, _, column in pairs}


def _to_file(path: Path, batches: list[ReportBatch]) -> dict[str, Any]:
    """Write a file of reports."""
    from deniable.columns import write

    path.parent.mkdir(parents=True, exist_ok=True)
    return {"reports": write(path, batches), "file": str(path)}


def _to_store(url: str, batches: list[ReportBatch], day: date) -> dict[str, Any]:
    """Append to a store."""
    from deniable.store.bulk import import_batches

    with store.open(url, create=True) as opened:
        counts = [import_batches(opened, [batch], day) for batch in batches]
    read, new = map(sum, zip(*counts, strict=True))
    return {"reports": read, "new": new, "store": opened.url}


COMMANDS = (example, sum_bits, hash_candidates, survey, import_)
