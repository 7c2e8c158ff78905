"""Reports in one SQLite file: write-ahead log, synced at every commit, one writer at a time.

What is deleted is overwritten in the file, and the log is emptied after every compaction. Segments
stand in a folder beside the file, unless `?segments=URL` says otherwise.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Lock
from typing import ClassVar
from urllib.parse import parse_qs

from deniable.client.files import PRIVATE_MODE, locked, sync_folder
from deniable.errors import InputError, StoreError, StoreFull, StoreUnavailable
from deniable.store.locations import LocalFolder, Location
from deniable.store.sql.database import Row, Session, T, Transact
from deniable.store.sql.sql_store import SqlStore

PATIENCE_S = 30.0
PURGE_TRIES = 20
PURGE_WAIT_MS = 50
SETTINGS = {
    "journal_mode": "WAL",
    "synchronous": "FULL",
    "secure_delete": "ON",
    "foreign_keys": "ON",
    "wal_autocheckpoint": 4000,  # pages, 16 MB: the log is then written back to the file
}
VACUUM_PAGES = 2000
"""Pages given back to the disk in one transaction, so that uploads never wait long."""


def parse(url: str) -> tuple[Path, str | None]:
    """The file, and where the segments shall be if it is said: `sqlite:///FILE[?segments=URL]`."""
    text, _, query = url.removeprefix("sqlite:///").partition("?")
    settings = parse_qs(query, strict_parsing=bool(query))
    if not text or "sqlite:" in text or settings.keys() - {"segments"}:
        raise InputError(f"expected sqlite:///FILE.db or …?segments=URL, got {url!r}")
    return Path(text), settings.get("segments", [None])[0]


class SqliteStore(SqlStore):
    """See `store.base.Store`."""

    def __init__(self, url: str, *, create: bool = False) -> None:
        self.path, segments = parse(url)
        if not self.path.exists():
            if not create:
                raise StoreError(f"there is no store at {self.path}: collect or import into it")
            _create(self.path)
        self._lock = Lock()
        self._writer = _connect(self.path)
        super().__init__(f"sqlite:///{self.path}", segments, create=True)

    words: ClassVar = {"blob": "BLOB", "serial": "INTEGER", "sorted": " WITHOUT ROWID"}

    def _version(self, db: Session) -> int:
        version = int(db.rows("PRAGMA user_version")[0][0])
        if version == 0 and db.rows("SELECT name FROM sqlite_schema LIMIT 1"):
            raise StoreError(
                f"{self.path} has tables of something else: expected a store, or an empty file"
            )
        return version

    def _set_version(self, db: Session, version: int) -> None:
        db.run(f"PRAGMA user_version = {version}")

    # --- transactions ----------------------------------------------------------------------------

    def _write(self, work: Callable[[Session], T]) -> T:
        with self._lock, _transaction(self._writer, "BEGIN IMMEDIATE", self.path) as db:
            return work(db)

    def _read(self, work: Callable[[Session], T]) -> T:
        with (
            closing(_connect(self.path)) as connection,
            _transaction(connection, "BEGIN", self.path) as db,
        ):
            return work(db)

    @contextmanager
    def _exclusive(self) -> Iterator[Transact]:
        with locked(self.path):
            yield self._write

    # --- keeping house ---------------------------------------------------------------------------

    def _purge(self) -> None:
        """Give freed pages back to the disk, then empty the log: it still has what was deleted.

        A reader elsewhere keeps the log as it is; the next compaction tries again.
        """
        while True:
            with self._lock, _translated(self.path):
                (free,) = self._writer.execute("PRAGMA freelist_count").fetchone()
                # Only a script is stepped to its end: otherwise one page goes at a time.
                self._writer.executescript(f"PRAGMA incremental_vacuum({VACUUM_PAGES})")
                (left,) = self._writer.execute("PRAGMA freelist_count").fetchone()
            if left == 0 or left == free:
                break
        with closing(_connect(self.path)) as db, _translated(self.path):
            db.execute(f"PRAGMA busy_timeout = {PURGE_WAIT_MS}")
            for _ in range(PURGE_TRIES):
                (busy, *_) = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                if not busy:
                    break

    def _check_database(self) -> list[str]:
        with closing(_connect(self.path)) as db, _translated(self.path):
            found = [text for (text,) in db.execute("PRAGMA integrity_check")]
        return [] if found == ["ok"] else found

    def _default_location(self) -> Location:
        return LocalFolder(self.path.with_suffix(".segments"))

    def room(self) -> int | None:
        """Bytes left on the file's disk."""
        return LocalFolder(self.path.parent).room()

    def close(self) -> None:
        """Let go of the file; the last to do so writes the log back into it."""
        with self._lock:
            self._writer.close()


class _SqliteSession:
    """See `database.Session`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def run(self, statement: str, values: Row = ()) -> int:
        return self._connection.execute(statement, values).rowcount

    def many(self, statement: str, rows: Iterable[Row]) -> None:
        self._connection.executemany(statement, rows)

    def rows(self, statement: str, values: Row = ()) -> list[Row]:
        return self._connection.execute(statement, values).fetchall()

    def stream(self, statement: str, values: Row = ()) -> Iterator[Row]:
        return self._connection.execute(statement, values)


def _create(path: Path) -> None:
    """A file without tables that only its owner can read; it can give space back to the disk."""
    if not path.parent.is_dir():
        raise StoreError(f"there is no folder {path.parent} for the store {path.name}")
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT, PRIVATE_MODE))
    with closing(sqlite3.connect(path)) as connection, _translated(path):
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        connection.execute("PRAGMA journal_mode = WAL")
    sync_folder(path.parent)


def _connect(path: Path) -> sqlite3.Connection:
    with _translated(path):
        url = f"{path.absolute().as_uri()}?mode=rw"
        connection = sqlite3.connect(
            url, timeout=PATIENCE_S, isolation_level=None, check_same_thread=False, uri=True
        )
        try:
            for name, value in SETTINGS.items():
                connection.execute(f"PRAGMA {name} = {value}").fetchall()
        except BaseException:
            connection.close()
            raise
    return connection


@contextmanager
def _transaction(connection: sqlite3.Connection, begin: str, path: Path) -> Iterator[Session]:
    # The connection commits at the end, or rolls back what a failure has not rolled back already.
    with _translated(path), connection:
        connection.execute(begin)
        yield _SqliteSession(connection)


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    """SQLite's errors as ours."""
    try:
        yield
    except sqlite3.OperationalError as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_FULL:
            raise StoreFull(f"no room left for {path}: free some space") from error
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise StoreUnavailable(f"{path} is in use elsewhere: {error}; try again") from error
        raise StoreError(f"{path}: {error}") from error
    except sqlite3.DatabaseError as error:
        raise StoreError(f"{path} is not a store, or is damaged: {error}") from error
    except sqlite3.ProgrammingError as error:
        raise StoreError(f"{path} was closed: {error}") from error
