"""`deniable compact`: uploads become shuffled segments, and old keys are forgotten."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime, timedelta

import click

from deniable.cli import options
from deniable.cli.documented import command
from deniable.cli.output import say


@command(
    short_help="Shuffle uploads, so that nothing says which came together.", note=options.STORES
)
@click.argument("store")
@options.option("--at-least", type=options.AT_LEAST_ONE, default=1000)
@options.option("--keep-keys", type=options.AT_LEAST_ONE, default=7, metavar="DAYS")
@options.json_option("what was done")
def compact(store: str, at_least: int, keep_keys: int, as_json: bool) -> None:
    """Shuffle the uploads in STORE into segments, so that nothing says which reports came
    together; a collector may go on meanwhile.

    Parameters
    ----------
    at_least : An upload waits until so many reports of others are shuffled with it.
    keep_keys : Forget the idempotency keys of uploads before so many days.

    Examples
    --------
    deniable compact reports.db --at-least 5000
    """
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
