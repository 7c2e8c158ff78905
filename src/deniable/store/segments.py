"""Segments: reports of one survey and one day, shuffled, as Parquet files that never change."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from deniable.columns import ReportBatch
from deniable.columns.batch import from_bodies, records
from deniable.columns.partition import GroupRows, group_partitions
from deniable.errors import DeniableError, StoreError
from deniable.store.locations import Location, OpenSource
from deniable.survey import Survey

if TYPE_CHECKING:
    from deniable.columns.arrow import Groups


def folder_of(survey: Survey) -> str:
    """Return the folder of this survey's segments."""
    return f"{survey.name}-v{survey.version}-{survey.digest.hex()[:8]}"


def shuffled(bodies: bytes | memoryview, size: int) -> NDArray[np.uint8]:
    """u8[N, size]: the bodies in an order drawn by the operating system."""
    rows = np.frombuffer(bodies, np.uint8).reshape(-1, size)
    order = np.argsort(np.frombuffer(os.urandom(8 * len(rows)), np.uint64))
    return rows[order]


def segment_file(survey: Survey, bodies: bytes) -> bytes:
    """Return the bodies, shuffled, as a segment's file."""
    from deniable.columns.arrow import to_parquet

    return to_parquet(from_bodies(shuffled(bodies, survey.body_size).tobytes(), survey))


def partitions(source: OpenSource, name: str, kind: type[GroupRows] = GroupRows) -> list[GroupRows]:
    """Return where the segment's reports are."""
    return group_partitions(partial(_opened, source, name), kind)


@contextmanager
def _opened(source: OpenSource, name: str) -> Iterator[Groups]:
    import pyarrow as pa

    from deniable.columns.arrow import ParquetGroups

    try:
        with source(name) as file:
            yield ParquetGroups(file)
    except pa.ArrowException as error:
        raise StoreError(f"segment {name} is damaged: {error}; restore it from a backup") from None


def read(location: Location, name: str) -> Iterator[ReportBatch]:
    """Yield the segment's reports, some at a time."""
    for part in partitions(location.source, name):
        yield part.load()


def read_bodies(location: Location, name: str) -> bytes:
    """Return the bodies of the segment's reports."""
    return b"".join(records(batch).tobytes() for batch in read(location, name))


def problems(
    location: Location, name: str, survey: Survey | None, reports: int, sha256: bytes | None = None
) -> list[str]:
    """Return what is wrong with the segment; `sha256` is checked if it was recorded."""
    if survey is None:
        return [f"segment {name} is of a survey that is not kept"]
    try:
        if sha256 is not None and hashlib.sha256(location.get(name)).digest() != sha256:
            return [f"segment {name} was changed: its SHA-256 is not the one recorded"]
        batches = list(read(location, name))
    except DeniableError as error:
        return [str(error)]
    if any(batch.survey != survey for batch in batches):
        return [f"segment {name} is of another survey than {survey!r}"]
    if (found := sum(map(len, batches))) != reports:
        return [f"segment {name}: expected {reports} reports, got {found}"]
    return []
