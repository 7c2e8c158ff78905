"""Columns as Parquet: without compression, dictionaries or statistics, since noise has no pattern.

A row group is what is loaded at once, so it is small enough for many workers to share a file.
A file says nothing of when it was written.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from deniable.columns.arrow import to_arrow
from deniable.columns.batch import ReportBatch

ROW_GROUP = 1 << 16
"""Rows of a row group, at most."""


def writer(sink: Any, schema: pa.Schema) -> pq.ParquetWriter:
    """A writer of record batches to a path or a file."""
    return pq.ParquetWriter(
        sink, schema, compression="none", use_dictionary=False, write_statistics=False
    )


def opened(source: str | Path | Any) -> pq.ParquetFile:
    """A path or a file, its footer read."""
    return pq.ParquetFile(source, memory_map=isinstance(source, str | Path))


def to_parquet(batch: ReportBatch) -> bytes:
    """The whole file."""
    sink = pa.BufferOutputStream()
    record = to_arrow(batch)
    with writer(sink, record.schema) as file:
        file.write_batch(record, ROW_GROUP)
    return bytes(sink.getvalue())
