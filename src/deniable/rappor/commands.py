"""`deniable rappor`: the commands of google/rappor, on its files."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from deniable.cli.options import (
    EXISTING_FILE,
    EXISTING_FOLDER,
    FOLDER,
    POSITIVE_INT,
    Number,
    alpha_option,
    command,
    json_option,
    new_group,
    option,
)
from deniable.cli.output import echo, print_outcome, progress_bars
from deniable.formatting import counted, p_phrase
from deniable.rappor import file_commands

if TYPE_CHECKING:
    from deniable.inference.marginal.detection import Correction

CORRECTIONS: dict[str, Correction] = {"fdr": "fdr", "bonferroni": "bonferroni", "none": None}

input_file = partial(option, type=EXISTING_FILE)
output_folder = option("--output-dir", type=FOLDER, default=Path(), show_default=False)


@command(make=new_group)
def rappor() -> None:
    """Analyse and convert the files of google/rappor, and write files that its tools read.

    Files that are compressed with gzip are read as they are.

    Examples
    --------
    deniable rappor example legacy
    deniable rappor sum-bits params.csv reports.csv -o counts.csv
    deniable rappor hash-candidates params.csv candidates.txt -o map.csv
    deniable rappor decode-dist --map map.csv --counts counts.csv --params params.csv
    """


for made in file_commands.COMMANDS:
    rappor.add_command(made)


@command("decode-dist", make=rappor.command)
@input_file("--map", "map_file", required=True)
@input_file("--counts", "counts_file", required=True)
@input_file("--params", "params_file", required=True)
@output_folder
@alpha_option
@option(
    "--correction",
    type=click.Choice(["FDR", "bonferroni", "None"], case_sensitive=False),
    default="bonferroni",
)
@json_option("the metrics")
def decode_dist(
    output_dir: Path, alpha: float, correction: str, as_json: bool, **input_files: Path
) -> None:
    """Estimate how common each candidate string of a map is.

    Parameters
    ----------
    map_file
        Candidate strings and the bits that they set (map.csv).
    counts_file
        Number of reports and of set bits per cohort (counts.csv).
    params_file
        Parameters k, h, m, p, q and f (params.csv).
    output_dir
        Folder for results.csv and metrics.json, created if necessary; by default the current
        folder.
    correction
        What --alpha bounds: the probability of any false detection (bonferroni), the expected
        share of false detections (FDR), or the probability of a false detection per string (None).

    Examples
    --------
    deniable rappor decode-dist --map map.csv --counts counts.csv --params params.csv
    """
    from deniable.rappor.analysis import decode_dist as decode
    from deniable.rappor.files import write_metrics, write_results

    rows, metrics = decode(**input_files, alpha=alpha, correction=CORRECTIONS[correction.lower()])
    output_dir.mkdir(parents=True, exist_ok=True)
    write_results(output_dir / "results.csv", rows)
    write_metrics(output_dir / "metrics.json", metrics)
    found = counted(len(rows), "string")
    text = f"{found} detected, written to {output_dir / 'results.csv'}"
    print_outcome(asdict(metrics), text, as_json)


@command("decode-assoc", make=rappor.command)
@option("--metric-name", required=True)
@input_file("--schema", required=True)
@input_file("--reports", required=True)
@option("--params-dir", type=EXISTING_FOLDER, default=Path(), show_default=False)
@option("--var1", required=True)
@input_file("--map1")
@option("--var2", required=True)
@input_file("--map2")
@option("--top", type=POSITIVE_INT, default=10, metavar="COUNT")
@alpha_option
@output_folder
@json_option("the table and its test")
def decode_assoc(
    var1: str,
    map1: Path | None,
    var2: str,
    map2: Path | None,
    top: int,
    alpha: float,
    output_dir: Path,
    as_json: bool,
    **source: Any,
) -> None:
    r"""Estimate the joint distribution of two variables.

    Each variable is a string or a boolean with its own parameters.

    Parameters
    ----------
    metric_name
        Metric of the schema that both variables belong to.
    schema
        Types and parameter files of all variables: metric,var,var_type,params.
    reports
        Reports of both variables: client,cohort,VAR1,VAR2.
    params_dir
        Folder of the parameter files that the schema names; by default the current folder.
    var1
        Name of the first variable in the schema.
    map1
        Map of the first variable. Required if it is a string.
    var2
        Name of the second variable in the schema.
    map2
        Map of the second variable. Required if it is a string.
    top
        Number of most common strings per variable that get a category; all other strings are
        counted as (other).
    output_dir
        Folder for assoc-results.csv, created if necessary; by default the current folder.

    Examples
    --------
    deniable rappor decode-assoc --metric-name m --schema schema.csv --reports reports.csv \
        --var1 domain --map1 map.csv --var2 https
    """
    from deniable.rappor.analysis import AssocSource
    from deniable.rappor.analysis import decode_assoc as decode
    from deniable.rappor.files import write_assoc_results

    maps = [(var1, map1), (var2, map2)]
    with progress_bars():
        joint = decode(AssocSource(**source), maps, top=top, alpha=alpha)
    output_dir.mkdir(parents=True, exist_ok=True)
    path = output_dir / "assoc-results.csv"
    write_assoc_results(path, joint.questions, joint.labels, joint.table)
    test = joint.test()
    result = {
        "file": str(path),
        "reports": joint.reports,
        "gap_nats": joint.gap_nats,
        "statistic": test.statistic,
        "degrees_of_freedom": test.degrees_of_freedom,
        "p_value": test.p_value,
    }
    text = (
        f"{joint}\n\nTest of independence: score statistic {test.statistic:.2f}, "
        f"{test.degrees_of_freedom} degrees of freedom, {p_phrase(test.p_value)}\nwritten to {path}"
    )
    print_outcome(result, text, as_json)


@command("cliques", make=rappor.command, short_help="Find the strings in a graph of n-grams.")
@click.argument("file", type=EXISTING_FILE)
@option("--most", type=POSITIVE_INT, default=100_000, metavar="COUNT")
@option("--seconds", type=Number(min=0), metavar="SECONDS")
@json_option("the strings")
def cliques(file: Path, most: int, seconds: float | None, as_json: bool) -> None:
    """Print the candidate strings in FILE, a graph of n-grams that google/rappor wrote.

    A candidate is a clique of the graph, with one n-gram for each position of the string.

    Parameters
    ----------
    most
        Stop after this number of strings.
    seconds
        Stop after this number of seconds, so that the result depends on the machine. By default the
        search stops after about 10⁹ steps instead.

    Examples
    --------
    deniable rappor cliques graph.txt
    """
    from deniable.rappor.gram_graph import graph_strings, read_graph

    strings, cut = graph_strings(read_graph(file), most=most, seconds=seconds)
    if cut:
        echo(f"The search stopped early: {cut}", err=True)
    print_outcome({"cliques": strings, "cut": cut}, "\n".join(strings), as_json)
