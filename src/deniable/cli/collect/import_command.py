"""`deniable import`: reports out of files or another store, into a store."""

from __future__ import annotations

from datetime import UTC, date, datetime

import click

from deniable.cli.collect.store_options import DAY, STORES
from deniable.cli.output import say


@click.command(
    "import",
    short_help="Add reports in files or other stores to a store.",
    epilog="Example: deniable import reports.db march.parquet --day 2025-03-31",
    help="Add the reports in FILES (.parquet, .arrow, .dn, or other stores) to STORE, which is "
    "made if it is not there. A file counts once, however often it is imported, while its keys are "
    f"remembered.\n\n{STORES}",
)
@click.argument("store")
@click.argument("files", nargs=-1, required=True)
@click.option("--day", type=DAY, help="The day that reports in files count for; else today.")
@click.option(
    "--survey", "survey_file", type=click.Path(exists=True, dir_okay=False),
    help="The survey that .dn files answer; others carry theirs.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print what was done as JSON.")
def import_(
    store: str, files: tuple[str, ...], day: date | None, survey_file: str | None, as_json: bool
) -> None:
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
