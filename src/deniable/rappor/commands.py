"""`deniable rappor import`: files of google/rappor become a survey and reports."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from deniable.cli.options import (
    EXISTING_FILE,
    EXISTING_FOLDER,
    FOLDER,
    command,
    json_option,
    new_group,
    option,
)
from deniable.cli.output import echo, print_outcome, progress_bars
from deniable.errors import InputError
from deniable.formatting import counted
from deniable.survey import Survey

if TYPE_CHECKING:
    from deniable.rappor.importing import RapporQuestion


@command(make=new_group)
def rappor() -> None:
    """Move from google/rappor: import the reports of its clients.

    Examples
    --------
    deniable rappor import --client cpp --params params.csv --map map.csv reports.csv -o visits
    """


@command("import", make=rappor.command, short_help="Import parameters, maps and reports.")
@click.argument("files", metavar="REPORTS.csv...", nargs=-1, required=True, type=EXISTING_FILE)
@option("--client", type=click.Choice(["python", "cpp", "java"]), required=True)
@option("--params", "params_file", type=EXISTING_FILE, metavar="FILE")
@option("--map", "map_file", type=EXISTING_FILE, metavar="FILE")
@option("--schema", type=EXISTING_FILE, metavar="FILE")
@option("--maps", multiple=True, metavar="VARIABLE=FILE")
@option("--metric-name", metavar="NAME")
@option("--params-dir", type=EXISTING_FOLDER, metavar="FOLDER")
@option("--survey", "earlier", type=EXISTING_FILE, metavar="FILE")
@option("-o", "--output", "folder", required=True, type=FOLDER, metavar="FOLDER")
@json_option("the outcome")
def import_(
    files: tuple[Path, ...],
    client: str,
    earlier: Path | None,
    folder: Path,
    as_json: bool,
    **sources: Any,
) -> None:
    r"""Turn google/rappor's parameters, maps and reports into a survey and reports.

    Give --params and --map for reports of one string (columns client, cohort and irr), or --schema
    and --maps for association reports (one column per variable). All files may be compressed with
    gzip. If a line of a file is wrong, the message names it, and nothing is written.

    FOLDER gets survey.toml and survey.json, reports.parquet, and a list of candidates from each
    map. The ids of clients are not kept. The commands to analyse these files are printed.

    Parameters
    ----------
    client
        Client that made the reports; each has its own hash functions.
    params_file
        Parameters of one string: k,h,m,p,q,f.
    map_file
        Candidates of this string, with their bits.
    schema
        Variables of association reports: metric,var,var_type,params.
    maps
        Candidates of a variable that is a string, with their bits. Repeat it for each of them.
    metric_name
        Metric of the schema. Required if it has several.
    params_dir
        Folder of the parameter files that the schema names; by default that of the schema.
    earlier
        Survey of an earlier import (its survey.json), to use it again, so that the reports of both
        can be analysed together. A new survey has today as its last day.
    folder
        Folder to write to. It must be empty or not exist.

    Examples
    --------
    deniable rappor import --client cpp --params params.csv --map map.csv reports.csv -o visits
    deniable rappor import --client cpp --schema rappor-vars.csv --maps domain=map.csv \
        assoc-reports.csv -o both
    deniable rappor import --client cpp --params params.csv --map map.csv tuesday.csv -o tuesday \
        --survey monday/survey.json
    """
    from deniable.rappor.importing import import_reports, survey_toml

    if folder.exists() and any(folder.iterdir()):
        raise InputError(f"{folder} is not empty: choose another folder for --output")
    with progress_bars():
        metric, questions = _questions(client, **sources)
        name = metric or folder.resolve().name
        text = survey_toml(name, questions, client, Survey.load(earlier) if earlier else None)
        reports, clients = import_reports(files, text, questions, folder)
    if clients < reports:
        echo(
            f"warning: the {counted(reports, 'report')} come from {counted(clients, 'client')}. "
            "Estimates will be shares of reports, not of clients, and intervals will be too "
            "narrow, because reports of one client are not independent.",
            err=True,
        )
    commands = _commands(folder, questions)
    outcome = {"reports": reports, "clients": clients, "commands": commands}
    lines = [f"Wrote {counted(reports, 'report')} to {folder}. To analyse them:", *commands]
    print_outcome(outcome, "\n".join(lines), as_json)


def _questions(
    client: str,
    params_file: Path | None,
    map_file: Path | None,
    schema: Path | None,
    maps: tuple[str, ...],
    metric_name: str | None,
    params_dir: Path | None,
) -> tuple[str, list[RapporQuestion]]:
    """Return the metric, if the files name one, and the questions."""
    from deniable.rappor.files import read_schema
    from deniable.rappor.importing import one_string, variables_of

    if params_file and map_file and not (schema or maps or metric_name or params_dir):
        return "", one_string(params_file, map_file, client)
    if not schema or params_file or map_file:
        raise click.UsageError("give either --params and --map, or --schema and --maps")
    metric, variables = read_schema(schema, metric_name)
    return metric, variables_of(variables, params_dir or schema.parent, _pairs(maps), client)


def _pairs(maps: Sequence[str]) -> dict[str, Path]:
    """Return the maps by variable, from VARIABLE=FILE."""
    pairs = {}
    for item in maps:
        name, equals, file = item.partition("=")
        if not (name and equals and Path(file).is_file()):
            raise click.UsageError(
                f"expected --maps VARIABLE=FILE and an existing file, got {item}"
            )
        pairs[name] = Path(file)
    return pairs


def _commands(folder: Path, questions: Sequence[RapporQuestion]) -> list[str]:
    """Return the commands that decode the first question, and associate all, if there are more."""
    start = [str(folder / "survey.toml"), str(folder / "reports.parquet")]
    first, *others = questions
    lists = {q.name: str(folder / q.candidates_file) for q in questions if q.candidates}
    decode = ["deniable", "decode", *start]
    if others:
        decode += ["--question", first.name]
    if first.candidates:
        decode += ["--candidates", lists[first.name]]
    if not others:
        return [shlex.join(decode)]
    options = [word for name, path in lists.items() for word in ("--candidates", f"{name}={path}")]
    return [shlex.join(decode), shlex.join(["deniable", "associate", *start, *options])]
