"""Reports as Arrow record batches, and as Parquet files.

Columns are named after their question: `page.0`, `page.1`, … are the bits of its parts, as
fixed-size binary, and `page.level` is a clear field. The schema's metadata holds the published
survey.

Parquet files have no compression, dictionaries or statistics, because noise has no pattern. Row
groups are loaded as a whole, so they are small enough for many workers to share a file; one that
would not fit into memory is refused. A file does not record when it was written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from deniable.columns.batch import Array, ReportBatch, column_sizes, from_arrays
from deniable.columns.frames import ArrowStream, Frame
from deniable.errors import InputError
from deniable.formatting import visible
from deniable.survey import Survey

SURVEY_KEY = b"deniable.survey"
ORIGIN_KEY = b"deniable.origin"
MAX_ROW_GROUP_ROWS = 1 << 16
"""Largest number of rows per row group that is written."""
MAX_READ_ROWS, MAX_READ_BYTES = 1 << 22, 1 << 28
"""Largest number of rows and size in memory of a row group that is read: it is read as a whole, and
again by every worker that needs some of its rows."""
CODECS = ("UNCOMPRESSED", "SNAPPY")
"""Compression of Parquet files that are read. Snappy, the default of other programs, unfolds data
by a factor of at most 22; others may unfold it without limit."""


def schema_of(survey: Survey, origin: str = "") -> pa.Schema:
    """Return the Arrow schema of this survey's reports; its metadata holds survey and origin."""
    fields = [pa.field("cohort", pa.uint16(), nullable=False)]
    for question, _, parts in column_sizes(survey):
        for clear in question.protocol.clear:
            fields.append(pa.field(f"{question.name}.{clear.name}", pa.uint8(), nullable=False))
        for i, size in enumerate(parts):
            fields.append(pa.field(f"{question.name}.{i}", pa.binary(size), nullable=False))
    return pa.schema(fields, metadata={SURVEY_KEY: survey.canonical, ORIGIN_KEY: origin})


def survey_of(schema: pa.Schema) -> Survey:
    """Return the survey in the metadata of a schema, or raise InputError."""
    metadata = schema.metadata or {}
    if SURVEY_KEY not in metadata:
        raise InputError(
            f"the table has no metadata {SURVEY_KEY.decode()!r} with a published survey: it was "
            "not written by deniable"
        )
    survey = _parse_survey(metadata[SURVEY_KEY])
    wanted = schema_of(survey)
    if not schema.equals(wanted):
        raise InputError(
            f"expected columns {wanted.names} of {survey}, got {schema.names}, or columns of "
            "other types"
        )
    return survey


_parse_survey = lru_cache(maxsize=16)(Survey.from_json)
"""A cache, because every batch of a file comes with its survey."""


def origin_of(schema: pa.Schema) -> str:
    """Return the description of the source in the metadata of a schema."""
    return str((schema.metadata or {}).get(ORIGIN_KEY, b"").decode())


# --- record batches and frames -------------------------------------------------------------------


def to_arrow(batch: ReportBatch) -> pa.RecordBatch:
    """Return reports as an Arrow record batch; only clear fields are copied."""
    arrays: list[Array] = [batch.cohort]
    for clear, parts in zip(batch.clear, batch.bits, strict=True):
        arrays += [*clear.T, *parts]
    schema = schema_of(batch.survey, batch.origin)
    # From buffers: pa.array() and Array.to_numpy() would import pandas if it is installed.
    buffers = [pa.py_buffer(np.ascontiguousarray(array)) for array in arrays]
    columns = [
        pa.Array.from_buffers(kind, len(batch), [None, buffer])
        for kind, buffer in zip(schema.types, buffers, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def from_arrow(data: pa.RecordBatch | pa.Table) -> ReportBatch:
    """Return Arrow data as a batch of reports; the bits of one record batch are not copied."""
    survey = survey_of(data.schema)
    if isinstance(data, pa.Table):
        batches = data.to_batches() or [pa.RecordBatch.from_pylist([], schema=data.schema)]
        return ReportBatch.concat(map(from_arrow, batches))
    columns = iter(data.columns)
    arrays: list[Array] = [_numbers(next(columns), np.uint16)]
    for _, fields, parts in column_sizes(survey):
        clear = [_numbers(next(columns), np.uint8) for _ in range(fields)]
        arrays.append(np.stack(clear, axis=1) if clear else np.empty((data.num_rows, 0), np.uint8))
        arrays += [_numbers(next(columns), np.uint8, size).reshape(-1, size) for size in parts]
    return from_arrays(survey, arrays, origin=origin_of(data.schema))


def from_frame(frame: Frame, survey: Survey) -> ReportBatch:
    """Return the reports in a pandas or polars frame, or in any Arrow table.

    The columns are those of `schema_of(survey)`. An Arrow table with a survey in its metadata is
    read as reports of that survey.
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
            f"expected a frame with the columns {wanted.names} of {survey}, got "
            f"{table.column_names}"
        )
    try:
        return from_arrow(table.select(wanted.names).cast(wanted))
    except pa.ArrowException as error:
        raise InputError(f"the columns of the frame have the wrong types: {error}") from None


def _numbers(column: pa.Array, kind: type[np.unsignedinteger[Any]], size: int = 1) -> Array:
    """Return a column, with `size` numbers per row, as an array of shape (N size,), not copied."""
    if column.null_count:
        raise InputError(f"{column.null_count} values are null: reports have no missing values")
    buffer, dtype = column.buffers()[1], np.dtype(kind)
    if buffer is None:
        return np.empty(0, dtype)
    start = column.offset * size * dtype.itemsize
    return np.frombuffer(buffer, dtype, len(column) * size, start)


# --- files ---------------------------------------------------------------------------------------


@contextmanager
def damage_as(error: Callable[[str], Exception]) -> Iterator[None]:
    """Raise `error(what is wrong)` if pyarrow cannot read a file because its content is damaged.

    Errors of the operating system, which have a number, are left as they are.
    """
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as raised:
        if isinstance(raised, OSError) and raised.errno is not None:
            raise
        raise error(" ".join(visible(line) for line in str(raised).splitlines())) from None


class ParquetGroups:
    """Row groups of a Parquet file, given as a path or as an open file."""

    def __init__(self, source: Path | IO[bytes]) -> None:
        self._file = pq.ParquetFile(
            source, memory_map=isinstance(source, Path), page_checksum_verification=True
        )
        self.schema = self._file.schema_arrow

    @property
    def sizes(self) -> list[int]:
        """Number of rows of each row group."""
        return [self._checked_size(i) for i in range(self._file.num_row_groups)]

    def read(self, group: int) -> pa.Table:
        """Return the rows of one row group."""
        self._checked_size(group)
        # Uncompressed columns are only copied, which takes less time than starting threads.
        return self._file.read_row_group(group, use_threads=False)

    def _checked_size(self, group: int) -> int:
        """Return the number of rows of a row group, or raise InputError if it is not safe to read.

        The columns decide how much is read: a few kilobytes could unfold to any size.
        """
        described = self._file.metadata.row_group(group)
        rows = int(described.num_rows)
        for column in map(described.column, range(described.num_columns)):
            if column.num_values != rows:
                raise InputError(
                    f"row group {group} has {rows:,} rows, but {column.num_values:,} values of "
                    f"{column.path_in_schema}"
                )
            if column.compression not in CODECS:
                raise InputError(
                    f"{column.path_in_schema} is compressed with {column.compression}: write the "
                    "file without compression; noise hardly gets smaller"
                )
        size = rows * sum(field.type.bit_width for field in self.schema) // 8
        if rows > MAX_READ_ROWS or size > MAX_READ_BYTES:
            raise InputError(
                f"row group {group} has {rows:,} rows, {size:,} bytes in memory; the limits are "
                f"{MAX_READ_ROWS:,} and {MAX_READ_BYTES:,}: write the file in smaller row groups"
            )
        return rows


def parquet_writer(
    sink: Path | IO[bytes] | pa.NativeFile, schema: pa.Schema, *, checksums: bool = False
) -> pq.ParquetWriter:
    """Return a writer of uncompressed Parquet to a path or file.

    checksums : whether to write checksums, which are compared when the file is read
    """
    return pq.ParquetWriter(
        sink,
        schema,
        compression="none",
        use_dictionary=False,
        write_statistics=False,
        write_page_checksum=checksums,
    )


def to_parquet(batch: ReportBatch) -> bytes:
    """Return reports as the content of a Parquet file with checksums."""
    sink = pa.BufferOutputStream()
    record = to_arrow(batch)
    with parquet_writer(sink, record.schema, checksums=True) as file:
        file.write_batch(record, MAX_ROW_GROUP_ROWS)
    return bytes(sink.getvalue())


class ParquetSink:
    """Writes reports to a `.parquet` file."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._file = parquet_writer(path, schema)

    def write(self, batch: ReportBatch) -> None:
        """Append a batch of reports."""
        self._file.write_batch(to_arrow(batch), MAX_ROW_GROUP_ROWS)

    def close(self) -> None:
        """Finish the file."""
        self._file.close()
