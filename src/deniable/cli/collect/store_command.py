"""`deniable store`: what is in a store, is it sound, copy it, delete from it."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import click

from deniable.cli import options
from deniable.cli.documented import command
from deniable.cli.output import say
from deniable.cli.surveys import survey_in


@command(make=click.group, note=options.STORES)
def store() -> None:
    """Look after a store.

    Examples
    --------
    deniable store status reports.db
    """


@command(make=store.command)
@click.argument("store")
@options.flag("--json", "as_json")
def status(store: str, as_json: bool) -> None:
    """Say which surveys STORE has, and how many reports of which days.

    Parameters
    ----------
    as_json : Print it as JSON, with every day.

    Examples
    --------
    deniable store status reports.db
    """
    import deniable.store

    with deniable.store.open(store) as opened:
        known = [(survey, opened.days(survey)) for survey in opened.surveys()]
        url, room = opened.url, opened.room()
    surveys: list[dict[str, Any]] = [
        {
            "name": survey.name,
            "version": survey.version,
            "digest": survey.digest.hex(),
            "reports": sum(days.values()),
            "days": {str(day): count for day, count in days.items()},
        }
        for survey, days in known
    ]
    lines = [
        f"{s['name']} v{s['version']}: {s['reports']:,} reports"
        + (f", {len(s['days'])} days, {min(s['days'])} to {max(s['days'])}" if s["days"] else "")
        for s in surveys
    ]
    left = "" if room is None else f"{room / 1e9:,.1f} GB left on its disk"
    text = "\n".join([url, *lines, *([left] if left else [])])
    say({"store": url, "surveys": surveys, "room": room}, text, as_json)


@command(make=store.command)
@click.argument("store")
@options.json_option("the findings")
@click.pass_context
def check(ctx: click.Context, store: str, as_json: bool) -> None:
    """Read everything in STORE and say what is wrong; exit code 1 if anything is.

    Examples
    --------
    deniable store check reports.db
    """
    import deniable.store

    with deniable.store.open(store) as opened:
        problems = opened.check()
    say({"problems": problems}, "\n".join(problems) or "all is well", as_json)
    ctx.exit(1 if problems else 0)


@command(make=store.command)
@click.argument("store")
@click.argument("to")
@options.json_option("what was done")
def backup(store: str, to: str, as_json: bool) -> None:
    """Copy STORE as it is at one moment to a new store TO; a collector may go on meanwhile.

    A database is copied to FILE.db or postgresql://…, also from one kind to the other; a folder to
    a folder.

    Examples
    --------
    deniable store backup reports.db 2025-03-09.db
    """
    import deniable.store

    with deniable.store.open(store) as opened:
        opened.backup(to)
    say({"store": opened.url, "to": to}, f"{opened.url} copied to {to}", as_json)


@command(make=store.command)
@click.argument("store")
@click.argument("survey")
@options.option("--before", type=options.DAY)
@options.option("--older-than", type=click.IntRange(0), metavar="DAYS")
@options.json_option("what was done")
@click.confirmation_option(prompt="Delete these reports for good?")
def delete(
    store: str, survey: str, before: date | None, older_than: int | None, as_json: bool
) -> None:
    """Delete the reports of SURVEY (NAME or NAME@VERSION) from STORE for good.

    Parameters
    ----------
    before : Only the days before this one, YYYY-MM-DD.
    older_than : Only older days.

    Examples
    --------
    deniable store delete reports.db homepages --older-than 90
    """
    import deniable.store

    if before is not None and older_than is not None:
        raise click.UsageError("give --before or --older-than, not both")
    if older_than is not None:
        before = datetime.now(UTC).date() - timedelta(days=older_than)
    with deniable.store.open(store) as opened:
        wanted = survey_in(opened, survey)
        deleted = opened.delete(wanted, before=before)
    say(
        {"deleted": deleted, "survey": wanted.name, "version": wanted.version},
        f"{deleted:,} reports of {wanted.name} v{wanted.version} deleted",
        as_json,
    )
