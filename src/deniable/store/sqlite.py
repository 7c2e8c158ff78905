"""A store in a SQLite file with a write-ahead log, which is synced at every commit.

One connection writes at a time. Deleted data is overwritten in the file, and the log is emptied
after every compaction. Segments are in a folder next to the file, unless `?segments=URL` names
another. Several processes on one machine may use the file at the same time.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Lock
from typing import ClassVar
from urllib.parse import parse_qs

from deniable.client.files import PRIVATE_MODE, sync_folder
from deniable.errors import (
    InputError,
    StoreError,
    StoreForbidden,
    StoreFull,
    StoreReplaced,
    StoreUnavailable,
)
from deniable.store import staged_rows
from deniable.store.acknowledged import Acknowledged
from deniable.store.base import Store
from deniable.store.database import Row, Session, T, Transact, insert_rows
from deniable.store.locations import LocalFolder, Location, lock_of
from deniable.store.staged_rows import StagedRow

LOCK_TIMEOUT_SECONDS = 30.0
"""How long a transaction waits for another process to finish writing."""
PURGE_ATTEMPTS = 20
PURGE_WAIT_MS = 50
"""How often and how long emptying the log waits for readers."""
PRAGMAS = {
    "journal_mode": "WAL",
    "synchronous": "FULL",
    "secure_delete": "ON",
    "foreign_keys": "ON",
    "wal_autocheckpoint": 4000,  # pages, 16 MB: then the log is written back to the file
}
FileIdentity = tuple[int, int] | None
VACUUM_PAGES = 2000
"""Pages returned to the file system per transaction, so that uploads never wait long."""


def parse(url: str) -> tuple[Path, str | None]:
    """Return the file and the URL of the segments, if any, of `sqlite:///FILE[?segments=URL]`."""
    text, _, query = url.removeprefix("sqlite:///").partition("?")
    settings = parse_qs(query, keep_blank_values=True)
    if not text or "sqlite:" in text or settings.keys() - {"segments"}:
        raise InputError(f"expected sqlite:///FILE.db, perhaps with ?segments=URL, got {url!r}")
    return Path(text), settings.get("segments", [""])[0] or None


class SqliteStore(Store):
    """A store in a SQLite file; see `store.base.Store`."""

    def __init__(self, url: str, *, create: bool = False) -> None:
        self.path, segments = parse(url)
        self._acknowledged = Acknowledged(self.path)
        if not self.path.exists():
            if not create:
                raise StoreError(f"there is no store {self.path}: collect or import reports first")
            self._acknowledged.remove()
            _create_file(self.path)
        elif not (create and _is_blank(self.path)):
            _check_is_store(self.path)
        self._lock = Lock()
        self._writer = _connect(self.path)
        self._files: list[FileIdentity] = []
        super().__init__(f"sqlite:///{self.path}", segments, create=True)
        if self._acknowledged.read() is None:
            self._acknowledged.create(self._read(staged_rows.last_number))
        self._files = _identities(self.path)

    type_names: ClassVar = {"blob": "BLOB", "serial": "INTEGER", "sorted": " WITHOUT ROWID"}

    def _migrate(self, db: Session, create: bool) -> None:
        """Upgrade the tables, then note which acknowledged uploads are not there."""
        super()._migrate(db, create)
        staged_rows.note_lost(db, self._acknowledged.read())

    def _version(self, db: Session) -> int:
        version = int(db.rows("PRAGMA user_version")[0][0])
        if version == 0 and db.rows("SELECT name FROM sqlite_schema LIMIT 1"):
            raise StoreError(f"{self.path} is a database of another program, not a store")
        return version

    def _set_version(self, db: Session, version: int) -> None:
        db.run(f"PRAGMA user_version = {version}")

    # --- transactions ----------------------------------------------------------------------------

    def _write(self, work: Callable[[Session], T]) -> T:
        """Run a transaction on the one connection that writes; see `database.Transact`."""
        with self._lock:
            with _transaction(self._writer, "BEGIN IMMEDIATE", self.path) as db:
                result = work(db)
            self.check_files()
        return result

    def _read(self, work: Callable[[Session], T]) -> T:
        """Run a read-only transaction on a new connection."""
        with (
            closing(_connect(self.path)) as connection,
            _transaction(connection, "BEGIN", self.path) as db,
        ):
            return work(db)

    @contextmanager
    def _exclusive(self) -> Iterator[Transact]:
        """Lock out other compactions, deletions and backups, in this process and others."""
        with lock_of(self.path):
            yield self._write

    def _insert_staged(self, db: Session, rows: Sequence[StagedRow]) -> int:
        """Insert rows with the next numbers; return the last one."""
        first = staged_rows.last_number(db) + 1
        numbered = [(number, *row[1:]) for number, row in enumerate(rows, first)]
        insert_rows(db, "staged", staged_rows.COLUMNS, numbered)
        return numbered[-1][0]

    def _acknowledge(self, number: int) -> None:
        with self._lock:
            self._acknowledged.write(number)

    # --- maintenance -----------------------------------------------------------------------------

    def _purge(self) -> None:
        """Return free pages to the file system, then empty the log, which still has deleted data.

        The log cannot be emptied while another process reads; the next compaction tries again.
        """
        while True:
            with self._lock, _translate_errors(self.path):
                (free,) = self._writer.execute("PRAGMA freelist_count").fetchone()
                # `executescript` runs the pragma to its end; `execute` would return one page only.
                self._writer.executescript(f"PRAGMA incremental_vacuum({VACUUM_PAGES})")
                (left,) = self._writer.execute("PRAGMA freelist_count").fetchone()
            if left == 0 or left == free:
                break
        with closing(_connect(self.path)) as db, _translate_errors(self.path):
            db.execute(f"PRAGMA busy_timeout = {PURGE_WAIT_MS}")
            for _ in range(PURGE_ATTEMPTS):
                (busy, *_) = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                if not busy:
                    break

    def _check_database(self) -> list[str]:
        with closing(_connect(self.path)) as db, _translate_errors(self.path):
            messages = [text for (text,) in db.execute("PRAGMA integrity_check")]
        return [] if messages == ["ok"] else messages

    def _default_location(self) -> Location:
        return LocalFolder(self.path.with_suffix(".segments"))

    def room(self) -> int | None:
        """Return the free bytes of the file's disk."""
        return shutil.disk_usage(self.path.parent).free

    def check_files(self) -> None:
        """Raise StoreReplaced unless database and log are the files that were opened."""
        if self._files and self._files != _identities(self.path):
            raise StoreReplaced(
                f"{self.path} or its log was deleted or replaced while it was in use: restore it, "
                "and restart this program"
            )

    def close(self) -> None:
        """Close the file; the last process to do so writes the log back into it."""
        with self._lock:
            self._writer.close()
            self._acknowledged.close()


class _SqliteSession:
    """An open transaction of SQLite; see `database.Session`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def run(self, statement: str, values: Row = ()) -> int:
        return self._connection.execute(statement, values).rowcount

    def rows(self, statement: str, values: Row = ()) -> list[Row]:
        return self._connection.execute(statement, values).fetchall()

    def stream(self, statement: str, values: Row = ()) -> Iterator[Row]:
        return self._connection.execute(statement, values)


def _identities(path: Path) -> list[FileIdentity]:
    """Return device and inode of the database and of its log, or None if it cannot be found."""
    identities: list[FileIdentity] = []
    for name in (path, f"{path}-wal"):
        try:
            status = os.stat(name)
            identities.append((status.st_dev, status.st_ino))
        except OSError:
            identities.append(None)
    return identities


def _check_is_store(path: Path) -> None:
    """Raise StoreError if a file has no tables of a store; the file is not changed."""
    if not path.is_file():
        raise StoreError(f"{path} is not a store: it is a folder")
    if not path.stat().st_size:
        raise StoreError(f"{path} is empty, not a store: collect or import reports first")
    # A file with a log may be in use. Until the log is written back, the version of a new store may
    # be in the log only. Besides, closing a file drops the locks of this process on it: another
    # process could then delete the log that this one is using.
    if path.with_name(path.name + "-wal").exists():
        return
    with path.open("rb") as file:
        header = file.read(64)
    if header.startswith(b"SQLite format 3") and header[60:64] == bytes(4):
        raise StoreError(f"{path} is a database of another program, not a store")


def _is_blank(path: Path) -> bool:
    """Return whether a file is empty, or a database without tables: its creation did not end."""
    if not path.is_file() or path.with_name(path.name + "-wal").exists():
        return False
    if not path.stat().st_size:
        return True
    try:
        with closing(sqlite3.connect(path)) as connection:
            return connection.execute("SELECT name FROM sqlite_schema LIMIT 1").fetchone() is None
    except sqlite3.DatabaseError:
        return False


def _create_file(path: Path) -> None:
    """Create a file without tables that only its owner can read, and that can shrink later."""
    if not path.parent.is_dir():
        raise StoreError(f"there is no folder {path.parent} for the store {path.name}: create it")
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT, PRIVATE_MODE))
    with closing(sqlite3.connect(path)) as connection, _translate_errors(path):
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        connection.execute("PRAGMA journal_mode = WAL")
    sync_folder(path.parent)


def _connect(path: Path) -> sqlite3.Connection:
    """Open the file with every pragma set."""
    with _translate_errors(path):
        url = f"{path.absolute().as_uri()}?mode=rw"
        connection = sqlite3.connect(
            url,
            timeout=LOCK_TIMEOUT_SECONDS,
            isolation_level=None,
            check_same_thread=False,
            uri=True,
        )
        # Damaged text must not make a row unreadable.
        connection.text_factory = lambda data: data.decode("utf-8", "replace")
        try:
            for name, value in PRAGMAS.items():
                connection.execute(f"PRAGMA {name} = {value}").fetchall()
        except BaseException:
            connection.close()
            raise
    return connection


@contextmanager
def _transaction(connection: sqlite3.Connection, begin: str, path: Path) -> Iterator[Session]:
    """Run a transaction that starts with the statement `begin`."""
    # The connection commits at the end. After an error it rolls back, if SQLite has not done so.
    with _translate_errors(path), connection:
        connection.execute(begin)
        yield _SqliteSession(connection)


@contextmanager
def _translate_errors(path: Path) -> Iterator[None]:
    """Raise errors of SQLite as StoreError and its subclasses."""
    try:
        yield
    except sqlite3.OperationalError as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_FULL:
            raise StoreFull(f"no space left to write {path}: free some disk space") from error
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise StoreUnavailable(f"another process uses {path}: {error}; try again") from error
        if code == sqlite3.SQLITE_READONLY:
            raise StoreForbidden(
                f"{path} is not writable for this user: the user that runs the collector must own "
                "it, and all files and folders whose names begin with its name"
            ) from error
        if code == sqlite3.SQLITE_CANTOPEN:
            if not all(os.access(each, os.R_OK | os.W_OK) for each in (path, path.parent)):
                raise StoreForbidden(
                    f"cannot open {path}: {error}; check that this user may read and write it and "
                    "its folder"
                ) from error
            raise StoreError(
                f"cannot open {path}: {error}; check that the file exists, and raise the limit of "
                "open files (`ulimit -n`) if the process has too many"
            ) from error
        raise StoreError(f"{path}: {error}") from error
    except sqlite3.DatabaseError as error:
        raise StoreError(f"{path} is not a store, or it is damaged: {error}") from error
    except sqlite3.ProgrammingError as error:
        raise StoreError(f"{path} was closed: {error}") from error
