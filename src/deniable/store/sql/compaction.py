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

from dataclasses import dataclass, field
from datetime import date
from functools import partial

from deniable.errors import StoreError
from deniable.store import segments
from deniable.store.base import Compacted
from deniable.store.places import Place
from deniable.store.segments import MOST_BYTES, MOST_UPLOADS, Segment, others, portion
from deniable.store.sql.sessions import Session, Transact, listed
from deniable.survey import Survey

COLUMNS = "name, survey, day, reports, size, sha256"


@dataclass(frozen=True)
class Taken:
    """Staged uploads that make the next segment, with the segment that they join, if any."""

    ids: list[int]
    bodies: bytes
    joined: Segment | None


@dataclass
class Compaction:
    """One run over a store; what it did so far."""

    write: Transact
    read: Transact
    place: Place
    at_least: int
    today: date
    newest: int
    """The last upload that is looked at: a busy collector shall not keep us here for ever."""
    _written: list[int] = field(default_factory=list)
    _joined: int = 0
    _waiting: int = 0

    def done(self) -> Compacted:
        """What it did."""
        return Compacted(len(self._written), sum(self._written) - self._joined, self._waiting)

    def compact_day(self, survey: Survey, day: date) -> None:
        """Segment after segment, while enough is staged for one."""
        while taken := self.read(lambda db: self._take(db, survey, day)):
            bodies = taken.bodies
            if taken.joined:
                bodies += segments.read_bodies(self.place, taken.joined.name)
                self._joined += taken.joined.reports
            name = segments.new_name(survey, day)
            self.write(partial(_note, name=name))
            segment = segments.write(self.place, name, survey, day, bodies)
            self.write(partial(_swap, taken=taken, segment=segment))
            self._written.append(segment.reports)
        self._waiting += self.read(
            lambda db: db.rows(
                "SELECT coalesce(sum(reports), 0) FROM staged WHERE survey = ? AND day = ?",
                (survey.digest, day.isoformat()),
            )
        )[0][0]

    def _take(self, db: Session, survey: Survey, day: date) -> Taken | None:
        which = (survey.digest, day.isoformat())
        # Each upload has a report, so that this many rows are always enough for a segment.
        enough = MOST_UPLOADS + self.at_least + 1
        found = db.rows(
            "SELECT id, reports FROM staged WHERE survey = ? AND day = ? AND id <= ? "
            "ORDER BY id LIMIT ?",
            (*which, self.newest, enough),
        )
        sizes = [reports for _, reports in found]
        count, joined = portion(sizes, self.at_least, MOST_BYTES // survey.body_size), None
        if found and not count and day < self.today:
            # No more will come: the rest of the day hides among reports that are shuffled already.
            joined = _smallest(db, which)
            if joined and others(sizes) + joined.reports >= self.at_least:
                count = len(found)
        if not count:
            return None
        ids = [i for i, _ in found[:count]]
        bodies = db.stream(
            "SELECT bodies FROM staged WHERE survey = ? AND day = ? AND id BETWEEN ? AND ?",
            (*which, ids[0], ids[-1]),
        )
        return Taken(ids, b"".join(row[0] for row in bodies), joined)


def _note(db: Session, name: str) -> None:
    """A file of this name may exist from here on."""
    db.run("INSERT INTO loose (name) VALUES (?) ON CONFLICT DO NOTHING", (name,))


def _swap(db: Session, taken: Taken, segment: Segment) -> None:
    """The segment counts from here on, and what it was made of no longer does."""
    if db.rows("SELECT name FROM segment WHERE name = ?", (segment.name,)):
        return  # the transaction was committed before, and only its answer was lost
    deleted = sum(
        db.run(f"DELETE FROM staged WHERE id IN {marks}", ids) for marks, ids in listed(taken.ids)
    )
    if deleted != len(taken.ids):
        raise StoreError(
            f"expected {len(taken.ids)} staged uploads, got {deleted}: something else changed the "
            "store meanwhile; nothing was compacted, try again"
        )
    db.run(f"INSERT INTO segment ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)", _row(segment))
    db.run("DELETE FROM loose WHERE name = ?", (segment.name,))
    if taken.joined:
        db.run("DELETE FROM segment WHERE name = ?", (taken.joined.name,))
        _note(db, taken.joined.name)


def sweep(write: Transact, place: Place) -> None:
    """Remove the files that are not part of the store."""
    names = [name for (name,) in write(lambda db: db.rows("SELECT name FROM loose"))]
    for name in names:
        place.remove(name)
    if names:
        write(lambda db: db.many("DELETE FROM loose WHERE name = ?", [(n,) for n in names]))


def recorded(db: Session) -> list[Segment]:
    """Every segment of the store."""
    return [_segment(*row) for row in db.rows(f"SELECT {COLUMNS} FROM segment ORDER BY name")]


def _smallest(db: Session, which: tuple[bytes, str]) -> Segment | None:
    rows = db.rows(
        f"SELECT {COLUMNS} FROM segment WHERE survey = ? AND day = ? ORDER BY reports LIMIT 1",
        which,
    )
    return _segment(*rows[0]) if rows else None


def _segment(name: str, digest: bytes, day: str, reports: int, size: int, sha: bytes) -> Segment:
    return Segment(name, digest, date.fromisoformat(day), reports, size, sha)


def _row(segment: Segment) -> tuple[str, bytes, str, int, int, bytes]:
    day = segment.day.isoformat()
    return (segment.name, segment.digest, day, segment.reports, segment.size, segment.sha256)
