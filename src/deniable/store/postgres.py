"""A store in the schema `deniable` of a PostgreSQL database, which several collectors may share.

After a lost connection, the transaction is retried on a new one for some time. Uploads carry their
idempotency keys, so a retry recognises uploads whose commit succeeded without confirmation.
Segments are in the database too, unless `?segments=URL` names a folder.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from threading import Lock
from typing import ClassVar
from urllib.parse import parse_qs, urlencode, urlsplit

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict

from deniable.errors import InputError, StoreError, StoreFull, StoreUnavailable
from deniable.store.base import Store
from deniable.store.database import Row, Session, T, Transact, delete_named
from deniable.store.locations import Location

RETRY_SECONDS = 20.0
"""How long a transaction is retried before StoreUnavailable is raised."""
MIN_RETRY_WAIT_SECONDS, MAX_RETRY_WAIT_SECONDS = 0.02, 1.0
CONNECTION_ERRORS = (psycopg.OperationalError, psycopg.InterfaceError)
"""Errors of the driver after it lost the server."""
REFUSALS = (
    "authentication failed",
    "no password supplied",
    "no pg_hba.conf entry",
    "does not exist",
    "permission denied for database",
)
"""What the server says to a user, password or database that will not do on the next attempt."""
COMPACTION_LOCK_ID, MIGRATION_LOCK_ID = 0x64656E69, 0x61626C65
"""Keys of the advisory locks."""


def parse(url: str) -> tuple[str, str | None]:
    """Return the URL for the driver, and the URL of the segments, if any.

    >>> parse("postgresql:///reports?segments=s3://bucket")
    ('postgresql:///reports', 's3://bucket')
    """
    parts = urlsplit(url)
    query = parse_qs(parts.query, keep_blank_values=True)
    segments = query.pop("segments", [""])[0] or None
    # Not `geturl`, which leaves out the // before an empty host.
    target = f"postgresql://{parts.netloc}{parts.path}"
    return f"{target}?{urlencode(query, doseq=True)}" if query else target, segments


class PostgresStore(Store):
    """A store in a PostgreSQL database; see `store.base.Store`."""

    def __init__(self, url: str, *, create: bool = False) -> None:
        try:
            self._target, segments = parse(url)
            parts = urlsplit(url)
            conninfo_to_dict(self._target)
        except (ValueError, psycopg.Error):
            # Neither the URL nor the error is quoted: they may contain the password.
            raise InputError(
                "the URL of the store is not valid: expected postgresql://USER:PASSWORD@HOST/NAME, "
                "where %, @, : and / within a part are written as %25, %40, %3A and %2F"
            ) from None
        # Messages and results quote this URL, so it has no password.
        public_url = f"postgresql://{parts.hostname or ''}{parts.path}"
        self._lock = Lock()
        with _translate_errors(public_url):
            # No retries: a wrong address or password fails at once.
            self._writer = self._connect()
        super().__init__(public_url, segments, create=create)

    type_names: ClassVar = {
        "blob": "BYTEA",
        "serial": "BIGINT GENERATED ALWAYS AS IDENTITY",
        "sorted": "",
    }
    extra_statements: ClassVar = {
        # Noise does not compress, so the server must not try.
        1: (
            "ALTER TABLE staged ALTER bodies SET STORAGE EXTERNAL",
            "CREATE TABLE file (name TEXT PRIMARY KEY, data BYTEA NOT NULL)",
            "ALTER TABLE file ALTER data SET STORAGE EXTERNAL",
        ),
    }

    def _migrate(self, db: Session, create: bool) -> None:
        """Upgrade the tables while no other collector does."""
        db.rows("SELECT pg_advisory_xact_lock(?)", (MIGRATION_LOCK_ID,))
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
        """Open a connection, whose commits wait for the disk."""
        return psycopg.connect(
            self._target,
            autocommit=True,
            connect_timeout=10,
            application_name="deniable",
            options="-c search_path=deniable -c synchronous_commit=on",
        )

    def _write(self, work: Callable[[Session], T]) -> T:
        """Run a transaction on the one connection that writes; see `database.Transact`."""

        def once() -> T:
            if self._writer.closed:
                self._writer = self._connect()
            try:
                with self._writer.transaction():
                    return work(_PostgresSession(self._writer))
            except CONNECTION_ERRORS:
                # A connection cut within a pipeline may stay open, and fail every time.
                self._writer.close()
                raise

        with self._lock:
            return self._with_retries(once)

    def _read(self, work: Callable[[Session], T]) -> T:
        """Run a read-only transaction on a new connection."""

        def once() -> T:
            with self._connect() as connection:
                connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
                connection.read_only = True
                with connection.transaction():
                    return work(_PostgresSession(connection))

        return self._with_retries(once)

    def _with_retries(self, attempt: Callable[[], T]) -> T:
        """Retry after lost connections, with growing waits.

        Retry also after a unique violation: another collector has just stored the same upload, and
        the next attempt recognises it.
        """
        wait, deadline = MIN_RETRY_WAIT_SECONDS, time.monotonic() + RETRY_SECONDS
        while True:
            with _translate_errors(self.url):
                try:
                    return attempt()
                except errors.DiskFull:
                    raise
                except (*CONNECTION_ERRORS, errors.UniqueViolation):
                    if time.monotonic() + wait > deadline:
                        raise
            time.sleep(wait)
            wait = min(2 * wait, MAX_RETRY_WAIT_SECONDS)

    @contextmanager
    def _exclusive(self) -> Iterator[Transact]:
        """Lock out other compactions, deletions and backups.

        The lock ends with its connection, on which all transactions run, so they cannot continue
        without the lock.
        """
        with _translate_errors(self.url), self._connect() as connection:
            connection.execute("SELECT pg_advisory_lock(%s)", (COMPACTION_LOCK_ID,))

            def write(work: Callable[[Session], T]) -> T:
                with connection.transaction():
                    return work(_PostgresSession(connection))

            yield write

    # --- maintenance -----------------------------------------------------------------------------

    def _purge(self) -> None:
        """Free the space of deleted rows, so that new rows overwrite them."""
        with self._connect() as connection:
            connection.execute("VACUUM staged, file")

    def _default_location(self) -> Location:
        return DatabaseFiles(self)

    def close(self) -> None:
        """Close the connection."""
        self._writer.close()


class DatabaseFiles(Location):
    """Files as rows of a table in the database."""

    shared = False
    """Other machines are not given the password of the database."""

    def __init__(self, store: PostgresStore) -> None:
        self.url, self._store = store.url, store

    def put(self, name: str, data: bytes, day: date | None = None) -> None:
        """Insert the file, or replace one that a killed compaction left behind."""
        self._store._write(
            lambda db: db.run(
                "INSERT INTO file (name, data) VALUES (?, ?) "
                "ON CONFLICT (name) DO UPDATE SET data = excluded.data",
                (name, data),
            )
        )

    def get(self, name: str) -> bytes:
        """Return the whole file."""
        rows = self._store._read(
            lambda db: db.rows("SELECT data FROM file WHERE name = ?", (name,))
        )
        if not rows:
            raise StoreError(f"{self.url} no longer has the file {name}: read again")
        return bytes(rows[0][0])

    def remove(self, *names: str) -> None:
        """Delete the files that exist."""
        self._store._write(lambda db: delete_named(db, "file", names))


class _PostgresSession:
    """An open transaction of PostgreSQL; see `database.Session`."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection

    def run(self, statement: str, values: Row = ()) -> int:
        return self._connection.execute(_placeholders(statement), values).rowcount

    def rows(self, statement: str, values: Row = ()) -> list[Row]:
        return self._connection.execute(_placeholders(statement), values, binary=True).fetchall()

    def stream(self, statement: str, values: Row = ()) -> Iterator[Row]:
        with self._connection.cursor(binary=True) as cursor:
            yield from cursor.stream(_placeholders(statement), values)


def _placeholders(statement: str) -> str:
    """Return the statement with the driver's placeholders for values."""
    return statement.replace("?", "%s")


@contextmanager
def _translate_errors(url: str) -> Iterator[None]:
    """Raise errors of the driver as StoreError and its subclasses."""
    try:
        yield
    except errors.DiskFull as error:
        raise StoreFull(f"no space left in {url}: free some disk space on the server") from error
    except CONNECTION_ERRORS as error:
        reason = " ".join(str(error).split())
        if any(text in reason for text in REFUSALS):
            raise StoreError(f"{url} refuses the connection: {reason}") from error
        raise StoreUnavailable(f"cannot connect to {url}: {reason}; try again") from error
    except psycopg.Error as error:
        raise StoreError(f"{url}: {' '.join(str(error).split())}") from error
