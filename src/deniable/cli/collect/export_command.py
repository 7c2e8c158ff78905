"""`deniable export`: reports out of a store, into a file."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import click

from deniable.cli import options
from deniable.cli.documented import command
from deniable.cli.output import say
from deniable.cli.surveys import survey_in
from deniable.errors import InputError


@command(short_help="Write a survey's reports in a store to a file.", note=options.STORES)
@click.argument("store")
@click.argument("survey")
@click.argument("file", type=options.OutputPath(*options.REPORT_FILES))
@options.option("--since", type=options.DAY)
@options.option("--until", type=options.DAY)
@options.json_option("what was done")
def export(
    store: str, survey: str, file: Path, since: date | None, until: date | None, as_json: bool
) -> None:
    """Write the reports of SURVEY (NAME or NAME@VERSION) in STORE to FILE.

    Parameters
    ----------
    since : First day, YYYY-MM-DD.
    until : Last day, included.

    Examples
    --------
    deniable export reports.db homepages march.parquet --since 2025-03-01 --until 2025-03-31
    """
    import deniable.store
    from deniable.columns import write

    with deniable.store.open(store) as opened:
        wanted = survey_in(opened, survey)
        snapshot = opened.snapshot(wanted, since=since, until=until)
        if not len(snapshot):
            raise InputError(f"{opened.url} has no reports of {wanted!r} in these days")
        reports = write(file, snapshot.batches())
    say(
        {"reports": reports, "survey": wanted.name, "version": wanted.version, "file": str(file)},
        f"{reports:,} reports of {wanted.name} v{wanted.version}: {file}",
        as_json,
    )
