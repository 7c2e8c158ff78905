"""`deniable rappor`: google/rappor's commands on google/rappor's files."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from deniable.cli.options import alpha_option
from deniable.cli.output import print_outcome

if TYPE_CHECKING:
    from deniable.inference.marginal.detection import Correction

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
CORRECTIONS: dict[str, Correction] = {"fdr": "fdr", "bonferroni": "bonferroni", "none": None}


@click.group(epilog="Example: deniable rappor cliques graph.txt")
def rappor() -> None:
    """Analyse google/rappor's files, and write ones that it reads."""


@rappor.command(
    "decode-dist",
    epilog="Example: deniable rappor decode-dist --map map.csv --counts counts.csv "
    "--params params.csv --output-dir out",
)
@click.option("--map", "map_file", type=FILE, required=True, help="Candidates and their bits.")
@click.option("--counts", "counts_file", type=FILE, required=True, help="Bit counts per cohort.")
@click.option("--params", "params_file", type=FILE, required=True, help="k, h, m, p, q, f.")
@click.option("--output-dir", type=FOLDER, default=Path(), help="For results.csv, metrics.json.")
@alpha_option
@click.option(
    "--correction",
    type=click.Choice(["FDR", "bonferroni", "None"], case_sensitive=False),
    default="bonferroni",
    show_default=True,
    help="Over all strings, for each, or of those found.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the metrics as JSON.")
def decode_dist(
    output_dir: Path, alpha: float, correction: str, as_json: bool, **input_files: Path
) -> None:
    """Estimate how common each string of a map is."""
    from deniable.rappor.analysis import decode_dist as decode
    from deniable.rappor.files import write_metrics, write_results

    rows, metrics = decode(**input_files, alpha=alpha, correction=CORRECTIONS[correction.lower()])
    write_results(output_dir / "results.csv", rows)
    write_metrics(output_dir / "metrics.json", metrics)
    text = f"{len(rows)} strings detected, written to {output_dir / 'results.csv'}"
    print_outcome(asdict(metrics), text, as_json)


@rappor.command(
    "decode-assoc",
    epilog="Example: deniable rappor decode-assoc --metric-name m --schema schema.csv "
    "--reports reports.csv --params-dir . --var1 domain --map1 map.csv --var2 https "
    "--output-dir out",
)
@click.option("--metric-name", required=True, help="Which metric of the schema.")
@click.option("--schema", type=FILE, required=True, help="metric,var,var_type,params.")
@click.option("--reports", type=FILE, required=True, help="client,cohort,<var1>,<var2>.")
@click.option("--params-dir", type=FOLDER, default=Path(), help="Where <params>.csv are.")
@click.option("--var1", required=True, help="The first variable of the schema.")
@click.option("--map1", type=FILE, help="Map of var1, if it is a string.")
@click.option("--var2", required=True, help="The second variable.")
@click.option("--map2", type=FILE, help="Map of var2, if it is a string.")
@click.option(
    "--top",
    type=click.IntRange(1),
    default=10,
    show_default=True,
    help="Strings of each variable that get a category; the rest is Other.",
)
@alpha_option
@click.option("--output-dir", type=FOLDER, default=Path(), help="For assoc-results.csv.")
@click.option("--json", "as_json", is_flag=True, help="Print the table and its test as JSON.")
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
    """Estimate how two variables go together: strings or booleans, each with its own parameters."""
    from deniable.rappor.analysis import AssocSource
    from deniable.rappor.analysis import decode_assoc as decode
    from deniable.rappor.files import write_assoc_results

    joint = decode(AssocSource(**source), [(var1, map1), (var2, map2)], top=top, alpha=alpha)
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
        f"{joint}\n\nindependence: score statistic {test.statistic:.2f}, "
        f"{test.degrees_of_freedom} degrees of freedom, p = {test.p_value:.3g}\nwritten to {path}"
    )
    print_outcome(result, text, as_json)


@rappor.command("cliques", epilog="Example: deniable rappor cliques graph.txt")
@click.argument("file", type=FILE)
@click.option(
    "--most",
    type=click.IntRange(1),
    default=100_000,
    show_default=True,
    help="Stop after this many.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0),
    default=60.0,
    show_default=True,
    help="Stop after this long.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the strings as JSON.")
def cliques(file: Path, most: int, seconds: float, as_json: bool) -> None:
    """Print the candidate strings of a graph of n-grams: its cliques, one gram from each part."""
    from deniable.rappor.files import read_graph
    from deniable.rappor.gram_graph import graph_strings

    strings, cut = graph_strings(read_graph(file), most=most, seconds=seconds)
    if cut:
        click.echo(f"cut short: {cut}", err=True)
    print_outcome({"cliques": strings, "cut": cut}, "\n".join(strings), as_json)
