"""What the stores in a database have in common: everything but the database. Its tables:

survey    published surveys
upload    name and seal of every upload, to know it again
staged    uploads as they came: one row, one blob
segment   the segments that are part of the store
loose     files that may exist and are not part of the store: see `sql_compaction`
setting   where the segments are
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
from deniable.store.base import AT_LEAST, Compacted, Outcome, Store, Upload, tell_apart
from deniable.store.locations import Location, folder
from deniable.store.segments import problems
from deniable.store.snapshot import Snapshot
from deniable.store.sql.database import VERSIONS, Row, Session, Transact, listed
from deniable.store.sql.sql_compaction import SqlCompaction, sweep
from deniable.survey import Survey

SLICES = 256
COPIED = {
    "survey": "digest, canonical",
    "upload": "name, seal, day",
    "staged": "survey, day, reports, bodies",
    "segment": "name, survey, day, reports, size, sha256",
}
"""Tables and columns that a backup has."""
IN_DAYS = "survey = ? AND day BETWEEN ? AND ?"
EVERYTHING = f"""
    SELECT day, reports FROM staged WHERE {IN_DAYS} UNION ALL
    SELECT day, reports FROM segment WHERE {IN_DAYS}"""


class SqlStore(Store):
    """A store in a database; a subclass supplies transactions and a lock."""

    _write: Transact
    _read: Transact

    def __init__(self, url: str, segments: str | None, *, create: bool) -> None:
        """`segments` : where they shall be; None for where they are, or the default."""
        super().__init__(url)
        try:
            self._write(lambda db: self._migrate(db, create))
            self._location = self._settle(segments)
        except BaseException:
            self.close()
            raise

    def _migrate(self, db: Session, create: bool) -> None:
        """Bring the tables up to the newest version, from none if `create`."""
        version, newest = self._version(db), len(VERSIONS)
        if version > newest:
            raise StoreError(
                f"{self.url} has tables of version {version}, this release knows {newest}: update "
                "deniable"
            )
        if version == 0 and not create:
            raise StoreError(f"there is no store in {self.url}: collect or import into it")
        if version == newest:
            return
        for number in range(version + 1, newest + 1):
            for statement in (*VERSIONS[number - 1], *self.also.get(number, ())):
                db.run(statement.format(**self.words))
        self._set_version(db, newest)

    # --- what a subclass supplies ----------------------------------------------------------------

    words: ClassVar[Mapping[str, str]]
    """Types named in the statements; `sorted` makes a table stand in the order of its key, so that
    it says nothing of arrival."""
    also: ClassVar[Mapping[int, tuple[str, ...]]] = {}
    """Statements of this database alone, by version."""

    @abstractmethod
    def _version(self, db: Session) -> int:
        """Return the version of the tables, 0 where there are none."""

    @abstractmethod
    def _set_version(self, db: Session, version: int) -> None:
        """Write the version of the tables."""

    @abstractmethod
    def _exclusive(self) -> AbstractContextManager[Transact]:
        """The only one to compact, delete or back up; transactions that fail if it no longer is."""

    @abstractmethod
    def _purge(self) -> None:
        """Make deleted bytes disappear from the database's files, as far as it can."""

    def _check_database(self) -> list[str]:
        """Return what the database itself finds wrong."""
        return []

    @abstractmethod
    def _default_location(self) -> Location:
        """Return where segments are if nothing was said."""

    # --- uploads and surveys ---------------------------------------------------------------------

    def append(self, uploads: Sequence[Upload]) -> list[Outcome]:
        """Stage all of them in one transaction, which is durable when this returns."""
        self._check_uploads(uploads)
        receipts = [upload.receipt for upload in uploads]

        def stage(db: Session) -> list[Outcome]:
            seals: dict[bytes, bytes] = {}
            for marks, names in listed([name for name, _ in receipts]):
                seals.update(db.rows(f"SELECT name, seal FROM upload WHERE name IN {marks}", names))
            outcomes, new = tell_apart(receipts, seals)
            chosen = [(uploads[i], uploads[i].day.isoformat(), receipts[i]) for i in new]
            db.many(
                "INSERT INTO upload (name, seal, day) VALUES (?, ?, ?)",
                [(*receipt, day) for _, day, receipt in chosen],
            )
            db.many(
                "INSERT INTO staged (survey, day, reports, bodies) VALUES (?, ?, ?, ?)",
                [(upload.digest, day, upload.reports, upload.bodies) for upload, day, _ in chosen],
            )
            return outcomes

        return self._write(stage)

    def forget(self, before: date) -> int:
        """Forget the idempotency keys of uploads before that day; returns how many.

        A slice of the names at a time, so that uploads never wait long.
        """
        edges = [*(bytes([first]) for first in range(SLICES)), b"\xff" * 17]
        return sum(self._forget(start, end, before) for start, end in pairwise(edges))

    def _forget(self, start: bytes, end: bytes, before: date) -> int:
        which = (start, end, before.isoformat())
        statement = "DELETE FROM upload WHERE name >= ? AND name < ? AND day < ?"
        return self._write(lambda db: db.run(statement, which))

    def add_survey(self, survey: Survey) -> None:
        """Keep the published survey; its reports can be appended from now on."""

        def add(db: Session) -> None:
            rows = db.rows("SELECT canonical FROM survey")
            if self._is_new(survey, (canonical for (canonical,) in rows)):
                row = (survey.digest, survey.canonical)
                db.run("INSERT INTO survey (digest, canonical) VALUES (?, ?)", row)

        self._write(add)
        self._known[survey.digest] = survey

    def _published(self) -> Iterable[tuple[bytes, bytes]]:
        return self._rows("SELECT digest, canonical FROM survey")

    # --- reading ---------------------------------------------------------------------------------

    def days(self, survey: Survey) -> dict[date, int]:
        """Return the number of reports of each day that has some."""
        self._survey(survey.digest)
        return self._read(lambda db: _days(db, _within(survey, None, None)))

    def snapshot(
        self, survey: Survey, *, since: date | None = None, until: date | None = None
    ) -> Snapshot:
        """Return the survey's reports as they are now, to be read several times."""
        self._survey(survey.digest)
        which = _within(survey, since, until)

        def take(db: Session) -> Snapshot:
            names = db.rows(f"SELECT name FROM segment WHERE {IN_DAYS}", which)
            days = _days(db, which)
            staged = db.stream(f"SELECT bodies FROM staged WHERE {IN_DAYS}", which)
            segments, bodies = (name for (name,) in names), (bodies for (bodies,) in staged)
            return Snapshot(survey, days, self._location, segments, bodies)

        return self._read(take)

    def _rows(self, statement: str) -> list[Row]:
        return self._read(lambda db: db.rows(statement))

    # --- upkeep ----------------------------------------------------------------------------------

    def compact(self, *, at_least: int = AT_LEAST, today: date | None = None) -> Compacted:
        """Shuffle what is staged into segments, and delete it from staging for good."""
        with self._exclusive() as write:
            sweep(write, self._location)
            rule = (at_least, today, self._survey)
            done = SqlCompaction(*rule, self._read, write, self._location).run()
            self._purge()
        return done

    def delete(self, survey: Survey, *, before: date | None = None) -> int:
        """Delete the survey's reports, of all days or of those before one; returns how many."""
        self._survey(survey.digest)
        which = (survey.digest, (before or date.max).isoformat())
        until = "survey = ? AND day < ?"

        def drop(db: Session) -> int:
            deleted = 0
            db.run(f"INSERT INTO loose (name) SELECT name FROM segment WHERE {until}", which)
            for table in ("staged", "segment"):
                counting = f"SELECT coalesce(sum(reports), 0) FROM {table} WHERE {until}"
                deleted += int(db.rows(counting, which)[0][0])
                db.run(f"DELETE FROM {table} WHERE {until}", which)
            return deleted

        with self._exclusive() as write:
            deleted = write(drop)
            sweep(write, self._location)
            self._purge()
        return deleted

    def backup(self, to: str | Path) -> None:
        """Copy everything, as it is at one moment, to a new store in a database.

        The segments are copied first, each noted in the target's `loose`; one transaction then
        copies the rows. Killed before it is durable, the target is an empty store and its files go
        at its next start.
        """
        with open(to, create=True) as target:
            if not isinstance(target, SqlStore):
                raise InputError(f"expected a backup to FILE.db or postgresql://…, got {to}")
            if target.surveys():
                raise StoreError(f"expected an empty store for the backup, got {target.url} in use")
            with self._exclusive():
                segments = self._rows("SELECT name, day FROM segment")
                names = [(name,) for name, _ in segments]
                target._write(lambda db: db.many("INSERT INTO loose (name) VALUES (?)", names))
                for name, day in segments:
                    target._location.put(name, self._location.get(name), date.fromisoformat(day))
                self._read(lambda source: target._write(lambda copy: _copy(source, copy)))

    def check(self) -> list[str]:
        """Return everything that is wrong with the store: none, if all is well."""
        with self._exclusive():
            found = self._check_database()
            found += self._check_staged(
                self._rows("SELECT survey, reports, length(bodies) FROM staged")
            )
            known = {survey.digest: survey for survey in self.surveys()}
            segments = self._rows("SELECT name, survey, reports, sha256 FROM segment ORDER BY name")
            for name, digest, reports, sha256 in segments:
                found += problems(self._location, name, known.get(digest), reports, sha256)
        return found

    def _settle(self, segments: str | None) -> Location:
        """Find out, or note, where the segments are."""
        rows = self._rows("SELECT value FROM setting WHERE name = 'segments'")
        kept = rows[0][0] if rows else None
        if segments is None:
            return folder(kept) if kept else self._default_location()
        asked = folder(segments)
        if asked.url == kept:
            return asked

        def note(db: Session) -> None:
            if db.rows("SELECT name FROM segment LIMIT 1"):
                where = kept or self._default_location().url
                raise StoreError(
                    f"{self.url} has segments at {where}, expected none before they can be kept at "
                    f"{asked.url}: leave segments= out"
                )
            db.run("DELETE FROM setting WHERE name = 'segments'")
            db.run("INSERT INTO setting (name, value) VALUES ('segments', ?)", (asked.url,))

        self._write(note)
        return asked


def _copy(source: Session, copy: Session) -> None:
    for table, columns in COPIED.items():
        marks = ", ".join("?" * len(columns.split(", ")))
        statement = f"INSERT INTO {table} ({columns}) VALUES ({marks})"
        copy.many(statement, source.stream(f"SELECT {columns} FROM {table}"))
    copy.run("DELETE FROM loose")


def _within(survey: Survey, since: date | None, until: date | None) -> tuple[bytes, str, str]:
    """The values of `IN_DAYS`."""
    return survey.digest, (since or date.min).isoformat(), (until or date.max).isoformat()


def _days(db: Session, which: tuple[bytes, str, str]) -> dict[date, int]:
    rows = db.rows(
        f"SELECT day, sum(reports) FROM ({EVERYTHING}) AS every GROUP BY day ORDER BY day",
        which * 2,
    )
    return {date.fromisoformat(day): int(count) for day, count in rows}
