"""`deniable export`: reports out of a store, into a file."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import click

from deniable.cli.collect.store_options import DAY, STORES, chosen
from deniable.cli.output import OutputPath, say
from deniable.errors import InputError


@click.command(
    short_help="Write a survey's reports in a store to a file.",
    epilog="Example: deniable export reports.db homepages march.parquet --since 2025-03-01 "
    "--until 2025-03-31",
    help=f"Write the reports of SURVEY (NAME or NAME@VERSION) in STORE to FILE.\n\n{STORES}",
)
@click.argument("store")
@click.argument("survey")
@click.argument("file", type=OutputPath((".parquet", ".arrow", ".dn")))
@click.option("--since", type=DAY, help="First day, YYYY-MM-DD.")
@click.option("--until", type=DAY, help="Last day, included.")
@click.option("--json", "as_json", is_flag=True, help="Print what was done as JSON.")
def export(
    store: str, survey: str, file: Path, since: date | None, until: date | None, as_json: bool
) -> None:
    import deniable.store
    from deniable.columns import write

    with deniable.store.open(store) as opened:
        wanted = chosen(opened, survey)
        snapshot = opened.snapshot(wanted, since=since, until=until)
        if not len(snapshot):
            raise InputError(f"{opened.url} has no reports of {wanted!r} in these days")
        reports = write(file, snapshot.batches())
    say(
        {"reports": reports, "survey": wanted.name, "version": wanted.version, "file": str(file)},
        f"{reports:,} reports of {wanted.name} v{wanted.version}: {file}",
        as_json,
    )
