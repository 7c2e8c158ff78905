"""Reports in one SQLite file: write-ahead log, synced at every commit, one writer at a time.

An upload is one row, its reports one blob; what arrives together is committed together.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Self

from deniable.columns import ReportBatch
from deniable.columns.wire import from_bodies
from deniable.errors import InputError, StoreError, StoreFull, StoreUnavailable, UnknownSurvey
from deniable.store.base import ROWS, Outcome, Upload
from deniable.survey import Survey

SCHEMA = """
CREATE TABLE survey (digest BLOB PRIMARY KEY, canonical BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE upload (name BLOB PRIMARY KEY, seal BLOB NOT NULL, day TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE staged (
    id INTEGER PRIMARY KEY, survey BLOB NOT NULL REFERENCES survey, day TEXT NOT NULL,
    reports INTEGER NOT NULL, bodies BLOB NOT NULL
);
"""
VERSION = 1


def path_of(url: str) -> Path:
    """The file that `sqlite:///…` names; a plain path is itself."""
    return Path(url.removeprefix("sqlite:///"))


class SqliteStore:
    """See `store.base.Store`."""

    def __init__(self, url: str, *, create: bool = False) -> None:
        self.path = path_of(url)
        self.url = f"sqlite:///{self.path}"
        if not self.path.exists() and not create:
            raise StoreError(f"there is no store at {self.path}: create it, or give its path")
        self._lock = Lock()
        self._surveys: dict[bytes, Survey] = {}
        self._writer = self._connect()
        with self._writing():
            if self._writer.execute("PRAGMA user_version").fetchone()[0] == 0:
                for statement in SCHEMA.split(";"):
                    self._writer.execute(statement)
                self._writer.execute(f"PRAGMA user_version = {VERSION}")
        self.surveys()

    def _connect(self) -> sqlite3.Connection:
        with _translated(self.path):
            db = sqlite3.connect(
                self.path, isolation_level=None, check_same_thread=False, timeout=30
            )
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = FULL")
            db.execute("PRAGMA secure_delete = ON")
        return db

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._lock, _translated(self.path):
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                yield self._writer
                self._writer.execute("COMMIT")
            except BaseException:
                if self._writer.in_transaction:
                    self._writer.execute("ROLLBACK")
                raise

    def append(self, uploads: Sequence[Upload]) -> list[Outcome]:
        """Stage all of them in one transaction, which is durable when this returns."""
        for upload in uploads:
            survey = self._survey(upload.digest)
            if len(upload.bodies) != upload.reports * survey.body_size:
                raise InputError(
                    f"expected {upload.reports * survey.body_size} bytes for {upload.reports} "
                    f"reports of {survey!r}, got {len(upload.bodies)}"
                )
        with self._writing() as db:
            return [self._stage(db, upload) for upload in uploads]

    def _stage(self, db: sqlite3.Connection, upload: Upload) -> Outcome:
        name, seal = upload.receipt
        day = upload.day.isoformat()
        added = db.execute("INSERT OR IGNORE INTO upload VALUES (?, ?, ?)", (name, seal, day))
        if added.rowcount == 0:
            kept = db.execute("SELECT seal FROM upload WHERE name = ?", (name,)).fetchone()
            return Outcome.REPEATED if kept[0] == seal else Outcome.CONFLICT
        db.execute(
            "INSERT INTO staged (survey, day, reports, bodies) VALUES (?, ?, ?, ?)",
            (upload.digest, day, upload.reports, upload.bodies),
        )
        return Outcome.STORED

    def _survey(self, digest: bytes) -> Survey:
        if digest not in self._surveys:
            self.surveys()
        if digest not in self._surveys:
            raise UnknownSurvey(f"digest {digest.hex()} is none of the surveys in {self.url}")
        return self._surveys[digest]

    def add_survey(self, survey: Survey) -> None:
        """Keep the published survey; its reports can be appended from now on."""
        with self._writing() as db:
            row = (survey.digest, survey.canonical)
            db.execute("INSERT OR IGNORE INTO survey VALUES (?, ?)", row)
        self._surveys[survey.digest] = survey

    def surveys(self) -> list[Survey]:
        """Every survey kept, by name and version."""
        with self._lock, _translated(self.path):
            rows = self._writer.execute("SELECT canonical FROM survey").fetchall()
        for (canonical,) in rows:
            survey = Survey.from_json(canonical)
            self._surveys[survey.digest] = survey
        return sorted(self._surveys.values(), key=lambda s: (s.name, s.version))

    def days(self, survey: Survey) -> dict[date, int]:
        """The number of reports of each day that has some."""
        with self._lock, _translated(self.path):
            rows = self._writer.execute(
                "SELECT day, sum(reports) FROM staged WHERE survey = ? GROUP BY day ORDER BY day",
                (survey.digest,),
            ).fetchall()
        return {date.fromisoformat(day): count for day, count in rows}

    def scan(
        self, survey: Survey, *, since: date | None = None, until: date | None = None,
        rows: int = ROWS,
    ) -> Iterator[ReportBatch]:  # fmt: skip
        """Every report from `since` to `until`, both included, once, at most `rows` at a time."""
        self._survey(survey.digest)
        first, last = since or date.min, until or date.max
        db = self._connect()
        try:
            found = db.execute(
                "SELECT bodies FROM staged WHERE survey = ? AND day BETWEEN ? AND ?",
                (survey.digest, first.isoformat(), last.isoformat()),
            )
            for (bodies,) in found:
                batch = from_bodies(bodies, survey)
                for start in range(0, len(batch), rows):
                    yield batch.select(slice(start, start + rows))
        finally:
            db.close()

    def close(self) -> None:
        """Let go of files and connections."""
        with self._lock:
            self._writer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    """SQLite's errors as ours."""
    try:
        yield
    except sqlite3.OperationalError as error:
        text = str(error)
        if "full" in text:
            raise StoreFull(f"no room left for {path}: {text}; free some space") from error
        if "locked" in text or "busy" in text:
            raise StoreUnavailable(f"{path} is in use elsewhere: {text}; try again") from error
        raise StoreError(f"{path}: {text}") from error
    except sqlite3.DatabaseError as error:
        raise StoreError(f"{path} is not a store, or is damaged: {error}") from error
