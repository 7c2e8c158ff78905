"""From staged uploads to segments, in a database; killed at any point, nothing is lost or doubled.

1. A transaction notes the new segment's name in `loose`.
2. The segment is written and synced.
3. A transaction makes it part of the store, takes its name from `loose`, and deletes the staged
   uploads (and the segment that they joined, whose name goes into `loose`).
4. The next compaction begins by removing the files named in `loose`, then their names. Until then a
   scan under way can read a segment that was joined.

Killed before 3 is durable, the staged uploads count and the file goes at the next start; after it,
the segment counts.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from datetime import date

from deniable.errors import StoreError
from deniable.store.compaction import MAX_SEGMENT_UPLOADS, Compaction
from deniable.store.locations import Location
from deniable.store.segments import folder_of, read_bodies, segment_file
from deniable.store.sql.database import Row, Session, Transact, listed
from deniable.survey import Survey

GROUP = "survey = ? AND day = ?"


@dataclass
class SqlCompaction(Compaction):
    """One run over a database.

    write : runs a transaction, if the lock is still held
    newest : the last upload that is looked at: a busy collector shall not keep us here for ever
    """

    read: Transact
    write: Transact
    location: Location
    newest: int = 0

    def groups(self) -> list[tuple[bytes, date]]:
        statement = "SELECT survey, day, max(id) FROM staged GROUP BY survey, day"
        rows = self.read(lambda db: db.rows(statement))
        self.newest = max((last for *_, last in rows), default=0)
        return [(digest, date.fromisoformat(day)) for digest, day, _ in rows]

    def waiting(self, survey: Survey, day: date) -> int:
        statement = f"SELECT coalesce(sum(reports), 0) FROM staged WHERE {GROUP}"
        ((count,),) = self.read(lambda db: db.rows(statement, _group(survey, day)))
        return int(count)

    def write_segment(self, survey: Survey, day: date) -> int:
        ids, bodies, joined = self.read(lambda db: self._take(db, survey, day))
        if not ids:
            return 0
        written = len(bodies) // survey.body_size
        if joined:
            bodies += read_bodies(self.location, joined)
        name = f"{folder_of(survey)}/{day.isoformat()}/{os.urandom(16).hex()}.parquet"
        self.write(lambda db: note_loose(db, name))
        data = segment_file(survey, bodies)
        self.location.put(name, data, day)
        reports, sha256 = len(bodies) // survey.body_size, hashlib.sha256(data).digest()
        segment = (name, *_group(survey, day), reports, len(data), sha256)
        self.write(lambda db: _swap(db, ids, segment, joined))
        return written

    def _take(self, db: Session, survey: Survey, day: date) -> tuple[list[int], bytes, str | None]:
        """Return the next segment's uploads: ids, bodies, and the segment they join, if any."""
        group = _group(survey, day)

        def smallest() -> tuple[str, int] | None:
            by_size = "ORDER BY reports LIMIT 1"
            rows = db.rows(f"SELECT name, reports FROM segment WHERE {GROUP} {by_size}", group)
            return (rows[0][0], rows[0][1]) if rows else None

        # Each upload has a report, so that this many rows are always enough for a segment.
        enough = MAX_SEGMENT_UPLOADS + self.at_least + 1
        rows = db.rows(
            f"SELECT id, reports FROM staged WHERE {GROUP} AND id <= ? ORDER BY id LIMIT ?",
            (*group, self.newest, enough),
        )
        staged = ((reports, reports * survey.body_size) for _, reports in rows)
        count, joined = self.choose(staged, day, smallest)
        if not count:
            return [], b"", None
        ids = [id for id, _ in rows[:count]]
        bodies = db.stream(
            f"SELECT bodies FROM staged WHERE {GROUP} AND id BETWEEN ? AND ?",
            (*group, ids[0], ids[-1]),
        )
        return ids, b"".join(row[0] for row in bodies), joined


def _group(survey: Survey, day: date) -> tuple[bytes, str]:
    return survey.digest, day.isoformat()


def note_loose(db: Session, name: str) -> None:
    """Note that a file of this name may exist from here on."""
    db.run("INSERT INTO loose (name) VALUES (?) ON CONFLICT DO NOTHING", (name,))


def _swap(db: Session, ids: list[int], segment: Row, joined: str | None) -> None:
    """Let the segment count from here on, and what it was made of no longer."""
    name = segment[:1]
    if db.rows("SELECT name FROM segment WHERE name = ?", name):
        return  # the transaction was committed before, and only its answer was lost
    deleted = sum(
        db.run(f"DELETE FROM staged WHERE id IN {marks}", chunk) for marks, chunk in listed(ids)
    )
    if deleted != len(ids):
        raise StoreError(
            f"expected {len(ids)} staged uploads, got {deleted}: something else changed the "
            "store meanwhile; nothing was compacted, try again"
        )
    columns = "name, survey, day, reports, size, sha256"
    db.run(f"INSERT INTO segment ({columns}) VALUES (?, ?, ?, ?, ?, ?)", segment)
    db.run("DELETE FROM loose WHERE name = ?", name)
    if joined:
        db.run("DELETE FROM segment WHERE name = ?", (joined,))
        note_loose(db, joined)


def sweep(write: Transact, location: Location) -> None:
    """Remove the files that are not part of the store."""
    names = write(lambda db: db.rows("SELECT name FROM loose"))
    for (name,) in names:
        location.remove(name)
    if names:
        write(lambda db: db.many("DELETE FROM loose WHERE name = ?", names))
