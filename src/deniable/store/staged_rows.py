"""Staged uploads as rows: their numbers, their checksums, and what is done with damaged ones.

Every row has a checksum of its other columns. It is compared whenever the reports are read. A
compaction moves damaged rows to the table `damaged`, so that they stop nothing else.

In SQLite, uploads are numbered in the order of arrival, and no number is used twice: see
`acknowledged`. The number of the last one survives the deletion of its row in a setting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date
from typing import NamedTuple
from zlib import crc32

from deniable.errors import StoreError
from deniable.formatting import counted
from deniable.store.database import Row, Session, read_setting, sql_lists, write_setting
from deniable.store.uploads import Upload
from deniable.survey import Survey

COLUMNS = "id, survey, day, reports, bodies, checksum"
"""Columns of `staged`, in the order of `StagedRow`."""
LAST_NUMBER, LOST_NUMBERS = "last_upload", "lost_uploads"
"""Settings: number of the last upload, and ranges of numbers whose uploads were lost."""
KnownSurveys = dict[bytes, Survey]


class StagedRow(NamedTuple):
    """A row of `staged`; if the row is damaged, its values may have other types."""

    id: int
    survey: bytes
    day: str
    reports: int
    bodies: bytes
    checksum: int | None

    @classmethod
    def new(cls, upload: Upload) -> StagedRow:
        """Return the row of an upload, whose number is not chosen yet."""
        values = (upload.digest, upload.day.isoformat(), upload.reports, upload.bodies)
        return cls(0, *values, _checksum(*values))

    @property
    def intact(self) -> bool:
        """Whether the checksum is right; rows of earlier versions have none."""
        try:
            return self.checksum in (None, _checksum(*self[1:5]))
        except (TypeError, AttributeError):  # the type of a value is damaged
            return False


def _checksum(survey: bytes, day: str, reports: int, bodies: bytes) -> int:
    """Return the CRC-32 of all columns that describe an upload."""
    return crc32(bodies, crc32(b"%b %b %d " % (survey, day.encode(), reports)))


def intact_bodies(rows: Iterable[Row]) -> Iterator[bytes]:
    """Yield the bodies of the reports in rows of `COLUMNS`; raise StoreError after a damaged row.

    The error comes at the end, because a session must read its rows to the end.
    """
    damaged = None
    for row in map(StagedRow._make, rows):
        if row.intact:
            yield row.bodies
        else:
            damaged = row.id
    if damaged is not None:
        raise damaged_row(damaged)


def damaged_row(number: int) -> StoreError:
    """Return the error for reading a damaged row."""
    return StoreError(
        f"staged upload {number} is damaged: deniable store check STORE tells more, and deniable "
        "compact STORE sets it aside, so that the others can be read"
    )


def check_rows(rows: Iterable[Row], known: KnownSurveys) -> Iterator[str]:
    """Yield what is wrong with rows of `COLUMNS`."""
    for row in map(StagedRow._make, rows):
        name = f"staged upload {row.id} ({_described(row[1:4], known)})"
        if not row.intact:
            yield f"{name} is damaged: deniable compact STORE sets it aside"
        elif row.survey not in known:
            yield f"{name} answers a survey that the store does not have"
        elif len(row.bodies) != row.reports * known[row.survey].body_size:
            yield f"{name} has {len(row.bodies)} bytes, which is no whole number of reports"


def _described(columns: Row, known: KnownSurveys) -> str:
    """Return survey, day and number of reports of a row that may be damaged."""
    survey, day, reports = columns
    found = known.get(survey) if isinstance(survey, bytes) else None
    amount = counted(reports, "report") if isinstance(reports, int) else "some reports"
    name = f"{found.name} v{found.version}" if found else "an unknown survey"
    return f"{amount} of {name}, {day!s:.20}"


# --- damaged and lost uploads --------------------------------------------------------------------


def set_aside(db: Session, ids: Sequence[int], day: date) -> None:
    """Move damaged rows to the table `damaged`."""
    keep_last_number(db)
    columns = "survey, day, reports, bodies, checksum"
    for marks, chunk in sql_lists(ids):
        db.run(
            f"INSERT INTO damaged ({columns}, set_aside) SELECT {columns}, ? FROM staged "
            f"WHERE id IN {marks}",
            (day.isoformat(), *chunk),
        )
        db.run(f"DELETE FROM staged WHERE id IN {marks}", chunk)


def known_damage(db: Session, known: Callable[[], KnownSurveys]) -> list[str]:
    """Return a sentence for each damaged upload that was set aside, and for each loss."""
    advice = "restore the store from a backup, or run deniable store accept STORE --damage"
    rows = db.rows("SELECT survey, day, reports, set_aside FROM damaged ORDER BY id")
    surveys = known() if rows else {}
    sentences = [
        f"a damaged upload ({_described(row[:3], surveys)}) was set aside on {row[3]} and is not "
        f"counted: {advice}, which deletes it"
        for row in rows
    ]
    for numbers in (read_setting(db, LOST_NUMBERS) or "").split():
        first, last = map(int, numbers.split("-"))
        sentences.append(
            f"{counted(last - first + 1, 'acknowledged upload')} (numbers {first:,} to {last:,}) "
            "disappeared: the file or its log was damaged, or replaced by an older copy; "
            f"{advice}, which ends this message"
        )
    return sentences


def forget_damage(db: Session, known: Callable[[], KnownSurveys]) -> list[str]:
    """Delete damaged uploads that were set aside, and the record of losses; return what it was."""
    sentences = known_damage(db, known)
    db.run("DELETE FROM damaged")
    write_setting(db, LOST_NUMBERS, None)
    return sentences


# --- numbers -------------------------------------------------------------------------------------


def last_number(db: Session) -> int:
    """Return the number of the last upload that was stored."""
    rows = db.rows(
        "SELECT max(id) FROM staged "
        "UNION ALL SELECT CAST(value AS BIGINT) FROM setting WHERE name = ?",
        (LAST_NUMBER,),
    )
    return max(number or 0 for (number,) in rows)


def keep_last_number(db: Session) -> None:
    """Record the number of the last upload, before rows are deleted."""
    write_setting(db, LAST_NUMBER, str(last_number(db)))


def note_lost(db: Session, acknowledged: int) -> None:
    """Record the loss of uploads after the last one that is stored, up to this number."""
    stored = last_number(db)
    if acknowledged > stored:
        lost = (read_setting(db, LOST_NUMBERS) or "").split()
        write_setting(db, LOST_NUMBERS, " ".join([*lost, f"{stored + 1}-{acknowledged}"]))
        write_setting(db, LAST_NUMBER, str(acknowledged))
