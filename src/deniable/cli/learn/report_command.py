"""`deniable report`: results as one HTML file that needs nothing else."""

from __future__ import annotations

from pathlib import Path

import click

from deniable.cli import options
from deniable.cli.documented import command
from deniable.cli.output import say


@command(short_help="Make one self-contained HTML page from results.")
@click.argument("results", nargs=-1, required=True, type=options.EXISTING_FILE)
@options.option("--survey", type=options.EXISTING_FILE)
@options.option("--title")
@options.option("-o", "--output", required=True, type=options.OutputPath(".html"))
@options.json_option("what was done")
def report(
    results: tuple[Path, ...], survey: Path | None, title: str | None, output: Path, as_json: bool
) -> None:
    """Make one self-contained HTML page from saved results (JSON).

    Parameters
    ----------
    survey : The survey they answer: adds what was asked, the ε spent and how far malicious clients
        reach.
    title : The page's title; the survey's name if there is none.
    output : The page.

    Examples
    --------
    deniable report --survey survey.toml browser.json browser-ads.json pages.json -o report.html
    """
    from deniable.render.html import report as page
    from deniable.results import Result
    from deniable.survey import Survey

    read = [Result.from_json(path.read_text(encoding="utf-8")) for path in results]
    asked = Survey.load(survey) if survey else None
    output.write_text(page(read, survey=asked, title=title), encoding="utf-8")
    size = output.stat().st_size
    say(
        {"results": len(read), "bytes": size, "file": str(output)},
        f"{len(read)} results, {size:,} bytes: {output}",
        as_json,
    )
