"""`deniable store`, `import`, `export` and `compact`: reports in a store."""

from __future__ import annotations

from dataclasses import asdict
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import click

import deniable.store
from deniable.cli import options
from deniable.cli.inputs import survey_in
from deniable.cli.options import command
from deniable.cli.output import echo, print_outcome
from deniable.collector.settings import MIN_KEY_DAYS, check_key_days
from deniable.errors import InputError, StoreError
from deniable.formatting import counted
from deniable.observers import amplified
from deniable.store import Store, calendar
from deniable.survey import Survey


def _days_before(day: date, days: int) -> date:
    return day - timedelta(days=min(days, (day - date.min).days))


def _warnings(opened: Store) -> list[str]:
    """Return what the operator of a store should know: about its clock, and about damage."""
    clock = opened.calendar().warning(calendar.today())
    return [*([clock] if clock else []), *opened.damage()]


@command(make=options.new_group)
def store() -> None:
    """Inspect, check, copy and clean up a store of reports.

    Examples
    --------
    deniable store status reports.db
    """


@command(make=store.command, note=options.STORES, short_help="List surveys, reports and days.")
@click.argument("store")
@options.flag("--json", "as_json")
def status(store: str, as_json: bool) -> None:
    """List the surveys in STORE, with the number of reports and the days they cover.

    Parameters
    ----------
    as_json
        Print the list as JSON, with the number of reports per day.

    Examples
    --------
    deniable store status reports.db
    """
    with deniable.store.open(store) as opened:
        known = [(s, opened.days(s), opened.waiting(s)) for s in opened.surveys()]
        url, room, warnings = opened.url, opened.room(), _warnings(opened)
    surveys: list[dict[str, Any]] = [
        {
            "name": survey.name,
            "version": survey.version,
            "digest": survey.digest.hex(),
            "reports": sum(days.values()),
            "waiting": waiting,
            "days": {str(day): count for day, count in days.items()},
        }
        for survey, days, waiting in known
    ]
    lines = [url]
    for s in surveys:
        days = s["days"]
        period = f", {counted(len(days), 'day')}, {min(days)} to {max(days)}" if days else ""
        period = f", {min(days)}" if len(days) == 1 else period
        waiting = f"; {s['waiting']:,} not yet shuffled" if s["waiting"] else ""
        reports = counted(s["reports"], "report")
        lines.append(f"{s['name']} v{s['version']}: {reports}{period}{waiting}")
    if room is not None:
        lines.append(f"free disk space: {room / 1e9:,.1f} GB")
    lines += [f"Warning: {warning}" for warning in warnings]
    data = {"store": url, "surveys": surveys, "room": room, "warnings": warnings}
    print_outcome(data, "\n".join(lines), as_json)


@command(make=store.command, note=options.STORES, short_help="List what is damaged or missing.")
@click.argument("store")
@options.json_option("the problems")
@click.pass_context
def check(ctx: click.Context, store: str, as_json: bool) -> None:
    """Read everything in STORE and list what is damaged or missing.

    The exit code is 1 if there are problems.

    Examples
    --------
    deniable store check reports.db
    """
    with deniable.store.open(store) as opened:
        problems = opened.check()
    text = "\n".join(problems) or "No problems found."
    print_outcome({"problems": problems}, text, as_json)
    ctx.exit(1 if problems else 0)


@command(make=store.command, note=options.STORES, short_help="Copy a store to a new store.")
@click.argument("store")
@click.argument("to")
@options.json_option("the outcome")
def backup(store: str, to: str, as_json: bool) -> None:
    """Copy STORE, as it is at one moment, to a new store TO.

    A collector may keep running meanwhile. A database is copied to FILE.db or postgresql://…, also
    from one kind to the other; a folder is copied to a folder.

    Examples
    --------
    deniable store backup reports.db 2025-03-09.db
    """
    with deniable.store.open(store) as opened:
        opened.backup(to)
    print_outcome({"store": opened.url, "to": to}, f"Copied {opened.url} to {to}.", as_json)


@command(make=store.command, note=options.STORES, short_help="Delete the reports of a survey.")
@click.argument("store")
@click.argument("survey")
@options.day_option("--before")
@options.option("--older-than", type=options.WholeNumber(0), metavar="DAYS")
@options.json_option("the outcome")
@options.flag("--yes")
def delete(
    store: str, survey: str, before: date | None, older_than: int | None, as_json: bool, yes: bool
) -> None:
    """Permanently delete the reports of SURVEY (NAME or NAME@VERSION) from STORE.

    Parameters
    ----------
    before
        Delete only reports received before this day.
    older_than
        Delete only reports older than this many days. Refused if the clock has jumped since
        the store was used last (see deniable store accept).
    yes
        Delete without asking for confirmation.

    Examples
    --------
    deniable store delete reports.db homepages --older-than 90
    """
    if before is not None and older_than is not None:
        raise click.UsageError("give --before or --older-than, not both")
    with deniable.store.open(store) as opened:
        if older_than is not None:
            before = _days_before(_trusted_day(opened), older_than)
        wanted = survey_in(opened, survey)
        days = {d: n for d, n in opened.days(wanted).items() if before is None or d < before}
        if days and not yes:
            what = f"{counted(sum(days.values()), 'report')} of {wanted.name} v{wanted.version}"
            period = f"on {min(days)}" if len(days) == 1 else f"from {min(days)} to {max(days)}"
            click.confirm(f"Permanently delete {what}, received {period}?", abort=True, err=as_json)
        deleted = opened.delete(wanted, before=before)
    print_outcome(
        {"deleted": deleted, "survey": wanted.name, "version": wanted.version},
        f"Deleted {counted(deleted, 'report')} of {wanted.name} v{wanted.version}.",
        as_json,
    )


def _trusted_day(opened: Store) -> date:
    """Return the current day; raise StoreError if the clock is not to be trusted."""
    seen = opened.observe_day()
    if warning := seen.warning(calendar.today()):
        raise StoreError(f"nothing was deleted: {warning}, or give --before")
    return seen.latest


@command(
    make=store.command,
    note=options.STORES,
    short_help="Accept a clock change, recorded damage or a stale lock.",
)
@click.argument("store")
@options.flag("--clock")
@options.flag("--damage")
@options.flag("--lock")
@options.flag("--yes")
@options.json_option("the outcome")
def accept(store: str, clock: bool, damage: bool, lock: bool, yes: bool, as_json: bool) -> None:
    """Accept a clock change, recorded damage or a stale lock of STORE.

    A store does not trust a clock that is suddenly days ahead or behind: it would delete reports
    and forget idempotency keys too early. It trusts the clock by itself once it has been used
    on seven later days. If the clock is right, for instance because the machine was switched off,
    accept it at once.

    Parameters
    ----------
    clock
        Trust the clock, whatever day it shows.
    damage
        Delete damaged uploads that were set aside, and end the messages about lost ones.
    lock
        Remove the lock that a process left in a remote folder when it was killed. Be sure that no
        process writes to the folder.
    yes
        Delete damaged uploads without asking for confirmation.

    Examples
    --------
    deniable store accept reports.db --clock
    """
    if not (clock or damage or lock):
        raise click.UsageError("give --clock, --damage or --lock")
    lines: list[str] = []
    data: dict[str, object] = {"store": store}
    with deniable.store.open(store) as opened:
        if lock:
            data["lock_removed"] = opened.unlock()
            lines.append("Removed the lock." if data["lock_removed"] else "There was no lock.")
        if damage:
            if (known := opened.damage()) and not yes:
                echo("\n".join(known), err=as_json)
                what = counted(len(known), "problem")
                click.confirm(
                    f"Accept {what}, and delete damaged uploads?", abort=True, err=as_json
                )
            accepted = opened.accept_damage()
            data |= {"problems_accepted": len(accepted), "damage": accepted}
            lines += [*(accepted if yes else ()), f"Accepted {counted(len(accepted), 'problem')}."]
        if clock:
            data["latest_day"] = str(opened.accept_clock().latest)
            lines.append(f"The latest day of the store is {data['latest_day']}.")
    print_outcome(data, "\n".join(lines), as_json)


@command("import", note=options.STORES)
@click.argument("store")
@click.argument("files", nargs=-1, required=True)
@options.day_option("--day")
@options.option("--survey", "survey_file", type=options.EXISTING_FILE, metavar="FILE")
@options.json_option("the outcome")
def import_(
    store: str, files: tuple[str, ...], day: date | None, survey_file: Path | None, as_json: bool
) -> None:
    """Add the reports in FILES (.parquet, .arrow, .dn, or other stores) to STORE.

    The store is created if it does not exist. A file that is imported twice is counted once, as
    long as the store has the idempotency keys of the first import (see deniable compact
    --keep-keys).

    Parameters
    ----------
    day
        Day on which the reports in the files were received; by default today. Reports of other
        stores keep their days.
    survey_file
        Survey of .dn files; other files contain theirs.

    Examples
    --------
    deniable import reports.db march.parquet --day 2025-03-31
    """
    from deniable.store.bulk import import_file, import_store

    survey = Survey.load(survey_file) if survey_file else None
    if day and (named := [file for file in files if deniable.store.is_url(file)]):
        raise click.UsageError(
            f"--day is for files, and {named[0]} is a store, whose reports keep their days: import "
            "it without --day"
        )
    for file in files:  # before the store is created
        _check_source(file, survey)
    counts = []
    with deniable.store.open(store, create=True) as opened:
        for file in files:
            if deniable.store.is_url(file):
                with deniable.store.open(file) as source:
                    counts.append(import_store(opened, source))
            else:
                counts.append(import_file(opened, file, day or calendar.today(), survey))
    read, new = map(sum, zip(*counts, strict=True))
    print_outcome(
        {"reports": read, "new": new, "store": opened.url},
        f"Read {counted(read, 'report')} and added {new:,} new ones to {opened.url}.",
        as_json,
    )


def _check_source(file: str, survey: Survey | None) -> None:
    """Raise an error if a file or store cannot be read; only the first reports are read."""
    from deniable.columns import scan

    if deniable.store.is_url(file):
        deniable.store.open(file).close()
    else:
        next(scan(file, survey=survey), None)


@command(note=options.STORES)
@click.argument("store")
@click.argument("survey")
@click.argument("file", type=options.OutputPath(*options.REPORT_FILES))
@options.days_options
@options.json_option("the outcome")
def export(
    store: str, survey: str, file: Path, since: date | None, until: date | None, as_json: bool
) -> None:
    """Write the reports of SURVEY (NAME or NAME@VERSION) in STORE to FILE.

    The format follows the extension of FILE: .parquet, .arrow or .dn.

    Examples
    --------
    deniable export reports.db homepages march.parquet --since 2025-03-01 --until 2025-03-31
    """
    from deniable.columns import write

    with deniable.store.open(store) as opened:
        wanted = survey_in(opened, survey)
        snapshot = opened.snapshot(wanted, since=since, until=until)
        if not len(snapshot):
            raise InputError(f"{opened.url} has no reports of {wanted.name} from these days")
        reports = write(file, snapshot.batches())
    print_outcome(
        {"reports": reports, "survey": wanted.name, "version": wanted.version, "file": str(file)},
        f"Wrote {counted(reports, 'report')} of {wanted.name} v{wanted.version} to {file}.",
        as_json,
    )


@command(note=options.STORES)
@click.argument("store")
@options.option("--at-least", type=options.POSITIVE_INT, default=1000, metavar="COUNT")
@options.option("--keep-keys", type=options.WholeNumber(0), default=MIN_KEY_DAYS, metavar="DAYS")
@options.json_option("the outcome")
def compact(store: str, at_least: int, keep_keys: int, as_json: bool) -> None:
    """Shuffle the reports in STORE, so that nothing says which of them were uploaded together.

    The store keeps new uploads as they arrived (staged) until it can shuffle them with enough
    others of the same day. The rest of a day that is over joins a batch of the next day. A
    collector may keep running meanwhile. For surveys that are collected once, the last lines say
    how private a client is against analysts, who see only shuffled batches.

    Parameters
    ----------
    at_least
        Minimum number of reports from other uploads to shuffle an upload with. An upload stays
        staged until there are as many.
    keep_keys
        Number of days for which the store keeps the idempotency keys of uploads, by which it
        recognises a repeated upload and does not count it again. Clients retry for six days.

    Examples
    --------
    deniable compact reports.db --at-least 5000
    """
    check_key_days("--keep-keys", keep_keys)
    with deniable.store.open(store) as opened:
        day = opened.observe_day().latest
        done = opened.compact(at_least=at_least, today=day)
        forgotten = opened.forget(_days_before(day, keep_keys))
        warnings = _warnings(opened)
        once = [survey for survey in opened.surveys() if survey.collect == "once"]
        bounds = {survey: amplified(survey, at_least + 1) for survey in once}
    print_outcome(
        {
            **asdict(done),
            "keys_forgotten": forgotten,
            "warnings": warnings,
            "smallest_batch": {f"{s.name}@{s.version}": asdict(b) for s, b in bounds.items()},
        },
        f"Compacted {counted(done.reports, 'report')} into {counted(done.segments, 'segment')}; "
        f"{done.waiting:,} not yet compacted (an upload waits for {at_least:,} reports of other "
        "uploads; analysts do not see it before). "
        f"Deleted {counted(forgotten, 'old idempotency key')}."
        + "".join(f"\nWarning: {warning}" for warning in warnings)
        + "".join(
            f"\nSmallest batch of {s.name} v{s.version} that --at-least allows: {b}."
            for s, b in bounds.items()
        ),
        as_json,
    )
