"""Names and content of the files of a folder store: staged uploads, receipts, segments.

The name of a file, `…/NAME-SHA256.parquet`, contains the hash of its content, by which damage is
noticed; only files of earlier versions have none. The name of a segment or receipt file,
`…/DAY/N-NAME-SHA256.parquet`, also contains its day and its number N of reports or receipts.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from deniable.columns.arrow import damage_as, parquet_writer
from deniable.errors import StoreError
from deniable.store.base import Upload
from deniable.store.locations import Location
from deniable.store.segments import segment_file, survey_folder
from deniable.survey import Survey

RECEIPTS = {"name": pa.binary(), "seal": pa.binary()}
GROUPS = {"survey": pa.binary(), "day": pa.string(), "reports": pa.int64()}
STAGED = pa.schema(RECEIPTS | GROUPS | {"bodies": pa.large_binary()})

Files = dict[str, tuple[bytes, date | None]]
"""Content of files and the day they belong to, if any, by name."""
Group = tuple[bytes, date, int]
"""Survey digest, day and number of reports of an upload."""


@dataclass(frozen=True)
class StagedUpload:
    """A staged upload. Its name and seal are None once its idempotency key is forgotten."""

    name: bytes | None
    seal: bytes | None
    digest: bytes
    day: date
    reports: int
    bodies: bytes

    @classmethod
    def of(cls, upload: Upload) -> StagedUpload:
        """Return the upload as it is stored."""
        return cls(*upload.receipt, upload.digest, upload.day, upload.reports, upload.bodies)


# --- names ---------------------------------------------------------------------------------------


def day_of(name: str) -> date:
    """Return the day in the name of a segment or receipt file."""
    return date.fromisoformat(name.split("/")[-2])


def count_of(name: str) -> int:
    """Return the number of reports or receipts in the name of a file."""
    return int(name.split("/")[-1].split("-")[0])


def sha256_of(name: str) -> bytes | None:
    """Return the hash in the name of a file, or None if an earlier version wrote it."""
    last = name.removesuffix(".parquet").split("-")[-1]
    return bytes.fromhex(last) if len(last) == 2 * hashlib.sha256().digest_size else None


def _with_hash(prefix: str, content: bytes) -> str:
    """Return the name of a new file: a random part, so that no two are the same, and a hash."""
    return f"{prefix}{os.urandom(16).hex()}-{hashlib.sha256(content).hexdigest()}.parquet"


def segments_folder(survey: Survey) -> str:
    """Return the name of the folder for the survey's segments."""
    return f"segments/{survey_folder(survey)}"


def _dated(folder: str, day: date, count: int, content: bytes) -> Files:
    """Return a file that has its day and count in its name."""
    return {_with_hash(f"{folder}/{day.isoformat()}/{count}-", content): (content, day)}


# --- writing -------------------------------------------------------------------------------------


def staged_files(uploads: Sequence[StagedUpload]) -> Files:
    """Return one file with these uploads, or no file if there are none."""
    if not uploads:
        return {}
    rows = [(u.name, u.seal, u.digest, u.day.isoformat(), u.reports, u.bodies) for u in uploads]
    content = _content(rows, STAGED)
    return {_with_hash("staged/", content): (content, None)}


def receipt_files(uploads: Iterable[StagedUpload]) -> Files:
    """Return the receipts of uploads that are no longer staged, one file per day.

    Receipts are sorted by name, so that their order does not reveal the order of arrival.
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
    """Return report bodies as a shuffled segment."""
    count = len(bodies) // survey.body_size
    return _dated(segments_folder(survey), day, count, segment_file(survey, bodies))


def _content(rows: Sequence[tuple[object, ...]], schema: pa.Schema) -> bytes:
    """Return rows as the content of a Parquet file."""
    columns = list(zip(*rows, strict=True))
    arrays = [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)]
    sink = io.BytesIO()
    with parquet_writer(sink, schema) as file:
        file.write_table(pa.Table.from_arrays(arrays, schema=schema))
    return sink.getvalue()


# --- reading -------------------------------------------------------------------------------------


def read_staged(location: Location, name: str) -> list[StagedUpload]:
    """Return the uploads in a staged file."""
    rows = _rows(location, name, STAGED.names)
    try:
        return [
            StagedUpload(receipt, seal, digest, date.fromisoformat(day), reports, bodies)
            for receipt, seal, digest, day, reports, bodies in rows
        ]
    except (TypeError, ValueError) as error:
        raise _damaged(name, error) from None


def read_receipts(location: Location, name: str) -> Iterator[tuple[bytes, bytes]]:
    """Return names and seals in a staged file or receipt file."""
    return ((n, seal) for n, seal in _rows(location, name, [*RECEIPTS]) if n is not None)


def read_groups(location: Location, name: str) -> list[Group]:
    """Return survey digest, day and number of reports of each upload in a staged file."""
    return [(u.digest, u.day, u.reports) for u in read_staged(location, name)]


def check_hash(name: str, content: bytes) -> None:
    """Raise StoreError unless the content of a file has the hash in its name, if there is one."""
    if sha256_of(name) not in (None, hashlib.sha256(content).digest()):
        raise _damaged(name, "its SHA-256 differs from the one in its name")


def _rows(location: Location, name: str, columns: list[str]) -> Iterator[tuple[Any, ...]]:
    """Return the given columns of a Parquet file as rows; raise StoreError if it is damaged."""
    # The whole file is read, because only the whole can be compared with the hash.
    data = location.get(name)
    check_hash(name, data)
    try:
        with damage_as(lambda what: _damaged(name, what)):
            table = pq.read_table(io.BytesIO(data), columns=columns, use_threads=False)
    except KeyError as error:
        raise _damaged(name, error) from None
    return zip(*(table[c].to_pylist() for c in columns), strict=True)


def _damaged(name: str, what: object) -> StoreError:
    """Return the error for reading a damaged file."""
    advice = "set it aside with deniable compact STORE, so that the others can be read"
    if name.startswith("keys/"):
        advice = "let the next upload set it aside"
    return StoreError(f"{name} is damaged: {what}; restore it from a backup, or {advice}")
