"""Files of a folder store: staged uploads, receipts of uploads, segments; their names and content.

Names of segments and of files of receipts tell their day and how many reports or receipts they
have: `…/DAY/N-NAME.parquet`.
"""

from __future__ import annotations

import io
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from deniable.columns.arrow import parquet_writer
from deniable.errors import StoreError
from deniable.store.base import Upload
from deniable.store.locations import Location
from deniable.store.segments import folder_of, segment_file
from deniable.survey import Survey

RECEIPTS = {"name": pa.binary(), "seal": pa.binary()}
GROUPS = {"survey": pa.binary(), "day": pa.string(), "reports": pa.int64()}
STAGED = pa.schema(RECEIPTS | GROUPS | {"bodies": pa.large_binary()})

Files = dict[str, tuple[bytes, date | None]]
"""Content of files by their names, with the day they are of."""


@dataclass(frozen=True)
class Staged:
    """One upload; its name and seal are None once they are to be forgotten."""

    name: bytes | None
    seal: bytes | None
    digest: bytes
    day: date
    reports: int
    bodies: bytes

    @classmethod
    def of(cls, upload: Upload) -> Staged:
        """Return the upload as it is kept."""
        return cls(*upload.receipt, upload.digest, upload.day, upload.reports, upload.bodies)


# --- names ---------------------------------------------------------------------------------------


def day_of(name: str) -> date:
    """Return the day of a segment or of a file of receipts."""
    return date.fromisoformat(name.split("/")[-2])


def count_of(name: str) -> int:
    """Return how many reports or receipts the file has."""
    return int(name.split("/")[-1].split("-")[0])


def segments_of(survey: Survey) -> str:
    """Return the folder of the survey's segments."""
    return f"segments/{folder_of(survey)}"


def _dated(folder: str, day: date, count: int, content: bytes) -> Files:
    name = f"{folder}/{day.isoformat()}/{count}-{os.urandom(16).hex()}.parquet"
    return {name: (content, day)}


# --- writing -------------------------------------------------------------------------------------


def staged_files(uploads: Sequence[Staged]) -> Files:
    """Return these uploads as a file of their own, if there are any."""
    if not uploads:
        return {}
    rows = [(u.name, u.seal, u.digest, u.day.isoformat(), u.reports, u.bodies) for u in uploads]
    return {f"staged/{os.urandom(16).hex()}.parquet": (_content(rows, STAGED), None)}


def receipt_files(uploads: Iterable[Staged]) -> Files:
    """Return what is kept of uploads that are no longer staged: one file per day.

    Receipts stand in the order of their names, which is no order of arrival.
    """
    by_day = defaultdict(list)
    for upload in uploads:
        if upload.name is not None:
            by_day[upload.day].append((upload.name, upload.seal))
    files: Files = {}
    for day, receipts in by_day.items():
        files |= _dated("keys", day, len(receipts), _content(sorted(receipts), pa.schema(RECEIPTS)))
    return files


def segment_files(survey: Survey, day: date, bodies: bytes) -> Files:
    """Return the reports, shuffled, as a segment."""
    count = len(bodies) // survey.body_size
    return _dated(segments_of(survey), day, count, segment_file(survey, bodies))


def _content(rows: Sequence[tuple[object, ...]], schema: pa.Schema) -> bytes:
    columns = list(zip(*rows, strict=True))
    arrays = [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)]
    sink = io.BytesIO()
    with parquet_writer(sink, schema) as file:
        file.write_table(pa.Table.from_arrays(arrays, schema=schema))
    return sink.getvalue()


# --- reading -------------------------------------------------------------------------------------


def read_staged(location: Location, name: str) -> list[Staged]:
    """Return the uploads of a file."""
    return [
        Staged(receipt, seal, digest, date.fromisoformat(day), reports, bodies)
        for receipt, seal, digest, day, reports, bodies in _rows(location, name, STAGED.names)
    ]


def read_receipts(location: Location, name: str) -> Iterator[tuple[bytes, bytes]]:
    """Return names and seals of a file of uploads or of receipts."""
    return ((n, seal) for n, seal in _rows(location, name, [*RECEIPTS]) if n is not None)


def read_groups(location: Location, name: str) -> list[tuple[bytes, date, int]]:
    """Return survey, day and number of reports of each upload in a file."""
    rows = _rows(location, name, [*GROUPS])
    return [(digest, date.fromisoformat(day), reports) for digest, day, reports in rows]


def _rows(location: Location, name: str, columns: list[str]) -> Iterator[tuple[Any, ...]]:
    try:
        with location.source(name) as source:
            table = pq.read_table(source, columns=columns, use_threads=False)
    except (pa.ArrowException, KeyError) as error:
        raise StoreError(f"{name} is damaged: {error}; restore it from a backup") from None
    return zip(*(table[c].to_pylist() for c in columns), strict=True)
