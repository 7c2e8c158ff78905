"""`deniable store`, `import`, `export` and `compact`: reports in a store."""

from __future__ import annotations

from dataclasses import asdict
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
from deniable.survey import Survey

if TYPE_CHECKING:
    from deniable.store import Store


def _days_before(day: date, days: int) -> date:
    return day - timedelta(days=min(days, (day - date.min).days))


def _warnings(opened: Store) -> list[str]:
    """Return what the operator of a store should know: about the clock, and about damage."""
    return [text for text in (opened.today().doubt, *opened.damage()) if text]


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

    A collector may keep running meanwhile. TO is FILE.db or postgresql://…, whatever STORE is.

    Examples
    --------
    deniable store backup reports.db 2025-03-09.db
    """
    with deniable.store.open(store) as opened:
        opened.backup(to)
    print_outcome({"store": opened.url, "to": to}, f"Copied {opened.url} to {to}.", as_json)


@command(make=store.command, note=options.STORES, short_help="Delete reports.")
@click.argument("store")
@click.argument("survey", required=False)
@options.day_option("--before")
@options.option("--older-than", type=options.WholeNumber(0), metavar="DAYS")
@options.flag("--damaged")
@options.json_option("the outcome")
@options.flag("--yes")
def delete(
    store: str,
    survey: str | None,
    before: date | None,
    older_than: int | None,
    damaged: bool,
    as_json: bool,
    yes: bool,
) -> None:
    """Permanently delete the reports of SURVEY (NAME or NAME@VERSION) from STORE.

    Parameters
    ----------
    before
        Delete only reports received before this day.
    older_than
        Delete only reports older than this many days. Refused while the clock looks wrong.
    damaged
        Delete the damaged uploads of all surveys instead, and end the report of known losses.
    yes
        Delete without asking for confirmation.

    Examples
    --------
    deniable store delete reports.db homepages --older-than 90
    deniable store delete reports.db --damaged
    """
    if (survey is None) != damaged or (damaged and (before, older_than) != (None, None)):
        raise click.UsageError("give a SURVEY, perhaps with --before or --older-than, or --damaged")
    if before is not None and older_than is not None:
        raise click.UsageError("give --before or --older-than, not both")
    with deniable.store.open(store) as opened:
        if survey is None:
            _delete_damaged(opened, as_json, yes)
            return
        if older_than is not None:
            before = _days_before(_certain_day(opened, "--before"), older_than)
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


def _delete_damaged(opened: Store, as_json: bool, yes: bool) -> None:
    """Delete damaged uploads, and end the report of losses."""
    if (known := opened.damage()) and not yes:
        echo("\n".join(known), err=as_json)
        question = "Delete damaged uploads, and no longer mention losses?"
        click.confirm(question, abort=True, err=as_json)
    ended = opened.delete_damaged()
    lines = [*(ended if yes else ()), f"Dropped {counted(len(ended), 'problem')}."]
    print_outcome({"damage": ended}, "\n".join(lines), as_json)


def _certain_day(opened: Store, instead: str) -> date:
    """Return the current day; raise StoreError if the clock is not trusted."""
    day, doubt = opened.today()
    if doubt:
        raise StoreError(f"nothing was done: {doubt}, or give {instead}")
    return day


@command("import", note=options.STORES)
@click.argument("store")
@click.argument("files", nargs=-1, required=True)
@options.day_option("--day")
@options.option("--survey", "survey_file", type=options.EXISTING_FILE, metavar="FILE")
@options.json_option("the outcome")
def import_(
    store: str, files: tuple[str, ...], day: date | None, survey_file: Path | None, as_json: bool
) -> None:
    """Add the reports in FILES (.parquet, .dn, or other stores) to STORE.

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
                counts.append(
                    import_file(opened, file, day or _certain_day(opened, "--day"), survey)
                )
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

    The format follows the extension of FILE: .parquet or .dn.

    Examples
    --------
    deniable export reports.db homepages march.parquet --since 2025-03-01 --until 2025-03-31
    """
    from deniable.columns import write

    with deniable.store.open(store) as opened:
        wanted = survey_in(opened, survey)
        snapshot = opened.snapshot(wanted, since=since, until=until)
        snapshot.warn()
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
        day, doubt = opened.today()
        done = opened.compact(at_least=at_least, today=day)
        forgotten = 0 if doubt else opened.forget(_days_before(day, keep_keys))
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
