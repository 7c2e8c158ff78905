"""Columns as Arrow record batches: fixed-size binary, the published survey in the metadata.

A column is named after its question: `page.0`, `page.1`, … its parts, `page.level` a clear byte.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from deniable.columns.batch import ReportBatch, from_arrays, widths
from deniable.errors import InputError
from deniable.survey import Survey

SURVEY_KEY = b"deniable.survey"
ORIGIN_KEY = b"deniable.origin"


def schema_of(survey: Survey, origin: str = "") -> pa.Schema:
    """The Arrow schema of this survey's reports; it carries the survey and the origin."""
    fields = [pa.field("cohort", pa.uint16(), nullable=False)]
    for question, _, parts in widths(survey):
        for clear in question.protocol.clear:
            fields.append(pa.field(f"{question.name}.{clear.name}", pa.uint8(), nullable=False))
        for i, size in enumerate(parts):
            fields.append(pa.field(f"{question.name}.{i}", pa.binary(size), nullable=False))
    return pa.schema(fields, metadata={SURVEY_KEY: survey.canonical, ORIGIN_KEY: origin})


def survey_of(schema: pa.Schema) -> Survey:
    """The survey that the schema carries."""
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


@lru_cache(maxsize=16)
def _parsed(canonical: bytes) -> Survey:
    # Every batch of a file carries it.
    return Survey.from_json(canonical)


def origin_of(schema: pa.Schema) -> str:
    """What the schema says of where the reports came from."""
    return str((schema.metadata or {}).get(ORIGIN_KEY, b"").decode())


def to_arrow(batch: ReportBatch) -> pa.RecordBatch:
    """The same memory as Arrow, copied only where clear bytes are interleaved."""
    arrays: list[pa.Array] = [pa.array(batch.cohort)]
    for clear, parts in zip(batch.clear, batch.bits, strict=True):
        arrays += [pa.array(np.ascontiguousarray(clear[:, i])) for i in range(clear.shape[1])]
        for bits in parts:
            buffer = pa.py_buffer(np.ascontiguousarray(bits))
            kind = pa.binary(bits.shape[1])
            arrays.append(pa.FixedSizeBinaryArray.from_buffers(kind, len(bits), [None, buffer]))
    return pa.RecordBatch.from_arrays(arrays, schema=schema_of(batch.survey, batch.origin))


def from_arrow(data: pa.RecordBatch | pa.Table) -> ReportBatch:
    """Arrow as columns; one record batch is not copied."""
    survey = survey_of(data.schema)
    if isinstance(data, pa.Table):
        batches = [from_arrow(b) for b in data.to_batches()]
        return ReportBatch.concat(batches) if batches else empty(survey)
    columns = iter(data.columns)
    arrays: list[NDArray[Any]] = [_numbers(next(columns))]
    for _, fields, parts in widths(survey):
        clear = [_numbers(next(columns)) for _ in range(fields)]
        arrays.append(np.stack(clear, axis=1) if clear else np.empty((data.num_rows, 0), np.uint8))
        arrays += [_rows(next(columns), size) for size in parts]
    return from_arrays(survey, arrays, origin=origin_of(data.schema))


def from_frame(frame: Any, survey: Survey) -> ReportBatch:
    """A pandas or polars frame, or any Arrow table, with the columns of this survey's reports.

    Frames do not carry the survey; an Arrow table that carries one is held to it.
    """
    if hasattr(frame, "__arrow_c_stream__"):
        table = pa.table(frame)
    else:
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


def empty(survey: Survey) -> ReportBatch:
    """No reports of this survey."""
    arrays: list[NDArray[Any]] = [np.empty(0, np.uint16)]
    for _, fields, parts in widths(survey):
        arrays += [np.empty((0, size), np.uint8) for size in (fields, *parts)]
    return from_arrays(survey, arrays)


def _numbers(column: pa.Array) -> NDArray[Any]:
    _no_nulls(column)
    numbers: NDArray[Any] = column.to_numpy(zero_copy_only=True)
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
