"""Staged uploads as rows: their numbers and checksums, and what is known to be damaged or lost.

Every row has a checksum of its other columns. It is compared whenever the reports are read. A
damaged row stays where it is; whoever reads the reports leaves it out, and says so.

In SQLite, uploads are numbered in the order of arrival, and no number is used twice: see
`acknowledged`. The number of the last one survives the deletion of its row in a setting.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple
from zlib import crc32

from deniable.formatting import counted, visible
from deniable.store.database import Session, read_setting, write_setting
from deniable.store.uploads import Upload
from deniable.survey import Survey

COLUMNS = "id, survey, day, reports, bodies, checksum"
"""Columns of `staged`, in the order of `StagedRow`."""
LAST_NUMBER, LOSSES = "last_upload", "losses"
"""Settings: number of the last upload, and what is known to be lost, one sentence per line."""
ADVICE = "restore the backup, or let it go with deniable store delete STORE --damaged"
UNKNOWN_NUMBER = (
    "the file with the number of the last upload (.last) was missing or damaged, so a loss of "
    "uploads before would not be noticed"
)
KnownSurveys = Mapping[bytes, Survey]


class StagedRow(NamedTuple):
    """A row of `staged`; if the row is damaged, its values may have other types."""

    id: int
    survey: bytes
    day: str
    reports: int
    bodies: bytes
    checksum: int

    @classmethod
    def new(cls, upload: Upload) -> StagedRow:
        """Return the row of an upload, whose number is not chosen yet."""
        values = (upload.digest, upload.day.isoformat(), upload.reports, upload.bodies)
        return cls(0, *values, _checksum(*values))

    @property
    def intact(self) -> bool:
        """Whether the checksum is right."""
        try:
            return self.checksum == _checksum(*self[1:5])
        except (TypeError, AttributeError):  # the type of a value is damaged
            return False


def _checksum(survey: bytes, day: str, reports: int, bodies: bytes) -> int:
    """Return the CRC-32 of all columns that describe an upload."""
    return crc32(bodies, crc32(b"%b %b %d " % (survey, day.encode(), reports)))


def intact_rows(db: Session, damaged: list[StagedRow]) -> Iterator[StagedRow]:
    """Yield the rows of all staged uploads that are intact, and append the others to a list."""
    for row in map(StagedRow._make, db.stream(f"SELECT {COLUMNS} FROM staged")):
        if row.intact:
            yield row
        else:
            damaged.append(row)


def damaged_rows(db: Session) -> list[StagedRow]:
    """Return the rows of all staged uploads that are damaged."""
    damaged: list[StagedRow] = []
    for _ in intact_rows(db, damaged):
        pass
    return damaged


def damage(db: Session, damaged: Sequence[StagedRow], known: KnownSurveys) -> list[str]:
    """Return a sentence for each of these damaged rows, and for each known loss."""
    sentences = [f"{_described(row, known)} is damaged and left out: {ADVICE}" for row in damaged]
    return sentences + losses(db)


def _described(row: StagedRow, known: KnownSurveys) -> str:
    """Return number, reports, survey and day of a damaged row."""
    survey = known.get(row.survey) if isinstance(row.survey, bytes) else None
    amount = counted(row.reports, "report") if isinstance(row.reports, int) else "some reports"
    name = f"{survey.name} v{survey.version}" if survey else "an unknown survey"
    return f"staged upload {row.id} ({amount} of {name}, {visible(str(row.day))[:20]})"


def losses(db: Session) -> list[str]:
    """Return the sentences about known losses."""
    return (read_setting(db, LOSSES) or "").splitlines()


def note_losses(db: Session, sentences: Sequence[str]) -> None:
    """Add sentences about losses to those that are known."""
    noted = dict.fromkeys([*losses(db), *sentences])
    write_setting(db, LOSSES, "\n".join(noted) or None)


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


def note_lost(db: Session, acknowledged: int | None) -> None:
    """Note the loss of uploads after the last one that is stored.

    acknowledged : number of the last acknowledged upload; None if it is not known
    """
    stored = last_number(db)
    if acknowledged is None:
        if stored:
            note_losses(db, [f"{UNKNOWN_NUMBER}: {ADVICE}"])
    elif acknowledged > stored:
        lost = counted(acknowledged - stored, "acknowledged upload")
        lost += f" (numbers {stored + 1:,} to {acknowledged:,})"
        cause = "the file or its log was damaged, or replaced by an older copy"
        note_losses(db, [f"{lost} disappeared: {cause}; {ADVICE}"])
        write_setting(db, LAST_NUMBER, str(acknowledged))
