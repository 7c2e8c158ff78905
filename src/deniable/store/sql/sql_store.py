"""Stores in a SQL database: everything that does not depend on the database.

The tables are:

survey    published surveys
upload    name and seal of every upload, to recognise repeats
staged    uploads as they arrived, one row each
segment   segments that are part of the store
damaged   uploads that a compaction set aside: see `staged_rows`
loose     files that may exist but are not part of the store: see `sql_compaction`
setting   location of the segments, the calendar, and numbers of uploads
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import ClassVar

from deniable.errors import InputError, StoreError
from deniable.store import open
from deniable.store.base import Compacted, Outcome, Store, Upload, classify
from deniable.store.calendar import Calendar
from deniable.store.locations import Location, folder
from deniable.store.segments import check_segment, intact_file
from deniable.store.snapshot import Snapshot
from deniable.store.sql import staged_rows
from deniable.store.sql.database import (
    VERSIONS,
    Row,
    Session,
    Transact,
    insert_rows,
    read_setting,
    sql_lists,
    write_setting,
)
from deniable.store.sql.sql_compaction import SqlCompaction, delete_loose_files
from deniable.store.sql.staged_rows import StagedRow
from deniable.survey import Survey

FORGET_SLICES = 256
"""Transactions in which `forget` deletes old keys, so that uploads never wait long."""
BACKUP_TABLES = {
    "survey": "digest, canonical",
    "upload": "name, seal, day",
    "staged": "survey, day, reports, bodies, checksum",
    "damaged": "survey, day, reports, bodies, checksum, set_aside",
    "segment": "name, survey, day, reports, size, sha256",
}
"""Tables and columns that a backup copies."""
IN_DAYS = "survey = ? AND day BETWEEN ? AND ?"
"""Condition for the rows of one survey in a range of days."""
STRAY = "survey NOT IN (SELECT digest FROM survey)"
"""Condition for staged rows of no survey, which must be damaged."""
CALENDAR = "calendar"
"""Name of the setting that holds the calendar."""
READ_TABLES = {True: ("segment",), False: ("segment", "staged")}
"""Tables of reports to read, by whether only compacted reports are read."""


class SqlStore(Store):
    """A store in a SQL database; a subclass supplies transactions and a lock.

    segments : URL for the segments; None for where they are already, or the default
    create : create the tables if the database has none
    """

    _write: Transact
    _read: Transact

    def __init__(self, url: str, segments: str | None, *, create: bool) -> None:
        super().__init__(url)
        try:
            self._write(lambda db: self._migrate(db, create))
            self._location = self._segment_location(segments)
        except BaseException:
            self.close()
            raise

    def _migrate(self, db: Session, create: bool) -> None:
        """Upgrade the tables to the newest schema version, or create them if `create`."""
        version, newest = self._version(db), len(VERSIONS)
        if version > newest:
            raise StoreError(
                f"{self.url} has tables of version {version}, but this release supports up "
                f"to version {newest}: update deniable"
            )
        if version == 0 and not create:
            raise StoreError(f"there is no store at {self.url}: collect or import reports first")
        if version == newest:
            return
        for number in range(version + 1, newest + 1):
            for statement in (*VERSIONS[number - 1], *self.extra_statements.get(number, ())):
                db.run(statement.format(**self.type_names))
        if read_setting(db, CALENDAR) is None:
            ((known,),) = db.rows("SELECT max(day) FROM upload")
            calendar = Calendar.starting(date.fromisoformat(known) if known else None)
            write_setting(db, CALENDAR, calendar.to_text())
        self._set_version(db, newest)

    # --- supplied by subclasses ------------------------------------------------------------------

    type_names: ClassVar[Mapping[str, str]]
    """Words for the braces in `VERSIONS`; `sorted` stores a table in the order of its key, so that
    the order of rows does not reveal the order of arrival."""
    extra_statements: ClassVar[Mapping[int, tuple[str, ...]]] = {}
    """Statements for this database only, per schema version."""

    @abstractmethod
    def _version(self, db: Session) -> int:
        """Return the schema version, or 0 if there are no tables."""

    @abstractmethod
    def _set_version(self, db: Session, version: int) -> None:
        """Record the schema version."""

    @abstractmethod
    def _exclusive(self) -> AbstractContextManager[Transact]:
        """Lock out other compactions, deletions and backups.

        Give a function that runs transactions, which fail once the lock is lost.
        """

    @abstractmethod
    def _purge(self) -> None:
        """Remove deleted bytes from the files of the database, as far as possible."""

    def _check_database(self) -> list[str]:
        """Return the problems that the database itself reports."""
        return []

    def _insert_staged(self, db: Session, rows: Sequence[StagedRow]) -> int:
        """Insert rows; return the number of the last one, or 0 if they are not numbered."""
        columns = "survey, day, reports, bodies, checksum"
        insert_rows(db, "staged", columns, [row[1:] for row in rows])
        return 0

    def _acknowledge(self, number: int) -> None:
        """Note that uploads up to this number are durable, if the database numbers them."""

    @abstractmethod
    def _default_location(self) -> Location:
        """Return the location of segments if none was chosen."""

    # --- uploads and surveys ---------------------------------------------------------------------

    def append(self, uploads: Sequence[Upload]) -> list[Outcome]:
        """Stage uploads in one transaction, which is durable when this method returns."""
        self._check_uploads(uploads)

        def stage(db: Session) -> tuple[list[Outcome], int]:
            seals: dict[bytes, bytes] = {}
            for marks, names in sql_lists([upload.receipt[0] for upload in uploads]):
                seals.update(db.rows(f"SELECT name, seal FROM upload WHERE name IN {marks}", names))
            outcomes, new = classify(uploads, seals)
            receipts = [(*upload.receipt, upload.day.isoformat()) for upload in new]
            insert_rows(db, "upload", "name, seal, day", receipts)
            last = self._insert_staged(db, [StagedRow.new(u) for u in new]) if new else 0
            return outcomes, last

        outcomes, last = self._write(stage)
        self._acknowledge(last)
        return outcomes

    def _forget(self, before: date) -> int:
        edges = [*(bytes([first]) for first in range(FORGET_SLICES)), b"\xff" * 17]
        return sum(self._forget_slice(start, end, before) for start, end in pairwise(edges))

    def _forget_slice(self, start: bytes, end: bytes, before: date) -> int:
        """Forget old keys among the names from `start` to `end`."""
        values = (start, end, before.isoformat())
        statement = "DELETE FROM upload WHERE name >= ? AND name < ? AND day < ?"
        return self._write(lambda db: db.run(statement, values))

    def _add_survey(self, survey: Survey) -> None:
        def add(db: Session) -> None:
            rows = db.rows("SELECT canonical FROM survey")
            if self._is_new(survey, (canonical for (canonical,) in rows)):
                row = (survey.digest, survey.canonical)
                db.run("INSERT INTO survey (digest, canonical) VALUES (?, ?)", row)

        self._write(add)
        self._known[survey.digest] = survey

    def _published(self) -> Iterable[tuple[bytes, bytes]]:
        return self._rows("SELECT digest, canonical FROM survey")

    def _surveys_by_digest(self) -> dict[bytes, Survey]:
        """Return every survey in the store, by digest."""
        return {survey.digest: survey for survey in self.surveys()}

    # --- reading ---------------------------------------------------------------------------------

    def _days(self, survey: Survey, compacted_only: bool) -> dict[date, int]:
        self._survey(survey.digest)
        every = _day_range(survey, date.min, date.max)
        return self._read(lambda db: _days(db, every, READ_TABLES[compacted_only]))

    def _snapshot(self, survey: Survey, first: date, last: date, compacted_only: bool) -> Snapshot:
        self._survey(survey.digest)
        day_range = _day_range(survey, first, last)

        def take(db: Session) -> Snapshot:
            names = db.rows(f"SELECT name FROM segment WHERE {IN_DAYS}", day_range)
            days = _days(db, day_range, READ_TABLES[compacted_only])
            segments, bodies = (name for (name,) in names), iter(list[bytes]())
            if not compacted_only:
                for (stray,) in db.rows(f"SELECT id FROM staged WHERE {STRAY} LIMIT 1"):
                    raise staged_rows.damaged_row(stray)
                columns = staged_rows.COLUMNS
                rows = db.stream(f"SELECT {columns} FROM staged WHERE {IN_DAYS}", day_range)
                bodies = staged_rows.intact_bodies(rows)
            return Snapshot(survey, days, self._location, segments, bodies)

        return self._read(take)

    def _rows(self, statement: str) -> list[Row]:
        """Return the rows of a query in a new transaction."""
        return self._read(lambda db: db.rows(statement))

    # --- maintenance -----------------------------------------------------------------------------

    def _compact(self, at_least: int, today: date) -> Compacted:
        with self._exclusive() as write:
            delete_loose_files(write, self._location)
            rule = (at_least, today, self._survey)
            compacted = SqlCompaction(*rule, self._read, write, self._location).run()
            self._purge()
        return compacted

    def _delete(self, survey: Survey, before: date) -> int:
        self._survey(survey.digest)
        values = (survey.digest, before.isoformat())
        condition = "survey = ? AND day < ?"

        def drop(db: Session) -> int:
            deleted = 0
            db.run(f"INSERT INTO loose (name) SELECT name FROM segment WHERE {condition}", values)
            staged_rows.keep_last_number(db)
            for table in ("staged", "segment"):
                counting = f"SELECT coalesce(sum(reports), 0) FROM {table} WHERE {condition}"
                deleted += int(db.rows(counting, values)[0][0])
                db.run(f"DELETE FROM {table} WHERE {condition}", values)
            return deleted

        with self._exclusive() as write:
            deleted = write(drop)
            delete_loose_files(write, self._location)
            self._purge()
        return deleted

    def backup(self, to: str | Path) -> None:
        """Copy everything, as it is at one moment, to a new store in a database.

        The segments are copied first, after their names were added to the target's `loose`. One
        transaction then copies the rows. If the process is killed before that, the target is an
        empty store, and its next compaction or backup deletes the copied files. A damaged
        segment raises StoreError.
        """
        with open(to, create=True) as target:
            if not isinstance(target, SqlStore):
                raise InputError(f"expected FILE.db or postgresql://… for the backup, got {to}")
            if target.surveys():
                raise StoreError(f"expected an empty store for the backup: {target.url} is not")
            with self._exclusive():
                delete_loose_files(target._write, target._location)
                segments = self._rows("SELECT name, day, sha256 FROM segment")
                names = [(name,) for name, _, _ in segments]
                target._write(lambda db: insert_rows(db, "loose", "name", names))
                for name, day, sha256 in segments:
                    content = intact_file(self._location, name, sha256)
                    target._location.put(name, content, date.fromisoformat(day))
                self._read(lambda source: target._write(lambda copy: _copy_tables(source, copy)))

    def check(self) -> list[str]:
        """Read everything and return what is wrong with the store, one sentence per problem."""
        with self._exclusive():
            problems = self._check_database()
            known = self._surveys_by_digest()
            columns = staged_rows.COLUMNS
            problems += self._read(
                lambda db: list(
                    staged_rows.check_rows(db.stream(f"SELECT {columns} FROM staged"), known)
                )
            )
            problems += [*self._check_calendar(), *self.damage()]
            segments = self._rows("SELECT name, survey, reports, sha256 FROM segment ORDER BY name")
            for name, digest, reports, sha256 in segments:
                problems += check_segment(self._location, name, known.get(digest), reports, sha256)
        return problems

    def damage(self) -> list[str]:
        """Return what the store knows to be lost or damaged, one sentence each."""
        return self._read(lambda db: staged_rows.known_damage(db, self._surveys_by_digest))

    def accept_damage(self) -> list[str]:
        """Delete damaged uploads that were set aside, and no longer mention losses."""
        with self._exclusive() as write:
            accepted = write(lambda db: staged_rows.forget_damage(db, self._surveys_by_digest))
            self._purge()
        return accepted

    def _delete_damaged(self, before: date) -> int:
        statement = "DELETE FROM damaged WHERE set_aside < ?"
        with self._exclusive() as write:
            deleted = write(lambda db: db.run(statement, (before.isoformat(),)))
            self._purge()
        return deleted

    def check_writable(self) -> None:
        """Write a value that the store has, unchanged."""
        statement = "UPDATE setting SET value = value WHERE name = ?"
        self._write(lambda db: db.run(statement, (CALENDAR,)))

    def _read_calendar(self) -> Calendar:
        text = self._read(lambda db: read_setting(db, CALENDAR))
        return Calendar.from_text(text or "")

    def _write_calendar(self, calendar: Calendar) -> None:
        self._write(lambda db: write_setting(db, CALENDAR, calendar.to_text()))

    def _segment_location(self, segments: str | None) -> Location:
        """Return the location of the segments; record it if `segments` names a new one."""
        rows = self._rows("SELECT value FROM setting WHERE name = 'segments'")
        recorded = rows[0][0] if rows else None
        if segments is None:
            return folder(recorded) if recorded else self._default_location()
        chosen = folder(segments)
        if chosen.url == recorded:
            return chosen

        def record(db: Session) -> None:
            if db.rows("SELECT name FROM segment LIMIT 1"):
                current = recorded or self._default_location().url
                raise StoreError(
                    f"{self.url} already has segments at {current}, so they cannot be moved to "
                    f"{chosen.url}: leave segments= out"
                )
            db.run("DELETE FROM setting WHERE name = 'segments'")
            db.run("INSERT INTO setting (name, value) VALUES ('segments', ?)", (chosen.url,))

        chosen.probe()
        self._write(record)
        return chosen


def _copy_tables(source: Session, copy: Session) -> None:
    """Copy the rows of a backup to another database."""
    for table, columns in BACKUP_TABLES.items():
        insert_rows(copy, table, columns, source.stream(f"SELECT {columns} FROM {table}"))
    for name in (CALENDAR, staged_rows.LOST_NUMBERS):
        write_setting(copy, name, read_setting(source, name))
    write_setting(copy, staged_rows.LAST_NUMBER, str(staged_rows.last_number(source)))
    copy.run("DELETE FROM loose")


def _day_range(survey: Survey, first: date, last: date) -> tuple[bytes, str, str]:
    """Return the values of `IN_DAYS`."""
    return survey.digest, first.isoformat(), last.isoformat()


def _days(db: Session, day_range: tuple[bytes, str, str], tables: Sequence[str]) -> dict[date, int]:
    """Return the number of reports per day in some tables."""
    every = " UNION ALL ".join(f"SELECT day, reports FROM {t} WHERE {IN_DAYS}" for t in tables)
    rows = db.rows(
        f"SELECT day, sum(reports) FROM ({every}) AS every GROUP BY day ORDER BY day",
        day_range * len(tables),
    )
    try:
        return {date.fromisoformat(day): int(count) for day, count in rows}
    except (TypeError, ValueError):
        raise StoreError(
            "the day of a staged upload is damaged: deniable store check STORE names it, and "
            "deniable compact STORE sets it aside, so that the others can be read"
        ) from None
