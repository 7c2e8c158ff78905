"""The outbox: reports on disk until the collector has them.

One SQLite file, so that each step is there whole or not at all, whenever the process is killed:

* `put` returns when the report is on disk, with the random key under which it will be sent.
* A report becomes an upload, or several become one with a key of its own. From then on, and before
  the first try, key and bytes are on disk and never change: whatever happens between sending and
  hearing the answer, the next try is the very same upload, which a collector counts once.
* An accepted upload is deleted. One that is refused for good is moved aside, not tried again.

Disk use is bounded: past `limit` the oldest go, sent or not, and are counted. Collectors forget
keys after a time, so an upload that was tried and not answered for KEY_LIFE is moved aside
too: sent again, it might be counted again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deniable.client.files import PRIVATE_MODE, sync_folder
from deniable.errors import InputError, OutboxError
from deniable.survey.report import HEADER_SIZE, MAGIC, Report, batch_header

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path

KEY_SIZE = 16
KEY_LIFE = 6 * 86400.0
"""Seconds from an upload's first try to its last; collectors remember keys for a week or more."""
LONGEST_WAIT = 86400.0
"""Seconds that an outbox waits at most, whatever a server says."""
LIMIT = 1 << 20
LEAST_LIMIT = 1 << 16

FORMAT = 1
SCHEMA = (
    """
    CREATE TABLE upload (
        id INTEGER PRIMARY KEY,
        key BLOB NOT NULL,
        body BLOB NOT NULL,
        reports INTEGER NOT NULL,
        formed INTEGER NOT NULL,     -- 0: a report that may still join others; 1: never changes
        tried REAL,                  -- when it was first sent, in seconds since 1970
        refused TEXT                 -- why it was moved aside
    )""",
    """
    CREATE TABLE state (
        accepted INTEGER NOT NULL,   -- reports, since the outbox was made
        dropped INTEGER NOT NULL,
        failures INTEGER NOT NULL,   -- tries that settled nothing, since the last that did
        not_before REAL NOT NULL     -- when to try next, in seconds since 1970
    )""",
    "INSERT INTO state VALUES (0, 0, 0, 0)",
    f"PRAGMA user_version = {FORMAT}",
)


@dataclass(frozen=True)
class QueuedUpload:
    """What is sent at once: the same bytes under the same key, until it is answered."""

    id: int
    key: bytes
    body: bytes
    reports: int


@dataclass(frozen=True)
class Counts:
    """How many reports wait, were accepted, were refused (and lie aside), were dropped."""

    waiting: int
    accepted: int
    refused: int
    dropped: int


class Outbox:
    """The outbox in the file at `path`, made on first use; any number of processes may share it."""

    def __init__(
        self, path: str | Path, *, limit: int = LIMIT, clock: Callable[[], float] = time.time
    ) -> None:
        from pathlib import Path

        if limit < LEAST_LIMIT:
            raise InputError(f"expected a limit of at least {LEAST_LIMIT} bytes, got {limit}")
        self.path = Path(path).expanduser()
        self.limit = limit
        self.clock = clock

    # --- putting in -------------------------------------------------------------------------

    def put(self, *reports: Report) -> None:
        """Keep these reports; they are on disk when this returns."""
        with self.adding() as add:
            for report in reports:
                add(report)

    @contextmanager
    def adding(self) -> Iterator[Callable[[Report], None]]:
        """A function that keeps a report, all of them on disk when the block ends.

        An outbox that cannot be written says so here, before anyone has paid for a report.
        """
        with self._transaction() as db:

            def add(report: Report) -> None:
                db.execute(
                    "INSERT INTO upload (key, body, reports, formed) VALUES (?, ?, 1, 0)",
                    [os.urandom(KEY_SIZE), bytes(report)],
                )

            yield add
            self._drop_oldest(db)

    def _drop_oldest(self, db: sqlite3.Connection) -> None:
        """Oldest first, until what is used of the file is within the limit."""
        (size,) = db.execute("PRAGMA page_size").fetchone()
        while True:
            (pages,) = db.execute("PRAGMA page_count").fetchone()
            (free,) = db.execute("PRAGMA freelist_count").fetchone()
            oldest = db.execute("SELECT id, reports FROM upload ORDER BY id LIMIT 1").fetchone()
            if (pages - free) * size <= self.limit or oldest is None:
                return
            db.execute("DELETE FROM upload WHERE id = ?", [oldest[0]])
            db.execute("UPDATE state SET dropped = dropped + ?", [oldest[1]])

    # --- taking out -------------------------------------------------------------------------

    def wait(self) -> float:
        """Seconds until the next try is due."""
        ((not_before,),) = self._run("SELECT not_before FROM state")
        left = not_before - self.clock()
        # None is that long when it is set: the clock was put back since.
        return left if 0 < left <= LONGEST_WAIT else 0.0

    def next(self, batch: int = 1) -> QueuedUpload | None:
        """An upload to try, made of up to `batch` reports of one survey; None if nothing waits.

        Which one is random: neither order nor neighbours tell when a report was made, and one
        that the server chokes on does not hold up the others.
        """
        with self._transaction() as db:
            stale = f"no answer in the {KEY_LIFE / 86400:.0f} days since it was first sent"
            db.execute(
                "UPDATE upload SET refused = ? WHERE refused IS NULL AND tried < ?",
                [stale, self.clock() - KEY_LIFE],
            )
            _form(db, batch)
            row = db.execute(
                "SELECT id, key, body, reports FROM upload WHERE id = (SELECT id FROM upload "
                "WHERE formed AND refused IS NULL ORDER BY random() LIMIT 1)"
            ).fetchone()
        return None if row is None else QueuedUpload(*row)

    def mark_tried(self, upload: QueuedUpload) -> None:
        """It is about to be sent: from now on it may have arrived."""
        sql = "UPDATE upload SET tried = ? WHERE id = ? AND key = ? AND tried IS NULL"
        self._run(sql, self.clock(), upload.id, upload.key)

    def accept(self, upload: QueuedUpload, wait: float = 0.0) -> None:
        """The collector has it. The next try is due after `wait` seconds."""
        with self._transaction() as db:
            sql = "DELETE FROM upload WHERE id = ? AND key = ?"
            gone = db.execute(sql, [upload.id, upload.key])
            # Another process may have sent the same upload, and been told so first.
            db.execute(
                "UPDATE state SET accepted = accepted + ?, failures = 0, not_before = ?",
                [upload.reports * gone.rowcount, self.clock() + min(wait, LONGEST_WAIT)],
            )

    def refuse(self, upload: QueuedUpload, why: str) -> None:
        """The collector will never take it: it is moved aside."""
        with self._transaction() as db:
            sql = "UPDATE upload SET refused = ? WHERE id = ? AND key = ?"
            db.execute(sql, [why, upload.id, upload.key])
            db.execute("UPDATE state SET failures = 0")

    def hold(self, wait: Callable[[int], float]) -> None:
        """A try settled nothing: the next is due after `wait(n)` seconds, n such tries before."""
        with self._transaction() as db:
            (failures,) = db.execute("SELECT failures FROM state").fetchone()
            db.execute(
                "UPDATE state SET failures = ?, not_before = ?",
                [failures + 1, self.clock() + min(wait(failures), LONGEST_WAIT)],
            )

    # --- looking in -------------------------------------------------------------------------

    def counts(self) -> Counts:
        sql = (
            "SELECT (SELECT coalesce(sum(reports), 0) FROM upload WHERE refused IS NULL), "
            "accepted, (SELECT coalesce(sum(reports), 0) FROM upload WHERE refused IS NOT NULL), "
            "dropped FROM state"
        )
        return Counts(*self._run(sql)[0])

    def refusals(self) -> dict[str, int]:
        """Why uploads were moved aside, with the number of their reports."""
        sql = (
            "SELECT refused, sum(reports) FROM upload WHERE refused IS NOT NULL "
            "GROUP BY refused ORDER BY refused"
        )
        return dict(self._run(sql))

    def try_again(self) -> int:
        """Put back what was moved aside, once its cause is mended; how many reports that was."""
        with self._transaction() as db:
            sql = "SELECT coalesce(sum(reports), 0) FROM upload WHERE refused IS NOT NULL"
            (count,) = db.execute(sql).fetchone()
            # Whoever asks for this knows that the old tries came to nothing.
            db.execute("UPDATE upload SET refused = NULL, tried = NULL WHERE refused IS NOT NULL")
            db.execute("UPDATE state SET failures = 0, not_before = 0")
        return int(count)

    # --- the file ---------------------------------------------------------------------------

    def _run(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """One statement in a transaction of its own: the rows that it gives."""
        with self._transaction() as db:
            return db.execute(sql, values).fetchall()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """All that happens in the block, or nothing of it, on disk when the block ends.

        A connection for each: threads and forked processes share none.
        """
        import sqlite3

        try:
            self._make_private()
            database = sqlite3.connect(self.path, timeout=60.0, isolation_level=None)
        except (OSError, sqlite3.Error) as error:
            raise OutboxError(f"cannot open the outbox {self.path}: {error}") from None
        with closing(database) as db:
            try:
                # EXTRA: the commit, which deletes a journal, outlives a power cut.
                db.execute("PRAGMA synchronous = EXTRA")
                db.execute("BEGIN IMMEDIATE")
                _check_format(db)
                yield db
                db.execute("COMMIT")
            except sqlite3.Error as error:
                raise OutboxError(
                    f"the outbox {self.path} cannot be used ({error}): free the disk, or move "
                    "the file away, with what waits in it"
                ) from None

    def _make_private(self) -> None:
        if self.path.exists():
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, PRIVATE_MODE))
        sync_folder(self.path.parent)
        sync_folder(self.path.parent.parent)


def _check_format(db: sqlite3.Connection) -> None:
    (found,) = db.execute("PRAGMA user_version").fetchone()
    if found == 0:
        for statement in SCHEMA:  # executescript would commit in between
            db.execute(statement)
    elif found != FORMAT:
        raise OutboxError(f"expected an outbox of format {FORMAT}, got {found}: update deniable")


def _form(db: sqlite3.Connection, batch: int) -> None:
    """Make one upload of waiting reports, drawn at random from those of one survey."""
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
        # A key stands for its bytes: these are others than the first report's.
        key, body = os.urandom(KEY_SIZE), joined([row[2] for row in rows])
    db.execute(
        "UPDATE upload SET key = ?, body = ?, reports = ?, formed = 1 WHERE id = ?",
        [key, body, len(rows), first],
    )
    db.executemany("DELETE FROM upload WHERE id = ?", [[i] for i, *_ in rows if i != first])


def joined(reports: list[bytes]) -> bytes:
    """A batch of single reports of one survey."""
    digest = reports[0][len(MAGIC) + 2 : HEADER_SIZE]
    bodies = (report[HEADER_SIZE:] for report in reports)
    return batch_header(digest, len(reports)) + b"".join(bodies)
