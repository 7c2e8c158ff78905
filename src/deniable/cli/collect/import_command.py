"""`deniable import`: reports out of files or another store, into a store."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path

import click

from deniable.cli import options
from deniable.cli.documented import command
from deniable.cli.output import say


@command(
    "import", short_help="Add reports in files or other stores to a store.", note=options.STORES
)
@click.argument("store")
@click.argument("files", nargs=-1, required=True)
@options.option("--day", type=options.DAY)
@options.option("--survey", "survey_file", type=options.EXISTING_FILE)
@options.json_option("what was done")
def import_(
    store: str, files: tuple[str, ...], day: date | None, survey_file: Path | None, as_json: bool
) -> None:
    """Add the reports in FILES (.parquet, .arrow, .dn, or other stores) to STORE, which is made
    if it is not there. A file counts once, however often it is imported, while its keys
    are remembered.

    Parameters
    ----------
    day : The day that reports in files count for; else today.
    survey_file : The survey that .dn files answer; others carry theirs.

    Examples
    --------
    deniable import reports.db march.parquet --day 2025-03-31
    """
    import deniable.store
    from deniable.store.bulk import import_file, import_store
    from deniable.survey import Survey

    survey = Survey.load(survey_file) if survey_file else None
    day = day or datetime.now(UTC).date()
    read = new = 0
    with deniable.store.open(store, create=True) as opened:
        for file in files:
            if deniable.store.is_url(file):
                with deniable.store.open(file) as source:
                    counts = import_store(opened, source)
            else:
                counts = import_file(opened, file, day, survey)
            read, new = read + counts[0], new + counts[1]
    say(
        {"reports": read, "new": new, "store": opened.url},
        f"{read:,} reports read, {new:,} of them new: {opened.url}",
        as_json,
    )
