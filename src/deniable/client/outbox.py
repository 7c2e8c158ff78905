"""The outbox: a queue on disk of reports that wait for the collector.

It is one SQLite file, so every step is atomic, whenever the process is killed:

* `put` returns when the report is on disk, together with the random key under which it is sent.
* One report becomes an upload, or several reports become one upload with a new key. Key and bytes
  are on disk before the first attempt and never change. Whatever happens between sending and the
  response, the next attempt repeats the same upload, which a collector counts once.
* An accepted upload is deleted. A permanently refused one is set aside and not sent again; one with
  too many reports is split.

Disk use is bounded: beyond `limit`, the oldest reports are dropped and counted. Collectors forget
keys after some time, so an upload that was not accepted within RETRY_PERIOD of its first attempt is
set aside too: a later attempt might be counted twice. This holds whatever the responses were: an
attempt of another process that shares the outbox, or one that a proxy repeated, may be stored.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deniable.client.files import PRIVATE_MODE, make_private_folder, sync_folder
from deniable.errors import InputError, OutboxError
from deniable.survey.report import (
    BATCH_HEADER_SIZE,
    HEADER_SIZE,
    MAGIC,
    REPORT,
    Report,
    batch_header,
)

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path

KEY_SIZE = 16
RETRY_PERIOD = 6 * 86400.0
"""Seconds between the first and the last attempt; collectors remember keys for at least a week."""
MAX_WAIT = 86400.0
"""Maximum seconds between attempts, whatever a server asks for."""
DEFAULT_LIMIT = 1 << 20
MIN_LIMIT = 1 << 16

FORMAT = 1
SCHEMA = (
    """
    CREATE TABLE upload (
        id INTEGER PRIMARY KEY,
        key BLOB NOT NULL,
        body BLOB NOT NULL,
        reports INTEGER NOT NULL,
        formed INTEGER NOT NULL,     -- 0: may still be batched with others; 1: never changes
        tried REAL,                  -- first attempt, in seconds since 1970
        refused TEXT                 -- why it was set aside
    )""",
    """
    CREATE TABLE state (
        accepted INTEGER NOT NULL,   -- reports since the outbox was created
        dropped INTEGER NOT NULL,
        failures INTEGER NOT NULL,   -- inconclusive attempts since the last conclusive one
        not_before REAL NOT NULL     -- next attempt, in seconds since 1970
    )""",
    "INSERT INTO state VALUES (0, 0, 0, 0)",
    f"PRAGMA user_version = {FORMAT}",
)


@dataclass(frozen=True)
class QueuedUpload:
    """One upload: the same bytes under the same key in every attempt.

    Parameters
    ----------
    id : int
        Row in the outbox.
    key : bytes
        Idempotency key.
    body : bytes
        One report, or a batch.
    reports : int
        Number of reports in the body.
    tried : bool
        Whether it was sent before, so that it may have arrived.
    """

    id: int
    key: bytes
    body: bytes
    reports: int
    tried: bool


@dataclass(frozen=True)
class Counts:
    """Numbers of reports by state.

    Parameters
    ----------
    waiting : int
        Not yet accepted.
    accepted : int
        Accepted since the outbox was created.
    refused : int
        Refused and set aside.
    dropped : int
        Dropped since the outbox was created because it was full.
    """

    waiting: int
    accepted: int
    refused: int
    dropped: int


class Outbox:
    """Queue of reports in a file, which is created on first use.

    Any number of processes may share it.

    Parameters
    ----------
    path : str or Path
        The SQLite file.
    limit : int, default 1048576
        Maximum size in bytes, at least 65536; beyond it the oldest reports are dropped.
    clock : callable, default time.time
        Returns the seconds since 1970. Only tests should replace it.

    Raises
    ------
    InputError
        If the limit is too small.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Outbox(folder + "/outbox.db").counts()
    Counts(waiting=0, accepted=0, refused=0, dropped=0)
    """

    def __init__(
        self,
        path: str | Path,
        *,
        limit: int = DEFAULT_LIMIT,
        clock: Callable[[], float] = time.time,
    ) -> None:
        from pathlib import Path

        if limit < MIN_LIMIT:
            raise InputError(f"limit must be at least {MIN_LIMIT} bytes, not {limit}")
        self.path = Path(path).expanduser()
        self.limit = limit
        self.clock = clock

    def __repr__(self) -> str:
        return f"<Outbox in {self.path}>"

    # --- adding reports ---------------------------------------------------------------------

    def put(self, *reports: Report) -> None:
        """Add reports; they are on disk when this returns.

        Parameters
        ----------
        *reports : Report
            Reports to send.

        Raises
        ------
        OutboxError
            If the file cannot be written.
        """
        with self.adding() as add:
            for report in reports:
                add(report)

    @contextmanager
    def adding(self) -> Iterator[Callable[[Report], None]]:
        """Open a transaction that adds reports; they are on disk when the block ends.

        If the outbox cannot be written, the error comes before the ledger is charged for a report.

        Yields
        ------
        callable
            Adds one report.

        Raises
        ------
        OutboxError
            If the file cannot be written.
        """
        with self._transaction() as db:

            def add(report: Report) -> None:
                _insert(db, bytes(report))

            yield add
            self._drop_oldest(db)

    def _drop_oldest(self, db: sqlite3.Connection) -> None:
        """Delete the oldest uploads until the used pages of the file are within the limit."""
        (size,) = db.execute("PRAGMA page_size").fetchone()
        while True:
            (pages,) = db.execute("PRAGMA page_count").fetchone()
            (free,) = db.execute("PRAGMA freelist_count").fetchone()
            oldest = db.execute("SELECT id, reports FROM upload ORDER BY id LIMIT 1").fetchone()
            if (pages - free) * size <= self.limit or oldest is None:
                return
            db.execute("DELETE FROM upload WHERE id = ?", [oldest[0]])
            db.execute("UPDATE state SET dropped = dropped + ?", [oldest[1]])

    # --- sending ----------------------------------------------------------------------------

    def wait(self) -> float:
        """Return how long to wait before the next attempt.

        Returns
        -------
        float
            Seconds; 0 if an attempt is due.
        """
        ((not_before,),) = self._run("SELECT not_before FROM state")
        left = not_before - self.clock()
        # No wait is longer than MAX_WAIT when it is set, so the clock was set back since.
        return left if 0 < left <= MAX_WAIT else 0.0

    def next(self, batch: int = 1) -> QueuedUpload | None:
        """Return an upload to send, chosen at random.

        A random order does not reveal when a report was made, and an upload on which the server
        fails does not block the others.

        Parameters
        ----------
        batch : int, default 1
            Maximum number of reports, all of one survey, in a new upload.

        Returns
        -------
        QueuedUpload or None
            The upload; None if nothing is waiting.
        """
        with self._transaction() as db:
            stale = f"not accepted in the {RETRY_PERIOD / 86400:.0f} days since the first attempt"
            db.execute(
                "UPDATE upload SET refused = ? WHERE refused IS NULL AND tried < ?",
                [stale, self.clock() - RETRY_PERIOD],
            )
            _form(db, batch)
            row = db.execute(
                "SELECT id, key, body, reports, tried IS NOT NULL FROM upload WHERE id = (SELECT "
                "id FROM upload WHERE formed AND refused IS NULL ORDER BY random() LIMIT 1)"
            ).fetchone()
        return None if row is None else QueuedUpload(*row)

    def mark_tried(self, upload: QueuedUpload) -> None:
        """Record that an upload is about to be sent, and so may arrive.

        Parameters
        ----------
        upload : QueuedUpload
            The upload.
        """
        sql = "UPDATE upload SET tried = ? WHERE id = ? AND key = ? AND tried IS NULL"
        self._run(sql, self.clock(), upload.id, upload.key)

    def accept(self, upload: QueuedUpload, wait: float = 0.0) -> None:
        """Delete an upload that the collector accepted.

        Parameters
        ----------
        upload : QueuedUpload
            The upload.
        wait : float, default 0.0
            Seconds until the next attempt is due.
        """
        with self._transaction() as db:
            sql = "DELETE FROM upload WHERE id = ? AND key = ?"
            deleted = db.execute(sql, [upload.id, upload.key])
            # Another process may have sent the same upload, and deleted it first.
            db.execute(
                "UPDATE state SET accepted = accepted + ?, failures = 0, not_before = ?",
                [upload.reports * deleted.rowcount, self.clock() + min(wait, MAX_WAIT)],
            )

    def refuse(self, upload: QueuedUpload, why: str) -> None:
        """Set aside an upload that the collector refused permanently.

        Parameters
        ----------
        upload : QueuedUpload
            The upload.
        why : str
            Reason that the collector gave.
        """
        with self._transaction() as db:
            sql = "UPDATE upload SET refused = ? WHERE id = ? AND key = ?"
            db.execute(sql, [why, upload.id, upload.key])
            db.execute("UPDATE state SET failures = 0")

    def split(self, upload: QueuedUpload) -> None:
        """Take a batch apart that the collector refused because it has too many reports.

        Parameters
        ----------
        upload : QueuedUpload
            The batch. It was sent only once, so nothing of it was stored.
        """
        with self._transaction() as db:
            sql = "DELETE FROM upload WHERE id = ? AND key = ?"
            # Another process may have split it first.
            if db.execute(sql, [upload.id, upload.key]).rowcount:
                for report in separated(upload.body, upload.reports):
                    _insert(db, report)

    def hold(self, wait: Callable[[int], float]) -> None:
        """Postpone the next attempt after an inconclusive one.

        Parameters
        ----------
        wait : callable
            From the number of inconclusive attempts before this one to seconds.
        """
        with self._transaction() as db:
            (failures,) = db.execute("SELECT failures FROM state").fetchone()
            db.execute(
                "UPDATE state SET failures = ?, not_before = ?",
                [failures + 1, self.clock() + min(wait(failures), MAX_WAIT)],
            )

    # --- reading the state ------------------------------------------------------------------

    def counts(self) -> Counts:
        """Return how many reports are waiting, accepted, refused and dropped.

        Returns
        -------
        Counts
            Numbers of reports.
        """
        sql = (
            "SELECT (SELECT coalesce(sum(reports), 0) FROM upload WHERE refused IS NULL), "
            "accepted, (SELECT coalesce(sum(reports), 0) FROM upload WHERE refused IS NOT NULL), "
            "dropped FROM state"
        )
        return Counts(*self._run(sql)[0])

    def refusals(self) -> dict[str, int]:
        """Return why uploads were set aside.

        Returns
        -------
        dict of str to int
            Number of reports by reason.
        """
        sql = (
            "SELECT refused, sum(reports) FROM upload WHERE refused IS NOT NULL "
            "GROUP BY refused ORDER BY refused"
        )
        return dict(self._run(sql))

    def try_again(self) -> int:
        """Queue the uploads again that were set aside, after their cause was fixed.

        Returns
        -------
        int
            Number of reports.
        """
        with self._transaction() as db:
            sql = "SELECT coalesce(sum(reports), 0) FROM upload WHERE refused IS NOT NULL"
            (count,) = db.execute(sql).fetchone()
            # The caller knows that no earlier attempt was counted.
            db.execute("UPDATE upload SET refused = NULL, tried = NULL WHERE refused IS NOT NULL")
            db.execute("UPDATE state SET failures = 0, not_before = 0")
        return int(count)

    # --- the file ---------------------------------------------------------------------------

    def _run(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """Run one statement in its own transaction, and return its rows."""
        with self._transaction() as db:
            return db.execute(sql, values).fetchall()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Open a transaction, which is on disk when the block ends.

        Each has its own connection: threads and forked processes must not share one.
        """
        import sqlite3

        try:
            self._make_private()
            database = sqlite3.connect(self.path, timeout=60.0, isolation_level=None)
        except (OSError, sqlite3.Error) as error:
            raise OutboxError(f"cannot open the outbox {self.path}: {error}") from None
        with closing(database) as db:
            try:
                # EXTRA: the commit, which deletes a journal, survives a power failure.
                db.execute("PRAGMA synchronous = EXTRA")
                db.execute("BEGIN IMMEDIATE")
                _check_format(db)
                yield db
                db.execute("COMMIT")
            except sqlite3.Error as error:
                raise OutboxError(
                    f"cannot use the outbox {self.path} ({error}): free disk space, or move the "
                    "file away together with the reports that wait in it"
                ) from None

    def _make_private(self) -> None:
        """Create the file with mode 0600 unless it exists."""
        if self.path.exists():
            return
        make_private_folder(self.path.parent)
        os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, PRIVATE_MODE))
        sync_folder(self.path.parent)
        sync_folder(self.path.parent.parent)


def _check_format(db: sqlite3.Connection) -> None:
    """Create the tables of a new file; refuse a file of another version."""
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if version == 0:
        for statement in SCHEMA:  # executescript would commit in between
            db.execute(statement)
    elif version != FORMAT:
        raise OutboxError(
            f"this release reads format {FORMAT} of outboxes, not {version}: update deniable"
        )


def _insert(db: sqlite3.Connection, report: bytes) -> None:
    """Add one report."""
    sql = "INSERT INTO upload (key, body, reports, formed) VALUES (?, ?, 1, 0)"
    db.execute(sql, [os.urandom(KEY_SIZE), report])


def _form(db: sqlite3.Connection, batch: int) -> None:
    """Make one upload of waiting reports, chosen at random among those of one survey."""
    header = db.execute(
        "SELECT substr(body, 1, ?) FROM upload WHERE NOT formed ORDER BY random() LIMIT 1",
        [HEADER_SIZE],
    ).fetchone()
    if header is None:
        return
    rows = db.execute(
        "SELECT id, key, body FROM upload WHERE NOT formed AND substr(body, 1, ?) = ? "
        "ORDER BY random() LIMIT ?",
        [HEADER_SIZE, *header, batch],
    ).fetchall()
    first, key, body = min(rows)
    if len(rows) > 1:
        # A key belongs to its bytes, and these differ from those of the first report.
        key, body = os.urandom(KEY_SIZE), joined([row[2] for row in rows])
    db.execute(
        "UPDATE upload SET key = ?, body = ?, reports = ?, formed = 1 WHERE id = ?",
        [key, body, len(rows), first],
    )
    db.executemany("DELETE FROM upload WHERE id = ?", [[i] for i, *_ in rows if i != first])


def joined(reports: list[bytes]) -> bytes:
    """Return the batch of single reports of one survey."""
    digest = reports[0][len(MAGIC) + 2 : HEADER_SIZE]
    bodies = (report[HEADER_SIZE:] for report in reports)
    return batch_header(digest, len(reports)) + b"".join(bodies)


def separated(batch: bytes, reports: int) -> list[bytes]:
    """Return the single reports of a batch."""
    head = batch[: len(MAGIC) + 1] + bytes([REPORT]) + batch[len(MAGIC) + 2 : HEADER_SIZE]
    bodies = batch[BATCH_HEADER_SIZE:]
    size = len(bodies) // reports
    return [head + bodies[i * size : (i + 1) * size] for i in range(reports)]
