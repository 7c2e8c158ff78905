"""Compaction of a store in a database.

The table `loose` names files that may exist but are not part of the store.

1. A transaction adds the name of the new segment to `loose`.
2. The segment is written and synced.
3. A transaction makes the segment part of the store, removes its name from `loose`, and deletes the
   staged uploads.
4. The next compaction or deletion starts by deleting the files named in `loose`, then their names.

If the process is killed before step 3 is durable, the staged uploads count, and the next compaction
deletes the file. After step 3, the segment counts. Nothing is lost or counted twice.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from datetime import date

from deniable.errors import StoreError, UnknownSurvey
from deniable.store.compaction import MAX_SEGMENT_UPLOADS, Compaction, Days
from deniable.store.locations import Location
from deniable.store.segments import segment_file, survey_folder
from deniable.store.sql.database import Row, Session, Transact, delete_named, sql_lists
from deniable.store.sql.staged_rows import COLUMNS, StagedRow, keep_last_number, set_aside
from deniable.survey import Survey

SAME_GROUP = "survey = ? AND day BETWEEN ? AND ?"
"""Condition for the rows of one survey in some days."""


@dataclass
class SqlCompaction(Compaction):
    """One compaction of a database.

    read : runs a read-only transaction
    write : runs a transaction, provided that the lock is still held
    location : place of the segments
    newest : id of the last upload to compact, so that a busy collector cannot keep this running
    """

    read: Transact
    write: Transact
    location: Location
    newest: int = 0

    def groups(self) -> list[tuple[bytes, date]]:
        """Return survey digest and day of all staged uploads, and note the newest of them."""
        statement = "SELECT survey, day, max(id) FROM staged GROUP BY survey, day"
        rows = self.read(lambda db: db.rows(statement))
        self.newest = max((last for *_, last in rows), default=0)
        groups = []
        for digest, day, _ in rows:
            try:
                groups.append((self.survey_of(digest).digest, date.fromisoformat(day)))
            except (UnknownSurvey, AttributeError, TypeError, ValueError):
                self._set_aside_group(digest, day)
        return groups

    def _set_aside_group(self, digest: object, day: object) -> None:
        """Set uploads aside whose survey or day cannot be right."""
        # Damaged text is not what it was read as, so the database cannot search for it.
        rows = self.read(lambda db: db.rows("SELECT id, survey, day FROM staged"))
        self._set_aside([id for id, *values in rows if values == [digest, day]])

    def _set_aside(self, ids: list[int]) -> None:
        """Set damaged uploads aside, so that they do not stop this compaction and later ones."""
        self.write(lambda db: set_aside(db, ids, self.day))
        self.damaged += len(ids)

    def count_staged(self, survey: Survey, days: Days) -> int:
        """Return the number of reports of these days that are staged."""
        statement = f"SELECT coalesce(sum(reports), 0) FROM staged WHERE {SAME_GROUP}"
        ((count,),) = self.read(lambda db: db.rows(statement, _group(survey, days)))
        return int(count)

    def write_segment(self, survey: Survey, days: Days) -> int:
        """Replace staged uploads with a segment; return the number of their reports."""
        while True:
            ids, bodies, damaged = self.read(lambda db: self._take(db, survey, days))
            if not damaged:
                break
            self._set_aside(damaged)
        if not ids:
            return 0
        day = days[-1]
        name = f"{survey_folder(survey)}/{day.isoformat()}/{os.urandom(16).hex()}.parquet"
        self.write(lambda db: add_loose(db, name))
        data = segment_file(survey, bodies)
        self.location.put(name, data, day)
        reports, sha256 = len(bodies) // survey.body_size, hashlib.sha256(data).digest()
        segment = (name, survey.digest, day.isoformat(), reports, len(data), sha256)
        self.write(lambda db: _replace_uploads(db, ids, segment))
        return reports

    def _take(self, db: Session, survey: Survey, days: Days) -> tuple[list[int], bytes, list[int]]:
        """Return ids and bodies of the next segment's uploads, and ids of damaged uploads."""
        # Every upload has a report, so this many uploads always suffice for a segment.
        enough = MAX_SEGMENT_UPLOADS + self.at_least + 1
        chosen = db.rows(
            f"SELECT id, reports FROM staged WHERE {SAME_GROUP} AND id <= ? ORDER BY day, id "
            "LIMIT ?",
            (*_group(survey, days), self.newest, enough),
        )
        count = self.count_uploads((reports, reports * survey.body_size) for _, reports in chosen)
        # If there are too few, they stay staged, but are read to see whether they are intact.
        ids = [id for id, _ in chosen[: count or None]]
        bodies, damaged = [], []
        for marks, chunk in sql_lists(ids):
            rows = db.stream(f"SELECT {COLUMNS} FROM staged WHERE id IN {marks}", chunk)
            for row in map(StagedRow._make, rows):
                bodies.append(row.bodies)
                if not row.intact or len(row.bodies) != row.reports * survey.body_size:
                    damaged.append(row.id)
        return (ids, b"".join(bodies), []) if count and not damaged else ([], b"", damaged)


def _group(survey: Survey, days: Days) -> tuple[bytes, str, str]:
    """Return the values of `SAME_GROUP`."""
    return survey.digest, days[0].isoformat(), days[-1].isoformat()


def add_loose(db: Session, name: str) -> None:
    """Record that a file of this name may exist without being part of the store."""
    db.run("INSERT INTO loose (name) VALUES (?) ON CONFLICT DO NOTHING", (name,))


def _replace_uploads(db: Session, ids: list[int], segment: Row) -> None:
    """Make the segment part of the store in place of the staged uploads."""
    name = segment[:1]
    if db.rows("SELECT name FROM segment WHERE name = ?", name):
        return  # an earlier attempt was committed, but its confirmation was lost
    keep_last_number(db)
    deleted = sum(
        db.run(f"DELETE FROM staged WHERE id IN {marks}", chunk) for marks, chunk in sql_lists(ids)
    )
    if deleted != len(ids):
        raise StoreError(
            f"expected {len(ids)} staged uploads, got {deleted}: another process changed the store "
            "during the compaction, and nothing was compacted; try again"
        )
    columns = "name, survey, day, reports, size, sha256"
    db.run(f"INSERT INTO segment ({columns}) VALUES (?, ?, ?, ?, ?, ?)", segment)
    db.run("DELETE FROM loose WHERE name = ?", name)


def delete_loose_files(write: Transact, location: Location) -> None:
    """Delete the files that are not part of the store."""
    names = write(lambda db: db.rows("SELECT name FROM loose"))
    if names:
        location.remove(*(name for (name,) in names))
        write(lambda db: delete_named(db, "loose", [name for (name,) in names]))
