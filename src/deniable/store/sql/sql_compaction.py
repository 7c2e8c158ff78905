"""Compaction of a store in a database.

The table `loose` names files that may exist but are not part of the store.

1. A transaction adds the name of the new segment to `loose`.
2. The segment is written and synced.
3. A transaction makes the segment part of the store, removes its name from `loose`, and deletes the
   staged uploads. If they were merged with an older segment, it also adds that one to `loose`.
4. The next compaction starts by deleting the files named in `loose`, then their names. Until then,
   a running scan can still read the older segment.

If the process is killed before step 3 is durable, the staged uploads count, and the next compaction
deletes the file. After step 3, the segment counts. Nothing is lost or counted twice.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from datetime import date

from deniable.errors import StoreError
from deniable.store.compaction import MAX_SEGMENT_UPLOADS, Compaction
from deniable.store.locations import Location
from deniable.store.segments import read_bodies, segment_file, survey_folder
from deniable.store.sql.database import Row, Session, Transact, sql_lists
from deniable.survey import Survey

SAME_GROUP = "survey = ? AND day = ?"
"""Condition for the rows of one survey and day."""


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
        return [(digest, date.fromisoformat(day)) for digest, day, _ in rows]

    def count_staged(self, survey: Survey, day: date) -> int:
        """Return the number of reports that are staged."""
        statement = f"SELECT coalesce(sum(reports), 0) FROM staged WHERE {SAME_GROUP}"
        ((count,),) = self.read(lambda db: db.rows(statement, _group(survey, day)))
        return int(count)

    def write_segment(self, survey: Survey, day: date) -> int:
        """Replace staged uploads with a segment; return the number of their reports."""
        ids, bodies, merged = self.read(lambda db: self._take(db, survey, day))
        if not ids:
            return 0
        written = len(bodies) // survey.body_size
        if merged:
            bodies += read_bodies(self.location, merged)
        name = f"{survey_folder(survey)}/{day.isoformat()}/{os.urandom(16).hex()}.parquet"
        self.write(lambda db: add_loose(db, name))
        data = segment_file(survey, bodies)
        self.location.put(name, data, day)
        reports, sha256 = len(bodies) // survey.body_size, hashlib.sha256(data).digest()
        segment = (name, *_group(survey, day), reports, len(data), sha256)
        self.write(lambda db: _replace_uploads(db, ids, segment, merged))
        return written

    def _take(self, db: Session, survey: Survey, day: date) -> tuple[list[int], bytes, str | None]:
        """Return ids and bodies of the next segment's uploads, and the segment to merge with."""
        group = _group(survey, day)

        def find_smallest_segment() -> tuple[str, int] | None:
            by_size = "ORDER BY reports LIMIT 1"
            rows = db.rows(f"SELECT name, reports FROM segment WHERE {SAME_GROUP} {by_size}", group)
            return (rows[0][0], rows[0][1]) if rows else None

        # Every upload has a report, so this many uploads always suffice for a segment.
        enough = MAX_SEGMENT_UPLOADS + self.at_least + 1
        rows = db.rows(
            f"SELECT id, reports FROM staged WHERE {SAME_GROUP} AND id <= ? ORDER BY id LIMIT ?",
            (*group, self.newest, enough),
        )
        staged = ((reports, reports * survey.body_size) for _, reports in rows)
        count, merged = self.choose_uploads(staged, day, find_smallest_segment)
        if not count:
            return [], b"", None
        ids = [id for id, _ in rows[:count]]
        bodies = db.stream(
            f"SELECT bodies FROM staged WHERE {SAME_GROUP} AND id BETWEEN ? AND ?",
            (*group, ids[0], ids[-1]),
        )
        return ids, b"".join(row[0] for row in bodies), merged


def _group(survey: Survey, day: date) -> tuple[bytes, str]:
    """Return the values of `SAME_GROUP`."""
    return survey.digest, day.isoformat()


def add_loose(db: Session, name: str) -> None:
    """Record that a file of this name may exist without being part of the store."""
    db.run("INSERT INTO loose (name) VALUES (?) ON CONFLICT DO NOTHING", (name,))


def _replace_uploads(db: Session, ids: list[int], segment: Row, merged: str | None) -> None:
    """Make the segment part of the store in place of the staged uploads and the merged segment."""
    name = segment[:1]
    if db.rows("SELECT name FROM segment WHERE name = ?", name):
        return  # an earlier attempt was committed, but its confirmation was lost
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
    if merged:
        db.run("DELETE FROM segment WHERE name = ?", (merged,))
        add_loose(db, merged)


def delete_loose_files(write: Transact, location: Location) -> None:
    """Delete the files that are not part of the store."""
    names = write(lambda db: db.rows("SELECT name FROM loose"))
    for (name,) in names:
        location.remove(name)
    if names:
        write(lambda db: db.many("DELETE FROM loose WHERE name = ?", names))
