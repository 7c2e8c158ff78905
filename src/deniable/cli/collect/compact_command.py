"""`deniable compact`: uploads become shuffled segments, and old keys are forgotten."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime, timedelta

import click

from deniable.cli.collect.store_options import STORES
from deniable.cli.output import say


@click.command(
    short_help="Shuffle uploads, so that nothing says which came together.",
    epilog="Example: deniable compact reports.db --at-least 5000",
    help="Shuffle the uploads in STORE into segments, so that nothing says which reports came "
    f"together; a collector may go on meanwhile.\n\n{STORES}",
)
@click.argument("store")
@click.option(
    "--at-least", type=click.IntRange(1), default=1000, show_default=True,
    help="An upload waits until so many reports of others are shuffled with it.",
)  # fmt: skip
@click.option(
    "--keep-keys", type=click.IntRange(1), default=7, show_default=True, metavar="DAYS",
    help="Forget the idempotency keys of uploads before so many days.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print what was done as JSON.")
def compact(store: str, at_least: int, keep_keys: int, as_json: bool) -> None:
    import deniable.store

    with deniable.store.open(store) as opened:
        done = opened.compact(at_least=at_least)
        forgotten = opened.forget(datetime.now(UTC).date() - timedelta(days=keep_keys))
    say(
        {**asdict(done), "keys_forgotten": forgotten},
        f"{done.reports:,} reports compacted into {done.segments} segments, {done.waiting:,} wait "
        f"for company; {forgotten:,} keys forgotten",
        as_json,
    )
