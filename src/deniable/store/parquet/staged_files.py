"""Uploads, and what is kept to know them again, as Parquet files of a folder store."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from deniable.errors import StoreError
from deniable.store.base import Upload
from deniable.store.places import Place

FIELDS = pa.schema(
    [
        ("name", pa.binary()), ("seal", pa.binary()), ("survey", pa.binary()), ("day", pa.string()),
        ("reports", pa.int64()), ("bodies", pa.large_binary()),
    ]
)  # fmt: skip
RECEIPTS = ["name", "seal"]


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
        """The upload as it is kept."""
        return cls(*upload.receipt, upload.digest, upload.day, upload.reports, upload.bodies)

    def forgotten(self) -> Staged:
        """The same, not to be known again."""
        return replace(self, name=None, seal=None)


def staged_file(uploads: Sequence[Staged]) -> bytes:
    """The uploads as a file."""
    rows = [(u.name, u.seal, u.digest, u.day.isoformat(), u.reports, u.bodies) for u in uploads]
    return _file(rows, FIELDS)


def receipts_file(uploads: Sequence[Staged]) -> bytes:
    """Only their names and seals, in the order of the names, which is no order of arrival."""
    rows = sorted((u.name, u.seal) for u in uploads if u.name is not None)
    return _file(rows, pa.schema([FIELDS.field(name) for name in RECEIPTS]))


def _file(rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> bytes:
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)]
    sink = io.BytesIO()
    pq.write_table(
        pa.Table.from_arrays(arrays, schema=schema), sink, compression="none",
        use_dictionary=False, write_statistics=False,
    )  # fmt: skip
    return sink.getvalue()


def read_staged(place: Place, name: str) -> list[Staged]:
    """The uploads of a file."""
    return [
        Staged(n, seal, survey, date.fromisoformat(day), reports, bodies)
        for n, seal, survey, day, reports, bodies in _rows(place, name, FIELDS.names)
    ]


def read_receipts(place: Place, name: str) -> Iterator[tuple[bytes, bytes]]:
    """Names and seals of a file of uploads or of receipts."""
    return ((n, s) for n, s in _rows(place, name, RECEIPTS) if n is not None)


def read_counts(place: Place, name: str) -> Iterator[tuple[bytes, date, int]]:
    """Survey, day and number of reports of a file's uploads."""
    rows = _rows(place, name, ["survey", "day", "reports"])
    return ((d, date.fromisoformat(day), reports) for d, day, reports in rows)


def _rows(place: Place, name: str, columns: list[str]) -> Iterator[tuple[Any, ...]]:
    try:
        with place.source(name) as source:
            table = pq.read_table(source, columns=columns, use_threads=False)
    except (pa.ArrowException, KeyError) as error:
        raise StoreError(f"{name} is damaged: {error}; restore it from a backup") from None
    return zip(*(table[c].to_pylist() for c in columns), strict=True)
