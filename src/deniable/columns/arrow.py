"""Columns as Arrow record batches, and as the files that pyarrow reads and writes.

A column is fixed-size binary and named after its question: `page.0`, `page.1`, … its parts,
`page.level` a clear byte. The published survey stands in the metadata.

Parquet is written without compression, dictionaries or statistics, since noise has no pattern. A
row group is what is loaded at once, so it is small enough for many workers to share a file. A file
says nothing of when it was written.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from deniable.columns.batch import Array, ReportBatch, from_arrays, widths
from deniable.columns.frames import ArrowStream, Frame
from deniable.errors import InputError
from deniable.survey import Survey

SURVEY_KEY = b"deniable.survey"
ORIGIN_KEY = b"deniable.origin"
ROW_GROUP = 1 << 16
"""Rows of a row group, at most."""


def schema_of(survey: Survey, origin: str = "") -> pa.Schema:
    """Return the Arrow schema of this survey's reports; it carries the survey and the origin."""
    fields = [pa.field("cohort", pa.uint16(), nullable=False)]
    for question, _, parts in widths(survey):
        for clear in question.protocol.clear:
            fields.append(pa.field(f"{question.name}.{clear.name}", pa.uint8(), nullable=False))
        for i, size in enumerate(parts):
            fields.append(pa.field(f"{question.name}.{i}", pa.binary(size), nullable=False))
    return pa.schema(fields, metadata={SURVEY_KEY: survey.canonical, ORIGIN_KEY: origin})


def survey_of(schema: pa.Schema) -> Survey:
    """Return the survey that the schema carries."""
    metadata = schema.metadata or {}
    if SURVEY_KEY not in metadata:
        raise InputError(
            f"expected Arrow metadata {SURVEY_KEY.decode()!r} with the published survey: "
            "this table was not written by deniable"
        )
    survey = _parsed(metadata[SURVEY_KEY])
    wanted = schema_of(survey)
    if not schema.equals(wanted):
        raise InputError(f"expected columns {wanted.names}, got {schema.names} or other types")
    return survey


_parsed = lru_cache(maxsize=16)(Survey.from_json)
"""Every batch of a file carries its survey."""


def origin_of(schema: pa.Schema) -> str:
    """Return what the schema says of where the reports came from."""
    return str((schema.metadata or {}).get(ORIGIN_KEY, b"").decode())


# --- record batches and frames -------------------------------------------------------------------


def to_arrow(batch: ReportBatch) -> pa.RecordBatch:
    """Return the same memory as Arrow, copied only where clear bytes are interleaved."""
    arrays: list[pa.Array] = [pa.array(batch.cohort)]
    for clear, parts in zip(batch.clear, batch.bits, strict=True):
        arrays += [pa.array(np.ascontiguousarray(clear[:, i])) for i in range(clear.shape[1])]
        for bits in parts:
            buffer = pa.py_buffer(np.ascontiguousarray(bits))
            kind = pa.binary(bits.shape[1])
            arrays.append(pa.FixedSizeBinaryArray.from_buffers(kind, len(bits), [None, buffer]))
    return pa.RecordBatch.from_arrays(arrays, schema=schema_of(batch.survey, batch.origin))


def from_arrow(data: pa.RecordBatch | pa.Table) -> ReportBatch:
    """Return Arrow data as columns; one record batch is not copied."""
    survey = survey_of(data.schema)
    if isinstance(data, pa.Table):
        batches = data.to_batches() or [pa.RecordBatch.from_pylist([], schema=data.schema)]
        return ReportBatch.concat(map(from_arrow, batches))
    columns = iter(data.columns)
    arrays: list[Array] = [_numbers(next(columns))]
    for _, fields, parts in widths(survey):
        clear = [_numbers(next(columns)) for _ in range(fields)]
        arrays.append(np.stack(clear, axis=1) if clear else np.empty((data.num_rows, 0), np.uint8))
        arrays += [_rows(next(columns), size) for size in parts]
    return from_arrays(survey, arrays, origin=origin_of(data.schema))


def from_frame(frame: Frame, survey: Survey) -> ReportBatch:
    """Read a pandas or polars frame, or any Arrow table, with the columns of this survey's reports.

    Frames do not carry the survey; an Arrow table that carries one is held to it.
    """
    if isinstance(frame, ArrowStream):
        table = pa.table(frame)
    else:  # pandas before 2.2
        table = pa.Table.from_pandas(frame, preserve_index=False)
    if SURVEY_KEY in (table.schema.metadata or {}):
        return from_arrow(table)
    wanted = schema_of(survey)
    if set(table.column_names) != set(wanted.names):
        raise InputError(
            f"expected a frame with the columns {wanted.names} of {survey!r}, got "
            f"{table.column_names}"
        )
    try:
        return from_arrow(table.select(wanted.names).cast(wanted))
    except pa.ArrowException as error:
        raise InputError(f"the frame's columns are not a report's: {error}") from None


def _numbers(column: pa.Array) -> Array:
    _no_nulls(column)
    numbers: Array = column.to_numpy(zero_copy_only=True)
    return numbers


def _rows(column: pa.Array, size: int) -> NDArray[np.uint8]:
    _no_nulls(column)
    buffer = column.buffers()[1]
    if buffer is None:
        return np.empty((0, size), np.uint8)
    flat = np.frombuffer(buffer, np.uint8, len(column) * size, column.offset * size)
    return flat.reshape(-1, size)


def _no_nulls(column: pa.Array) -> None:
    if column.null_count:
        raise InputError(f"expected no nulls, got {column.null_count}: a report has every column")


# --- files ---------------------------------------------------------------------------------------


class ParquetGroups:
    """The row groups of a Parquet file, given as a path or as an open file."""

    def __init__(self, source: Path | IO[bytes]) -> None:
        self._file = pq.ParquetFile(source, memory_map=isinstance(source, Path))
        self.schema = self._file.schema_arrow

    @property
    def sizes(self) -> list[int]:
        return [self._file.metadata.row_group(i).num_rows for i in range(self._file.num_row_groups)]

    def read(self, group: int) -> pa.Table:
        # Columns without compression are only copied: handing them to threads costs more.
        return self._file.read_row_group(group, use_threads=False)


class ArrowGroups:
    """The record batches of an Arrow file, which are mapped and not read."""

    def __init__(self, path: Path) -> None:
        self._file = pa.ipc.open_file(pa.memory_map(str(path)))
        self.schema = self._file.schema

    @property
    def sizes(self) -> list[int]:
        return [self.read(i).num_rows for i in range(self._file.num_record_batches)]

    def read(self, group: int) -> pa.RecordBatch:
        return self._file.get_batch(group)


Groups = ParquetGroups | ArrowGroups
"""An open file as groups of rows: what can be read of it at once."""


def parquet_writer(sink: Path | IO[bytes] | pa.NativeFile, schema: pa.Schema) -> pq.ParquetWriter:
    """Return a writer of record batches to a path or a file."""
    return pq.ParquetWriter(
        sink, schema, compression="none", use_dictionary=False, write_statistics=False
    )


def to_parquet(batch: ReportBatch) -> bytes:
    """Return the whole file."""
    sink = pa.BufferOutputStream()
    record = to_arrow(batch)
    with parquet_writer(sink, record.schema) as file:
        file.write_batch(record, ROW_GROUP)
    return bytes(sink.getvalue())


class ArrowSink:
    """Writes batches to a `.parquet` or `.arrow` file."""

    def __init__(self, path: Path, suffix: str, schema: pa.Schema) -> None:
        self._limits = [ROW_GROUP] if suffix == ".parquet" else []
        self._file = (
            parquet_writer(path, schema) if self._limits else pa.ipc.new_file(str(path), schema)
        )

    def write(self, batch: ReportBatch) -> None:
        self._file.write_batch(to_arrow(batch), *self._limits)

    def close(self) -> None:
        self._file.close()
