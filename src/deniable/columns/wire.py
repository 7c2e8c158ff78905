"""Columns to and from the bytes on the wire: a batch's bodies are a table of fixed-size records."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from deniable.columns.batch import ReportBatch, from_arrays, widths
from deniable.errors import InputError
from deniable.survey import Survey
from deniable.survey.report import BATCH, COUNT_SIZE, Surveys, batch_bodies, header


def from_wire(data: bytes | memoryview, survey: Surveys) -> ReportBatch:
    """A wire batch as columns, as strictly checked as one report at a time."""
    return from_bodies(*batch_bodies(data, survey))


def from_bodies(bodies: bytes | memoryview, survey: Survey) -> ReportBatch:
    """The bodies of reports, one after another, as columns; all are checked."""
    records = np.frombuffer(bodies, np.uint8).reshape(-1, survey.body_size)
    at = survey.cohort_size
    cohort = (
        records[:, :at].copy().view("<u2").reshape(-1).astype(np.uint16, copy=False)
        if at
        else np.zeros(len(records), np.uint16)
    )
    arrays: list[NDArray[np.uint8]] = []
    for _, fields, parts in widths(survey):
        for size in (fields, *parts):
            arrays.append(np.ascontiguousarray(records[:, at : at + size]))
            at += size
    return from_arrays(survey, [cohort, *arrays])


def to_wire(batch: ReportBatch) -> bytes:
    """The columns as one wire batch."""
    if not 1 <= len(batch) < 2**32:
        raise InputError(f"expected 1 to 2^32-1 reports in a wire batch, got {len(batch)}")
    count = len(batch).to_bytes(COUNT_SIZE, "little")
    return header(batch.survey, BATCH) + count + records(batch).tobytes()


def records(batch: ReportBatch) -> NDArray[np.uint8]:
    """The bodies: u8[N, body_size]."""
    cohort, *rest = batch.arrays()
    parts = [cohort.astype("<u2").view(np.uint8).reshape(-1, 2)] if batch.survey.cohort_size else []
    return np.concatenate([*parts, *rest], axis=1)
