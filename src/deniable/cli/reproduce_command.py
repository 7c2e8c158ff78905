"""`deniable reproduce`: the paper's tables and figures next to ours."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from deniable.cli import options
from deniable.cli.options import command
from deniable.cli.output import console, echo, echo_json, progress_bars
from deniable.reproduction import PAPER


@command()
@click.argument(
    "names", nargs=-1, required=True, metavar="NAME...", type=click.Choice([*PAPER, "all"])
)
@options.flag("--quick")
@options.option("--seed", type=options.WholeNumber(0), metavar="NUMBER")
@options.option("-o", "--output", "folder", type=options.FOLDER, metavar="FOLDER")
@options.json_option("the comparison")
def reproduce(
    names: tuple[str, ...], quick: bool, seed: int | None, folder: Path | None, as_json: bool
) -> None:
    """Run the experiments of the paper, and compare every number that it prints with ours.

    The paper is "Building a RAPPOR with the Unknown" (Fanti, Pihur and Erlingsson, 2016).

    NAME is all or one of these experiments. Two questions: tables (Tables I and II), other (with
    and without a category for other strings), playstore (categories of apps), independence (test of
    independence, Appendix A). Unknown strings: hashes (random strings), urls (domains), length (of
    strings and n-grams), complexity (computing time), threshold (of pairs of n-grams),
    distributions (Appendix B).

    A number of the paper agrees if it lies in the range that our crowds predict for it with a
    probability of 95%; this needs two crowds or more. Otherwise the verdict says by how much it
    differs, and why.

    Parameters
    ----------
    quick
        Run few trials, less than a minute per experiment, to see how it works.
    seed
        Use this seed instead of the one of our published results.
    folder
        Write data (NAME.json) and figures (NAME.png) to FOLDER.

    Examples
    --------
    deniable reproduce tables
    deniable reproduce urls --quick -o paper
    deniable reproduce all -o paper
    """
    from deniable.reproduction import runner

    if folder is not None:  # what is missing should be known before experiments that take hours
        import matplotlib  # noqa: F401

        folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for name in PAPER if "all" in names else dict.fromkeys(names):
        with progress_bars():
            record = runner.reproduce(name, quick=quick, seed=seed)
        rows += [{"experiment": name, **asdict(c)} for c in record.comparisons]
        if not as_json:
            console().print(f"\n[bold]{name}[/bold]: {PAPER[name]}")
            console().print(f"seed {record.seed}, {record.seconds:.0f} s\n", style="dim")
            echo(record.table())
        if folder is not None:
            data, figure = runner.write(record, folder)
            echo(f"Wrote {data} and {figure}.", err=True)
    if as_json:
        echo_json(json.dumps(rows, indent=1))
