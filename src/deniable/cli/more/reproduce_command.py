"""`deniable reproduce`: the paper's tables and figures, beside ours."""

from __future__ import annotations

import json
from pathlib import Path

import click

from deniable.cli import options
from deniable.cli.documented import command
from deniable.cli.progress_bars import bars
from deniable.cli.tables import console
from deniable.reproduction import PAPER

NAMES = click.Choice([*PAPER, "all"])


@command(short_help="Make the paper's tables and figures, beside ours.")
@click.argument("names", nargs=-1, required=True, metavar="NAME...", type=NAMES)
@options.flag("--quick")
@options.option("--seed", type=click.IntRange(0))
@options.option("-o", "--output", "folder", type=options.FOLDER)
@options.json_option()
def reproduce(
    names: tuple[str, ...], quick: bool, seed: int | None, folder: Path | None, as_json: bool
) -> None:
    """Run the paper's experiments and put every printed number beside ours.

    NAME is tables, other, playstore, independence, hashes, urls, length, threshold, distributions,
    or all. A number agrees if it lies among those of our trials, or within two of their standard
    deviations.

    Parameters
    ----------
    quick : Few trials, under a minute each, to see it run.
    seed : Another seed than the published one.
    folder : A folder for data (NAME.json) and figures (NAME.png).

    Examples
    --------
    deniable reproduce tables
    deniable reproduce urls --quick -o paper
    deniable reproduce all -o paper
    """
    from dataclasses import asdict

    from deniable.reproduction import runner

    chosen = list(PAPER) if "all" in names else list(dict.fromkeys(names))
    rows = []
    for name in chosen:
        with bars():
            record = runner.reproduce(name, quick=quick, seed=seed)
        rows += [{"experiment": name, **asdict(c)} for c in record.comparisons]
        if not as_json:
            console().print(f"\n[bold]{name}[/bold]: {PAPER[name]}")
            console().print(f"seed {record.seed}, {record.seconds:.0f} s\n", style="dim")
            click.echo(record.table())
        if folder is not None:
            data, picture = runner.write(record, folder)
            click.echo(f"written: {data} and {picture}", err=True)
    if as_json:
        click.echo(json.dumps(rows, indent=1))
