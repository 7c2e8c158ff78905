"""Columns as Parquet: without compression, dictionaries or statistics, since noise has no pattern.

A file says nothing of when it was written.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from deniable.columns.arrow import from_arrow, to_arrow
from deniable.columns.batch import ReportBatch


def writer(sink: Any, schema: pa.Schema) -> pq.ParquetWriter:
    """A writer of record batches to a path or a file."""
    return pq.ParquetWriter(
        sink, schema, compression="none", use_dictionary=False, write_statistics=False
    )


def record_batches(source: str | Path | Any, rows: int) -> Iterator[pa.RecordBatch]:
    """The rows of a path or a file, at most `rows` at a time."""
    local = isinstance(source, str | Path)
    file = pq.ParquetFile(source, memory_map=local)
    # Columns without compression are only copied: handing them to threads costs more.
    yield from file.iter_batches(batch_size=rows, use_threads=False)


def to_parquet(batch: ReportBatch) -> bytes:
    """The whole file."""
    sink = pa.BufferOutputStream()
    record = to_arrow(batch)
    with writer(sink, record.schema) as file:
        file.write_batch(record)
    return bytes(sink.getvalue())


def from_parquet(source: str | Path | Any, rows: int) -> Iterator[ReportBatch]:
    """The reports of a path or a file, checked, at most `rows` at a time."""
    yield from map(from_arrow, record_batches(source, rows))
