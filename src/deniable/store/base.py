"""The store: everything that does not depend on the database.

An upload is *staged* as it arrived: one row per batch. It stays staged only briefly, because a
batch reveals which reports arrived together. `Store.compact` splits the batches of a survey and a
day, shuffles their reports together, and writes them as *segments*. `Store.scan` reads staged and
compacted reports alike, each report once, unless it was opened for analysts, who see compacted
reports only.

The only time that a store keeps is the day. It keeps nothing about the sender of a report.

The tables are:

survey    published surveys
upload    name and seal of every upload, to recognise repeats
staged    uploads as they arrived, one row each
segment   segments that are part of the store
loose     files that may exist but are not part of the store: see `compaction`
setting   location of the segments, the last day of a collector, numbers and losses of uploads
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import ClassVar, Self

import deniable.store
from deniable.arguments import Day, as_day, as_optional_day
from deniable.columns import ReportBatch
from deniable.errors import DeniableError, InputError, StoreError, UnknownSurvey
from deniable.store import clock, staged_rows
from deniable.store.clock import Today, day_that_counts
from deniable.store.compaction import Compacted, Compaction, delete_loose_files
from deniable.store.database import (
    IN_DAYS,
    VERSIONS,
    Row,
    Session,
    Transact,
    day_range,
    insert_rows,
    read_setting,
    sql_lists,
    write_setting,
)
from deniable.store.locations import Location, location_of
from deniable.store.segments import check_segment, intact_file
from deniable.store.snapshot import MAX_BATCH_ROWS, Snapshot
from deniable.store.staged_rows import KnownSurveys, StagedRow
from deniable.store.uploads import Outcome, Upload, classify
from deniable.survey import Survey, SurveyOrPath

MIN_SHUFFLED = 1000
"""Default number of other reports that every batch is shuffled with."""
FORGET_SLICES = 256
"""Transactions in which `forget` deletes old keys, so that uploads never wait long."""
BACKUP_TABLES = {
    "survey": "digest, canonical",
    "upload": "name, seal, day",
    "segment": "name, survey, day, reports, size, sha256",
}
"""Tables and columns that a backup copies as they are."""
STAGED_COLUMNS = "survey, day, reports, bodies, checksum"
LAST_DAY = "last_day"
"""Name of the setting that holds the last day on which a collector used the store."""


class Store(ABC):
    """A database that keeps reports; `deniable.store.open` returns one.

    Every method may be called from any thread. Methods raise StoreError: its subclass StoreFull if
    no space is left, and StoreUnavailable if a later retry may succeed.

    Parameters
    ----------
    url : str
        Address of the store, without any password. Messages and results quote it.
    segments : str or None
        Path or URL for the segments; None for where they are already, or the default.
    create : bool
        Create the tables if the database has none.

    Examples
    --------
    >>> import tempfile, deniable.store
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with deniable.store.open(f"{folder}/reports.db", create=True) as store:
    ...         store.surveys()
    []
    """

    _write: Transact
    _read: Transact

    def __init__(self, url: str, segments: str | None, *, create: bool) -> None:
        self.url = url
        self.compacted_only = False
        """Whether `days`, `snapshot` and `scan` leave out staged reports; see `store.open`."""
        self._known: dict[bytes, Survey] = {}
        """Surveys in the store, by digest, as far as this process has read them."""
        try:
            self._write(lambda db: self._migrate(db, create))
            self._location = self._segment_location(segments)
        except BaseException:
            self.close()
            raise

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.url}>"

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
        insert_rows(db, "staged", STAGED_COLUMNS, [row[1:] for row in rows])
        return 0

    def _acknowledge(self, number: int) -> None:
        """Note that uploads up to this number are durable, if the database numbers them."""
        return

    @abstractmethod
    def _default_location(self) -> Location:
        """Return the location of segments if none was chosen."""

    # --- uploads and surveys ---------------------------------------------------------------------

    def append(self, uploads: Sequence[Upload]) -> list[Outcome]:
        """Stage uploads in one transaction, which is durable when this method returns.

        Parameters
        ----------
        uploads : sequence of Upload
            Uploads of surveys that the store has.

        Returns
        -------
        list of Outcome
            One outcome per upload, in the same order.

        Raises
        ------
        UnknownSurvey
            If the store does not have the survey of an upload.
        InputError
            If the bodies of an upload do not have the length that its survey prescribes.
        """
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

    def add_survey(self, survey: SurveyOrPath) -> None:
        """Add a published survey, so that its reports can be appended.

        Adding a survey that the store already has does nothing.

        Parameters
        ----------
        survey : Survey, str or Path
            Survey to add, or the path of its file.

        Raises
        ------
        InputError
            If the store has a different survey of the same name and version.
        """
        survey = Survey.of(survey)

        def add(db: Session) -> None:
            rows = db.rows("SELECT canonical FROM survey")
            if self._is_new(survey, (canonical for (canonical,) in rows)):
                row = (survey.digest, survey.canonical)
                db.run("INSERT INTO survey (digest, canonical) VALUES (?, ?)", row)

        self._write(add)
        self._known[survey.digest] = survey

    def surveys(self) -> list[Survey]:
        """Return every survey in the store.

        Returns
        -------
        list of Survey
            Surveys, sorted by name and version.
        """
        for digest, canonical in self._rows("SELECT digest, canonical FROM survey"):
            if digest not in self._known:
                self._known[digest] = self._parse_survey(digest, canonical)
        return sorted(self._known.values(), key=lambda s: (s.name, s.version))

    def _surveys_by_digest(self) -> dict[bytes, Survey]:
        """Return every survey in the store, by digest."""
        return {survey.digest: survey for survey in self.surveys()}

    def _parse_survey(self, digest: bytes, canonical: bytes) -> Survey:
        """Return a survey from the store, or raise StoreError if its bytes are damaged."""
        try:
            survey = Survey.from_json(canonical)
        except DeniableError:
            survey = None
        if survey is None or survey.digest != digest:
            raise StoreError(
                f"{self.url}: the survey with digest {digest.hex()[:12]} is damaged: restore the "
                "backup"
            )
        return survey

    def _survey(self, digest: bytes) -> Survey:
        """Return the survey with this digest, or raise UnknownSurvey."""
        if digest not in self._known:
            surveys = self.surveys()  # another process may have added it
            if digest not in self._known:
                known = ", ".join(f"{s.name} v{s.version}" for s in surveys) or "no surveys"
                raise UnknownSurvey(
                    f"{self.url} has no survey with digest {digest.hex()[:12]}; it has {known}"
                )
        return self._known[digest]

    def _is_new(self, survey: Survey, published: Iterable[bytes]) -> bool:
        """Return whether the survey must be added.

        Raise InputError if `published`, the canonical JSON of the surveys in the store, holds a
        different survey of the same name and version, or a survey of this name of which only one
        of the two is for testing: people ask for the newest version of a name.
        """
        for canonical in published:
            if canonical == survey.canonical:
                return False
            other = Survey.from_json(canonical)
            if other.name == survey.name and other.testing != survey.testing:
                real, test = (survey, other) if other.testing else (other, survey)
                raise InputError(
                    f"{self.url} cannot hold both survey {real.name!r} v{real.version} and v"
                    f"{test.version}, which is for testing: keep test data in a separate store"
                )
            if (other.name, other.version) == (survey.name, survey.version):
                raise InputError(
                    f"{self.url} has a different survey {survey.name!r} v{survey.version}, with "
                    f"digest {other.digest.hex()}: give the changed survey a new version"
                )
        return True

    def _check_uploads(self, uploads: Sequence[Upload]) -> None:
        """Raise unless the survey of each upload is known and its bodies have the right size."""
        for upload in uploads:
            survey = self._survey(upload.digest)
            if len(upload.bodies) != upload.reports * survey.body_size:
                raise InputError(
                    f"expected {upload.reports * survey.body_size} bytes for {upload.reports} "
                    f"reports of {survey}, got {len(upload.bodies)}"
                )

    # --- reading ---------------------------------------------------------------------------------

    def days(self, survey: SurveyOrPath) -> dict[date, int]:
        """Return the number of reports per day.

        Parameters
        ----------
        survey : Survey, str or Path
            Survey whose reports are counted, or the path of its file.

        Returns
        -------
        dict of date to int
            Number of reports of each day that has any, in the order of the days.
        """
        survey = Survey.of(survey)
        self._survey(survey.digest)
        every, tables = day_range(survey, date.min, date.max), self._tables
        return self._read(lambda db: _days(db, every, tables))

    @property
    def _tables(self) -> tuple[str, ...]:
        """Tables of the reports that are read."""
        return ("segment",) if self.compacted_only else ("segment", "staged")

    def waiting(self, survey: SurveyOrPath) -> int:
        """Return the number of reports that are staged, because they wait to be shuffled.

        Parameters
        ----------
        survey : Survey, str or Path
            Survey whose reports are counted, or the path of its file.

        Returns
        -------
        int
            Number of reports that analysts of a collector do not see yet.
        """
        survey = Survey.of(survey)
        self._survey(survey.digest)
        every = day_range(survey, date.min, date.max)
        return sum(self._read(lambda db: _days(db, every, ("staged",))).values())

    def snapshot(
        self, survey: SurveyOrPath, *, since: Day | None = None, until: Day | None = None
    ) -> Snapshot:
        """Return the survey's reports as they are now, to be read any number of times.

        Uploads and compactions that happen later do not change the snapshot.

        Parameters
        ----------
        survey : Survey, str or Path
            Survey whose reports are read, or the path of its file.
        since : date or str, optional
            First day; by default, the first day with reports.
        until : date or str, optional
            Last day, inclusive; by default, the last day with reports.

        Returns
        -------
        Snapshot
            Reports of these days.
        """
        survey = Survey.of(survey)
        first, last = as_optional_day("since", since), as_optional_day("until", until)
        self._survey(survey.digest)
        chosen = day_range(survey, first or date.min, last or date.max)

        def take(db: Session) -> Snapshot:
            names = db.rows(f"SELECT name FROM segment WHERE {IN_DAYS}", chosen)
            days = _days(db, chosen, ("segment",))
            damaged: list[StagedRow] = []
            rows = iter(list[StagedRow]())
            if not self.compacted_only:
                rows = staged_rows.intact_rows(db, damaged)
            bodies = _bodies(rows, chosen, days)
            found = Snapshot(survey, days, self._location, (name for (name,) in names), bodies)
            found.damage = staged_rows.damage(db, damaged, self._known)
            return found

        return self._read(take)

    def scan(
        self,
        survey: SurveyOrPath,
        *,
        since: Day | None = None,
        until: Day | None = None,
        rows: int = MAX_BATCH_ROWS,
    ) -> Iterator[ReportBatch]:
        """Yield the survey's reports, each once, in an order without meaning.

        Parameters
        ----------
        survey : Survey, str or Path
            Survey whose reports are read, or the path of its file.
        since : date or str, optional
            First day; by default, the first day with reports.
        until : date or str, optional
            Last day, inclusive; by default, the last day with reports.
        rows : int, default 262144
            Largest number of reports per batch.

        Yields
        ------
        ReportBatch
            At most `rows` reports.
        """
        snapshot = self.snapshot(survey, since=since, until=until)
        snapshot.warn()
        yield from snapshot.batches(rows)

    def _rows(self, statement: str) -> list[Row]:
        """Return the rows of a query in a new transaction."""
        return self._read(lambda db: db.rows(statement))

    # --- maintenance -----------------------------------------------------------------------------

    def compact(self, *, at_least: int = MIN_SHUFFLED, today: Day | None = None) -> Compacted:
        """Shuffle staged reports into segments, and delete them from staging for good.

        A batch is compacted once at least `at_least` reports of other uploads of the same survey
        and day can be shuffled with it. When a day is over, its remaining batches are shuffled with
        those of the next day that has any, and count as reports of that day. A process that is
        killed at any point neither loses nor duplicates reports.

        Parameters
        ----------
        at_least : int, default 1000
            Minimum number of other reports that every batch is shuffled with.
        today : date or str, optional
            Current day; by default, today in UTC.

        Returns
        -------
        Compacted
            Number of segments, of compacted reports and of reports that are still staged.
        """
        rule = (at_least, as_optional_day("today", today) or clock.today(), self._survey)
        with self._exclusive() as write:
            delete_loose_files(write, self._location)
            compacted = Compaction(*rule, self._read, write, self._location).run()
            self._purge()
        return compacted

    def delete(self, survey: SurveyOrPath, *, before: Day | None = None) -> int:
        """Delete reports of a survey.

        Parameters
        ----------
        survey : Survey, str or Path
            Survey whose reports are deleted, or the path of its file.
        before : date or str, optional
            Delete only reports from before this day; by default, delete all.

        Returns
        -------
        int
            Number of deleted reports.
        """
        survey, end = Survey.of(survey), as_optional_day("before", before) or date.max
        self._survey(survey.digest)
        values = (survey.digest, end.isoformat())
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

    def forget(self, before: Day) -> int:
        """Forget the idempotency keys of old uploads, whose repeats are then no longer recognised.

        Parameters
        ----------
        before : date or str
            Forget the keys of uploads from before this day.

        Returns
        -------
        int
            Number of forgotten keys.
        """
        day = as_day("before", before)
        edges = [*(bytes([first]) for first in range(FORGET_SLICES)), b"\xff" * 17]
        return sum(self._forget_slice(start, end, day) for start, end in pairwise(edges))

    def _forget_slice(self, start: bytes, end: bytes, before: date) -> int:
        """Forget old keys among the names from `start` to `end`."""
        values = (start, end, before.isoformat())
        statement = "DELETE FROM upload WHERE name >= ? AND name < ? AND day < ?"
        return self._write(lambda db: db.run(statement, values))

    def today(self) -> Today:
        """Return the day that counts.

        Returns
        -------
        Today
            The day, and why the clock is not trusted; see `store.clock`.
        """
        return day_that_counts(clock.today(), self._read(lambda db: read_setting(db, LAST_DAY)))

    def move_day(self, clock_is_right: bool = False) -> str:
        """Move the last day on which a collector used the store to today, if the clock is trusted.

        Parameters
        ----------
        clock_is_right : bool, default False
            Trust the clock, whatever it shows.

        Returns
        -------
        str
            Last day, as text.
        """

        def move(db: Session) -> str:
            stored = None if clock_is_right else read_setting(db, LAST_DAY)
            day, doubt = day_that_counts(clock.today(), stored)
            if stored is not None and (doubt or stored == day.isoformat()):
                return stored
            write_setting(db, LAST_DAY, day.isoformat())
            return day.isoformat()

        return self._write(move)

    def damage(self) -> list[str]:
        """Read all staged reports, and return what is damaged or known to be lost.

        Returns
        -------
        list of str
            One sentence per damaged upload, and per loss of uploads.
        """
        known = self._surveys_by_digest()
        return self._read(lambda db: staged_rows.damage(db, staged_rows.damaged_rows(db), known))

    def delete_damaged(self) -> list[str]:
        """Delete damaged uploads, and no longer mention losses.

        Returns
        -------
        list of str
            Sentences that `damage` no longer returns.
        """
        known = self._surveys_by_digest()

        def drop(db: Session) -> list[str]:
            damaged = staged_rows.damaged_rows(db)
            sentences = staged_rows.damage(db, damaged, known)
            staged_rows.keep_last_number(db)
            for marks, ids in sql_lists([row.id for row in damaged]):
                db.run(f"DELETE FROM staged WHERE id IN {marks}", ids)
            write_setting(db, staged_rows.LOSSES, None)
            return sentences

        with self._exclusive() as write:
            ended = write(drop)
            self._purge()
        return ended

    def check(self) -> list[str]:
        """Read everything and return what is wrong with the store.

        Returns
        -------
        list of str
            One sentence per problem; empty if there is none.
        """
        with self._exclusive():
            problems, known = self._check_database(), self._surveys_by_digest()
            problems += self.damage()
            segments = self._rows("SELECT name, survey, reports, sha256 FROM segment ORDER BY name")
            for name, digest, reports, sha256 in segments:
                problems += check_segment(self._location, name, known.get(digest), reports, sha256)
        return problems

    def backup(self, to: str | Path) -> None:
        """Copy the store, as it is at one moment, to a new store; uploads may go on meanwhile.

        Parameters
        ----------
        to : str or Path
            URL or path of the copy, which must be empty or not exist.

        Raises
        ------
        StoreError
            If a segment is damaged, or the copy has surveys.
        """
        # The segments are copied first, after their names were added to the target's `loose`. One
        # transaction then copies the rows. If the process is killed before that, the target is an
        # empty store, and its next compaction or backup deletes the copied files.
        with deniable.store.open(to, create=True) as target:
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
                known = self._surveys_by_digest()
                self._read(
                    lambda source: target._write(lambda copy: _copy_tables(source, copy, known))
                )
                target._acknowledge(target._read(staged_rows.last_number))

    def room(self) -> int | None:
        """Return the free space where the store writes.

        Returns
        -------
        int or None
            Free bytes, or None if they cannot be determined.
        """
        return None

    def check_files(self) -> None:
        """Raise StoreError if files in use were deleted or replaced, so that writing is in vain."""
        return

    def check_writable(self) -> None:
        """Raise StoreError if nothing can be written now; the content stays as it is."""
        statement = "UPDATE setting SET value = value WHERE name = ?"
        self._write(lambda db: db.run(statement, (LAST_DAY,)))

    @abstractmethod
    def close(self) -> None:
        """Close files and connections."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _segment_location(self, segments: str | None) -> Location:
        """Return the location of the segments; record it if `segments` names a new one."""
        rows = self._rows("SELECT value FROM setting WHERE name = 'segments'")
        recorded = rows[0][0] if rows else None
        if segments is None:
            return location_of(recorded) if recorded else self._default_location()
        chosen = location_of(segments)
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


def _copy_tables(source: Session, copy: Session, known: KnownSurveys) -> None:
    """Copy the rows of a backup to another database; of damaged ones, only what is said of them."""
    for table, columns in BACKUP_TABLES.items():
        insert_rows(copy, table, columns, source.stream(f"SELECT {columns} FROM {table}"))
    damaged: list[StagedRow] = []
    rows = staged_rows.intact_rows(source, damaged)
    insert_rows(copy, "staged", STAGED_COLUMNS, (row[1:] for row in rows))
    staged_rows.note_losses(copy, staged_rows.damage(source, damaged, known))
    write_setting(copy, LAST_DAY, read_setting(source, LAST_DAY))
    write_setting(copy, staged_rows.LAST_NUMBER, str(staged_rows.last_number(source)))
    copy.run("DELETE FROM loose")


def _days(db: Session, days: tuple[bytes, str, str], tables: Sequence[str]) -> dict[date, int]:
    """Return the number of reports per day in some tables."""
    every = " UNION ALL ".join(f"SELECT day, reports FROM {t} WHERE {IN_DAYS}" for t in tables)
    rows = db.rows(
        f"SELECT day, sum(reports) FROM ({every}) AS every GROUP BY day ORDER BY day",
        days * len(tables),
    )
    found = {}
    for day, count in rows:
        with suppress(TypeError, ValueError):  # the day of a damaged upload
            found[date.fromisoformat(day)] = int(count)
    return found


def _bodies(
    rows: Iterable[StagedRow], chosen: tuple[bytes, str, str], days: dict[date, int]
) -> Iterator[bytes]:
    """Yield the bodies of the reports of chosen rows, and count them in `days`.

    chosen : digest of the survey, first and last day
    """
    digest, first, last = chosen
    for row in rows:
        if row.survey == digest and first <= row.day <= last:
            day = date.fromisoformat(row.day)
            days[day] = days.get(day, 0) + row.reports
            yield row.bodies
