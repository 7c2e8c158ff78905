"""`deniable report`: results as one HTML file that needs nothing else."""

from __future__ import annotations

from pathlib import Path

import click

from deniable.cli.output import OutputPath, say

EXAMPLE = """\b
Example:
  deniable report --survey survey.toml browser.json browser-ads.json pages.json -o report.html
"""


@click.command(epilog=EXAMPLE, short_help="Make one self-contained HTML page from results.")
@click.argument(
    "results", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False)
)  # fmt: skip
@click.option(
    "--survey", "survey_file", type=click.Path(exists=True, dir_okay=False),
    help="The survey they answer: adds what was asked, the ε spent and how far malicious clients "
    "reach.",
)  # fmt: skip
@click.option("--title", help="The page's title; the survey's name if there is none.")
@click.option("-o", "--output", required=True, type=OutputPath((".html",)), help="The page.")
@click.option("--json", "as_json", is_flag=True, help="Print what was done as JSON.")
def report(
    results: tuple[str, ...], survey_file: str | None, title: str | None, output: Path,
    as_json: bool,
) -> None:  # fmt: skip
    """Make one self-contained HTML page from saved results (JSON)."""
    from deniable.render.html import report as page
    from deniable.results import Result
    from deniable.survey import Survey

    found = [Result.from_json(Path(path).read_text(encoding="utf-8")) for path in results]
    survey = Survey.load(survey_file) if survey_file else None
    output.write_text(page(found, survey=survey, title=title), encoding="utf-8")
    say(
        {"results": len(found), "bytes": output.stat().st_size, "file": str(output)},
        f"{len(found)} results, {output.stat().st_size:,} bytes: {output}",
        as_json,
    )
