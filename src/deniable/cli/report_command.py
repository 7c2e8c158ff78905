"""`deniable report`: saved results as one self-contained HTML page."""

from __future__ import annotations

from pathlib import Path

import click

from deniable.cli import options
from deniable.cli.inputs import read_result
from deniable.cli.options import command
from deniable.cli.output import print_outcome
from deniable.formatting import counted
from deniable.survey import Survey


@command()
@click.argument("results", nargs=-1, required=True, type=options.EXISTING_FILE)
@options.option("--survey", "survey_file", type=options.EXISTING_FILE, metavar="FILE")
@options.option("--title")
@options.option("-o", "--output", required=True, type=options.OutputPath(".html"), metavar="FILE")
@options.json_option("the outcome")
def report(
    results: tuple[Path, ...],
    survey_file: Path | None,
    title: str | None,
    output: Path,
    as_json: bool,
) -> None:
    """Make one self-contained HTML page from saved results (JSON files).

    Parameters
    ----------
    survey_file
        Survey that the reports answer. Adds its description, the privacy loss per question, and how
        many malicious clients could change a result.
    title
        Title of the page; by default it names the survey.
    output
        Write the page to FILE, which must end in .html.

    Examples
    --------
    deniable report --survey survey.toml browser.json browser-ads.json pages.json -o report.html
    """
    from deniable.render.html import report as make_page

    loaded = [read_result(path) for path in results]
    survey = Survey.load(survey_file) if survey_file else None
    output.write_text(make_page(loaded, survey=survey, title=title), encoding="utf-8")
    size = output.stat().st_size
    print_outcome(
        {"results": len(loaded), "bytes": size, "file": str(output)},
        f"Wrote {counted(len(loaded), 'result')} to {output}, {size:,} bytes.",
        as_json,
    )
