"""What the stores in a database have in common: everything but the database. Its tables:

survey    published surveys
upload    name and seal of every upload, to know it again
staged    uploads as they came: one row, one blob
segment   the segments that are part of the store
loose     files that may exist and are not part of the store: see `compaction`
setting   where the segments are
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from datetime import date
from functools import partial
from pathlib import Path

from deniable.errors import StoreError
from deniable.store.base import AT_LEAST, Compacted, Outcome, Upload
from deniable.store.base_store import BaseStore, check_at_least, tell_apart, this_day
from deniable.store.places import Place, folder
from deniable.store.segments import problems
from deniable.store.snapshot import Snapshot
from deniable.store.sql.compaction import Compaction, recorded, sweep
from deniable.store.sql.sessions import Session, Transact, listed
from deniable.survey import Survey

SLICES = 256
EVERYTHING = """
    SELECT day, reports FROM staged WHERE survey = ? AND day BETWEEN ? AND ? UNION ALL
    SELECT day, reports FROM segment WHERE survey = ? AND day BETWEEN ? AND ?"""


class SqlStore(BaseStore):
    """See `store.base.Store`; a subclass supplies transactions and a lock."""

    _write: Transact
    _read: Transact

    def __init__(self, url: str, segments: str | None) -> None:
        """`segments` : where they shall be; None for where they are, or the default."""
        super().__init__(url)
        self._place = self._settle(segments)

    # --- what a subclass supplies ----------------------------------------------------------------

    @abstractmethod
    def _alone(self) -> AbstractContextManager[Transact]:
        """The only one to compact, delete or back up; transactions that fail if it no longer is."""

    @abstractmethod
    def _purge(self) -> None:
        """Make deleted bytes disappear from the database's files, as far as it can."""

    @abstractmethod
    def _check_database(self) -> list[str]:
        """What the database itself finds wrong."""

    @abstractmethod
    def _default_place(self) -> Place:
        """Where segments are if nothing was said."""

    # --- uploads ---------------------------------------------------------------------------------

    def append(self, uploads: Sequence[Upload]) -> list[Outcome]:
        """Stage all of them in one transaction, which is durable when this returns."""
        self._check_uploads(uploads)
        receipts = [upload.receipt for upload in uploads]

        def stage(db: Session) -> list[Outcome]:
            seals: dict[bytes, bytes] = {}
            for marks, names in listed([name for name, _ in receipts]):
                found = db.rows(f"SELECT name, seal FROM upload WHERE name IN {marks}", names)
                seals.update(found)
            outcomes, new = tell_apart(receipts, seals)
            days = [upload.day.isoformat() for upload in uploads]
            db.many(
                "INSERT INTO upload (name, seal, day) VALUES (?, ?, ?)",
                [(*receipts[i], days[i]) for i in new],
            )
            db.many(
                "INSERT INTO staged (survey, day, reports, bodies) VALUES (?, ?, ?, ?)",
                [(uploads[i].digest, days[i], uploads[i].reports, uploads[i].bodies) for i in new],
            )
            return outcomes

        return self._write(stage)

    def forget(self, before: date) -> int:
        """Forget the idempotency keys of uploads before that day; says how many.

        A slice of the names at a time, so that uploads never wait long.
        """
        forgotten = 0
        for first in range(SLICES):
            start, end = bytes([first]), bytes([first + 1]) if first < SLICES - 1 else b"\xff" * 17
            which = (start, end, before.isoformat())
            forgotten += self._write(partial(_forget, which=which))
        return forgotten

    # --- surveys ---------------------------------------------------------------------------------

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
        return self._read(lambda db: db.rows("SELECT digest, canonical FROM survey"))

    # --- reading ---------------------------------------------------------------------------------

    def days(self, survey: Survey) -> dict[date, int]:
        """The number of reports of each day that has some."""
        self._survey(survey.digest)
        return self._read(lambda db: _days(db, survey, date.min, date.max))

    def snapshot(
        self, survey: Survey, *, since: date | None = None, until: date | None = None
    ) -> Snapshot:
        """The survey's reports as they are now, to be read several times."""
        self._survey(survey.digest)
        first, last = since or date.min, until or date.max
        which = (survey.digest, first.isoformat(), last.isoformat())

        def take(db: Session) -> Snapshot:
            names = db.rows(
                "SELECT name FROM segment WHERE survey = ? AND day BETWEEN ? AND ?", which
            )
            found = Snapshot(survey, self._place, _days(db, survey, first, last))
            staged = db.stream(
                "SELECT bodies FROM staged WHERE survey = ? AND day BETWEEN ? AND ?", which
            )
            return found.take((name for (name,) in names), (bodies for (bodies,) in staged))

        return self._read(take)

    # --- keeping house ---------------------------------------------------------------------------

    def compact(self, *, at_least: int = AT_LEAST, today: date | None = None) -> Compacted:
        """Shuffle what is staged into segments, and delete it from staging for good."""
        check_at_least(at_least)
        with self._alone() as write:
            sweep(write, self._place)
            groups = self._read(
                lambda db: db.rows("SELECT survey, day, max(id) FROM staged GROUP BY survey, day")
            )
            newest = max((last for *_, last in groups), default=0)
            compaction = Compaction(
                write, self._read, self._place, at_least, today or this_day(), newest
            )
            for digest, day, _ in groups:
                compaction.compact_day(self._survey(digest), date.fromisoformat(day))
            self._purge()
        return compaction.done()

    def delete(self, survey: Survey, *, before: date | None = None) -> int:
        """Delete the survey's reports, of all days or of those before one; says how many."""
        self._survey(survey.digest)
        which = (survey.digest, (before or date.max).isoformat())
        until = "survey = ? AND day < ?"

        def drop(db: Session) -> int:
            count = "SELECT coalesce(sum(reports), 0) FROM"
            (staged,), (kept,) = (
                db.rows(f"{count} {table} WHERE {until}", which)[0]
                for table in ("staged", "segment")
            )
            db.run(f"INSERT INTO loose (name) SELECT name FROM segment WHERE {until}", which)
            for table in ("staged", "segment"):
                db.run(f"DELETE FROM {table} WHERE {until}", which)
            return int(staged) + int(kept)

        with self._alone() as write:
            deleted = write(drop)
            sweep(write, self._place)
            self._purge()
        return deleted

    def backup(self, to: str | Path) -> None:
        """Copy everything, as it is at one moment, to a new store in a database."""
        from deniable.store.sql.backup import backup

        backup(self, to)

    def check(self) -> list[str]:
        """Everything that is wrong with the store: none, if all is well."""
        with self._alone():
            found = self._check_database()
            staged = self._read(
                lambda db: db.rows("SELECT survey, reports, length(bodies) FROM staged")
            )
            known = {s.digest: s for s in self.surveys()}
            for digest, reports, size in staged:
                if digest not in known:
                    found.append(f"an upload is of survey {digest.hex()}, which is not kept")
                elif size != reports * known[digest].body_size:
                    found.append(
                        f"an upload of {known[digest]!r} has {size} bytes, expected "
                        f"{reports * known[digest].body_size} for {reports} reports"
                    )
            for segment in self._read(recorded):
                found += problems(self._place, segment)
        return found

    def _settle(self, segments: str | None) -> Place:
        """Find out, or note, where the segments are."""
        rows = self._read(lambda db: db.rows("SELECT value FROM setting WHERE name = 'segments'"))
        kept = rows[0][0] if rows else None
        if segments is None:
            return folder(kept) if kept else self._default_place()
        asked = folder(segments)
        if asked.url == kept:
            return asked

        def note(db: Session) -> None:
            if db.rows("SELECT name FROM segment LIMIT 1"):
                where = kept or self._default_place().url
                raise StoreError(
                    f"{self.url} has segments at {where}, expected none before they can be kept at "
                    f"{asked.url}: leave segments= out"
                )
            db.run("DELETE FROM setting WHERE name = 'segments'")
            db.run("INSERT INTO setting (name, value) VALUES ('segments', ?)", (asked.url,))

        self._write(note)
        return asked


def _forget(db: Session, which: tuple[bytes, bytes, str]) -> int:
    return db.run("DELETE FROM upload WHERE name >= ? AND name < ? AND day < ?", which)


def _days(db: Session, survey: Survey, first: date, last: date) -> dict[date, int]:
    which = (survey.digest, first.isoformat(), last.isoformat())
    rows = db.rows(
        f"SELECT day, sum(reports) FROM ({EVERYTHING}) AS every GROUP BY day ORDER BY day",
        which * 2,
    )
    return {date.fromisoformat(day): int(count) for day, count in rows}
