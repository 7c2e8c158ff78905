"""Compaction: which staged uploads are shuffled into the next segment, and how it is written.

Analysts see only segments, and may compare what they see at two times. Segments therefore never
change, and each adds at least `at_least` + 1 reports of several uploads at once: a *batch*. The
last uploads of a day, which are too few for a batch, wait and join a batch of a later day. They
count as reports of that day; a segment that showed their own day would set them apart.

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
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import date
from itertools import groupby
from operator import itemgetter

from deniable.errors import InputError, StoreError, UnknownSurvey
from deniable.store.database import (
    IN_DAYS,
    Row,
    Session,
    Transact,
    day_range,
    delete_named,
    sql_lists,
)
from deniable.store.locations import Location
from deniable.store.segments import segment_file, survey_folder
from deniable.store.staged_rows import COLUMNS, StagedRow, keep_last_number
from deniable.survey import Survey

MAX_SEGMENT_BYTES = 1 << 24
"""A segment with this many bytes of reports is full. It is shuffled in memory, and new uploads wait
while its staged uploads are deleted."""
MAX_SEGMENT_UPLOADS = 1 << 14
"""A segment made of this many uploads is full."""

Days = tuple[date, date]
"""First and last of some days."""


@dataclass(frozen=True)
class Compacted:
    """Counts of one compaction.

    Parameters
    ----------
    segments : int
        Number of segments written.
    reports : int
        Number of reports moved from staging into segments.
    waiting : int
        Number of reports that are still staged, because there are too few for a batch, or because
        their upload is damaged.

    Examples
    --------
    >>> Compacted(segments=1, reports=1200, waiting=3).reports
    1200
    """

    segments: int
    reports: int
    waiting: int


@dataclass
class Compaction:
    """One compaction of a store, which the caller has locked; see `Store.compact`.

    at_least : minimum number of other reports that every upload is shuffled with
    day : current day
    survey_of : returns the survey with a digest
    read : runs a read-only transaction
    write : runs a transaction, provided that the lock is still held
    location : place of the segments
    """

    at_least: int
    day: date
    survey_of: Callable[[bytes], Survey]
    read: Transact
    write: Transact
    location: Location

    damaged: set[int] = field(default_factory=set)
    """Ids of uploads that were found damaged, and stay where they are."""
    newest = 0
    """Id of the last upload to compact, so that a busy collector cannot keep this running."""

    def __post_init__(self) -> None:
        if self.at_least < 1:
            raise InputError(f"expected at_least to be 1 or more, got {self.at_least}")

    def run(self) -> Compacted:
        """Write segments until too few reports are staged for another."""
        segments = reports = waiting = 0
        for digest, group in groupby(sorted(self._groups()), key=itemgetter(0)):
            survey, rest = self.survey_of(digest), 0
            first: date | None = None
            for _, day in group:
                # The rest of earlier days, which are over, is shuffled with this day.
                days = (day if first is None else first, day)
                while written := self._write_segment(survey, days):
                    segments, reports = segments + 1, reports + written
                staged = self._count_staged(survey, days)
                waiting += staged if first is None else staged - rest
                rest, first = staged, days[0] if staged and day < self.day else None
        return Compacted(segments, reports, waiting)

    def _groups(self) -> list[tuple[bytes, date]]:
        """Return survey digest and day of all staged uploads, and note the newest of them."""
        statement = "SELECT survey, day, max(id) FROM staged GROUP BY survey, day"
        rows = self.read(lambda db: db.rows(statement))
        self.newest = max((last for *_, last in rows), default=0)
        groups = []
        for digest, day, _ in rows:
            try:
                groups.append((self.survey_of(digest).digest, date.fromisoformat(day)))
            except (UnknownSurvey, AttributeError, TypeError, ValueError):
                continue  # a damaged upload
        return groups

    def _count_staged(self, survey: Survey, days: Days) -> int:
        """Return the number of reports of these days that are staged."""
        statement = f"SELECT coalesce(sum(reports), 0) FROM staged WHERE {IN_DAYS}"
        ((count,),) = self.read(lambda db: db.rows(statement, day_range(survey, *days)))
        return int(count)

    def _write_segment(self, survey: Survey, days: Days) -> int:
        """Replace uploads of these days, those of earlier days first, with a segment.

        The segment belongs to the last of the days. Return the number of its reports, or 0 if there
        are too few for a segment.
        """
        while True:
            ids, bodies, damaged = self.read(lambda db: self._take(db, survey, days))
            if not damaged:
                break
            self.damaged.update(damaged)
        if not ids:
            return 0
        day = days[-1]
        name = f"{survey_folder(survey)}/{day.isoformat()}/{os.urandom(16).hex()}.parquet"
        self.write(lambda db: _add_loose(db, name))
        data = segment_file(survey, bodies)
        self.location.put(name, data, day)
        reports, sha256 = len(bodies) // survey.body_size, hashlib.sha256(data).digest()
        segment = (name, survey.digest, day.isoformat(), reports, len(data), sha256)
        self.write(lambda db: _replace_uploads(db, ids, segment))
        return reports

    def _take(self, db: Session, survey: Survey, days: Days) -> tuple[list[int], bytes, list[int]]:
        """Return ids and bodies of the next segment's uploads, and ids of damaged uploads."""
        # Every upload has a report, so this many uploads always suffice for a segment.
        enough = MAX_SEGMENT_UPLOADS + self.at_least + 1 + len(self.damaged)
        found = db.rows(
            f"SELECT id, reports FROM staged WHERE {IN_DAYS} AND id <= ? ORDER BY day, id LIMIT ?",
            (*day_range(survey, *days), self.newest, enough),
        )
        chosen = [row for row in found if row[0] not in self.damaged and isinstance(row[1], int)]
        sizes = ((reports, reports * survey.body_size) for _, reports in chosen)
        ids = [id for id, _ in chosen[: uploads_of_segment(sizes, self.at_least)]]
        bodies, damaged = [], []
        for marks, chunk in sql_lists(ids):
            rows = db.stream(f"SELECT {COLUMNS} FROM staged WHERE id IN {marks}", chunk)
            for row in map(StagedRow._make, rows):
                bodies.append(row.bodies)
                if not row.intact:
                    damaged.append(row.id)
        return ids, b"" if damaged else b"".join(bodies), damaged


def uploads_of_segment(staged: Iterable[tuple[int, int]], at_least: int) -> int:
    """Return how many uploads make the next segment; 0 if there are too few.

    Each upload must be shuffled with `at_least` reports of others.

    staged : number of reports and of bytes in memory of each upload, in the order in which they
        are compacted; read only until the segment is full
    """
    # The largest upload is shuffled with the fewest reports of others.
    uploads = reports = largest = size = 0
    for upload_reports, upload_size in staged:
        uploads, reports, size = uploads + 1, reports + upload_reports, size + upload_size
        largest = max(largest, upload_reports)
        full = size >= MAX_SEGMENT_BYTES or uploads >= MAX_SEGMENT_UPLOADS
        if full and reports - largest >= at_least:
            break
    return uploads if reports - largest >= at_least else 0


def _add_loose(db: Session, name: str) -> None:
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
