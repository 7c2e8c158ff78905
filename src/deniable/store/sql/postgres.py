"""Reports in a PostgreSQL database, in a schema of its own, `deniable`.

A lost connection is made again and the transaction repeated, for a while: uploads carry their keys,
so what was committed without our hearing of it is recognised. Several collectors may share it.
Segments stand in the database too, unless `?segments=URL` says otherwise.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import date
from threading import Lock
from typing import ClassVar
from urllib.parse import parse_qs, urlencode, urlsplit

import psycopg
from psycopg import errors

from deniable.errors import StoreError, StoreFull, StoreUnavailable
from deniable.store.locations import Location
from deniable.store.sql.database import Row, Session, T, Transact
from deniable.store.sql.sql_store import SqlStore

PATIENCE_S = 20.0
"""How long a transaction is tried again before StoreUnavailable."""
SHORTEST_WAIT_S, LONGEST_WAIT_S = 0.02, 1.0
LOST = (psycopg.OperationalError, psycopg.InterfaceError)
"""What the driver raises when it has lost the server."""
COMPACTING, MIGRATING = 0x64656E69, 0x61626C65
"""Names of our locks."""


def parse(url: str) -> tuple[str, str | None]:
    """What the driver is told, and where the segments shall be if it is said."""
    parts = urlsplit(url)
    query = parse_qs(parts.query, strict_parsing=bool(parts.query))
    segments = query.pop("segments", [None])[0]
    return parts._replace(query=urlencode(query, doseq=True)).geturl(), segments


class PostgresStore(SqlStore):
    """See `store.base.Store`."""

    def __init__(self, url: str, *, create: bool = False) -> None:
        self._target, segments = parse(url)
        parts = urlsplit(url)
        # Without the password: this stands in messages and results.
        public_url = f"postgresql://{parts.hostname or ''}{parts.path}"
        self._lock = Lock()
        with _translated(public_url):
            # Not tried again: a wrong address or password is told at once.
            self._writer = self._connect()
        super().__init__(public_url, segments, create=create)

    words: ClassVar = {
        "blob": "BYTEA",
        "serial": "BIGINT GENERATED ALWAYS AS IDENTITY",
        "sorted": "",
    }
    also: ClassVar = {
        # Noise does not compress: the server shall not try.
        1: ("ALTER TABLE staged ALTER bodies SET STORAGE EXTERNAL",),
        2: (
            "CREATE TABLE file (name TEXT PRIMARY KEY, data BYTEA NOT NULL)",
            "ALTER TABLE file ALTER data SET STORAGE EXTERNAL",
        ),
    }

    def _migrate(self, db: Session, create: bool) -> None:
        db.rows("SELECT pg_advisory_xact_lock(?)", (MIGRATING,))
        if create:
            db.run("CREATE SCHEMA IF NOT EXISTS deniable")
        super()._migrate(db, create)

    def _version(self, db: Session) -> int:
        if db.rows("SELECT to_regclass('deniable.version')") == [(None,)]:
            return 0
        return int(db.rows("SELECT number FROM version")[0][0])

    def _set_version(self, db: Session, version: int) -> None:
        db.run("CREATE TABLE IF NOT EXISTS version (number INTEGER NOT NULL)")
        db.run("DELETE FROM version")
        db.run("INSERT INTO version (number) VALUES (?)", (version,))

    # --- transactions ----------------------------------------------------------------------------

    def _connect(self) -> psycopg.Connection:
        return psycopg.connect(
            self._target,
            autocommit=True,
            connect_timeout=10,
            application_name="deniable",
            options="-c search_path=deniable -c synchronous_commit=on",
        )

    def _write(self, work: Callable[[Session], T]) -> T:
        def once() -> T:
            if self._writer.closed:
                self._writer = self._connect()
            try:
                with self._writer.transaction():
                    return work(_PostgresSession(self._writer))
            except LOST:
                # One cut in the middle of a pipeline may fail for ever without being closed.
                self._writer.close()
                raise

        with self._lock:
            return self._patiently(once)

    def _read(self, work: Callable[[Session], T]) -> T:
        def once() -> T:
            with self._connect() as connection:
                connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
                connection.read_only = True
                with connection.transaction():
                    return work(_PostgresSession(connection))

        return self._patiently(once)

    def _patiently(self, once: Callable[[], T]) -> T:
        """Try again, ever less often, while that may help.

        A key that another collector has just stored helps too: the second time it is found.
        """
        wait, deadline = SHORTEST_WAIT_S, time.monotonic() + PATIENCE_S
        while True:
            with _translated(self.url):
                try:
                    return once()
                except errors.DiskFull:
                    raise
                except (*LOST, errors.UniqueViolation):
                    if time.monotonic() + wait > deadline:
                        raise
            time.sleep(wait)
            wait = min(2 * wait, LONGEST_WAIT_S)

    @contextmanager
    def _exclusive(self) -> Iterator[Transact]:
        """The lock lives as long as its connection, and only that connection's transactions run.

        So nobody who lost the lock can go on as if it were held.
        """
        with _translated(self.url), self._connect() as connection:
            connection.execute("SELECT pg_advisory_lock(%s)", (COMPACTING,))

            def write(work: Callable[[Session], T]) -> T:
                with connection.transaction():
                    return work(_PostgresSession(connection))

            yield write

    # --- keeping house ---------------------------------------------------------------------------

    def _purge(self) -> None:
        """Free what was deleted, to be overwritten by what comes next."""
        with self._connect() as connection:
            connection.execute("VACUUM staged, file")

    def _default_location(self) -> Location:
        return DatabaseFiles(self)

    def close(self) -> None:
        """Let go of the connection."""
        self._writer.close()


class DatabaseFiles(Location):
    """Files as rows of the database."""

    shared = False
    """Its password is not for others."""

    def __init__(self, store: PostgresStore) -> None:
        self.url, self._store = store.url, store

    def put(self, name: str, data: bytes, day: date | None = None) -> None:
        """Insert it, or replace what a killed compaction left."""
        self._store._write(
            lambda db: db.run(
                "INSERT INTO file (name, data) VALUES (?, ?) "
                "ON CONFLICT (name) DO UPDATE SET data = excluded.data",
                (name, data),
            )
        )

    def get(self, name: str) -> bytes:
        """The whole file."""
        rows = self._store._read(
            lambda db: db.rows("SELECT data FROM file WHERE name = ?", (name,))
        )
        if not rows:
            raise StoreError(f"{name} is not in {self.url}: it was deleted; read again")
        return bytes(rows[0][0])

    def remove(self, name: str) -> None:
        """Delete it, if it is there."""
        self._store._write(lambda db: db.run("DELETE FROM file WHERE name = ?", (name,)))


class _PostgresSession:
    """See `database.Session`."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection

    def run(self, statement: str, values: Row = ()) -> int:
        return self._connection.execute(_own(statement), values).rowcount

    def many(self, statement: str, rows: Iterable[Row]) -> None:
        with self._connection.cursor() as cursor:
            cursor.executemany(_own(statement), rows)

    def rows(self, statement: str, values: Row = ()) -> list[Row]:
        return self._connection.execute(_own(statement), values, binary=True).fetchall()

    def stream(self, statement: str, values: Row = ()) -> Iterator[Row]:
        with self._connection.cursor(binary=True) as cursor:
            yield from cursor.stream(_own(statement), values)


def _own(statement: str) -> str:
    """The statement as the driver spells it."""
    return statement.replace("?", "%s")


@contextmanager
def _translated(url: str) -> Iterator[None]:
    """The driver's errors as ours."""
    try:
        yield
    except errors.DiskFull as error:
        raise StoreFull(f"no room left for {url}: free some space on the server") from error
    except LOST as error:
        raise StoreUnavailable(f"{url} cannot be reached: {error}; try again") from error
    except psycopg.Error as error:
        raise StoreError(f"{url}: {error}") from error
