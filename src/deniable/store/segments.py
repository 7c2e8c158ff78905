"""Segments: shuffled reports of one survey and one day, in Parquet files that never change."""

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
from deniable.columns.batch import from_bodies
from deniable.columns.partition import RowGroup, row_groups
from deniable.errors import DeniableError, InputError, StoreError, WireError
from deniable.store.locations import Location, OpenSource
from deniable.survey import Survey

if TYPE_CHECKING:
    from deniable.columns.arrow import ParquetGroups


def survey_folder(survey: Survey) -> str:
    """Return the name of the folder for this survey's segments."""
    return f"{survey.name}-v{survey.version}-{survey.digest.hex()[:8]}"


def shuffle_bodies(bodies: bytes | memoryview, size: int) -> NDArray[np.uint8]:
    """Return report bodies of `size` bytes as u8[N, size], in an order drawn by the system."""
    rows = np.frombuffer(bodies, np.uint8).reshape(-1, size)
    order = np.argsort(np.frombuffer(os.urandom(8 * len(rows)), np.uint64))
    return rows[order]


def segment_file(survey: Survey, bodies: bytes) -> bytes:
    """Shuffle report bodies, and return the content of their segment file."""
    from deniable.columns.arrow import to_parquet

    return to_parquet(from_bodies(shuffle_bodies(bodies, survey.body_size).tobytes(), survey))


def partitions(source: OpenSource, name: str, kind: type[RowGroup] = RowGroup) -> list[RowGroup]:
    """Return one partition per row group of the segment."""
    return row_groups(partial(_open_groups, source, name), kind)


@contextmanager
def _open_groups(source: OpenSource, name: str) -> Iterator[ParquetGroups]:
    """Open a segment as row groups; raise StoreError if the file is damaged."""
    from deniable.columns.arrow import ParquetGroups, damage_as

    def damaged(what: object) -> StoreError:
        return StoreError(f"segment {name} is damaged: {what}; restore the backup")

    try:
        with source(name) as file, damage_as(damaged):
            yield ParquetGroups(file)
    except (InputError, WireError) as error:
        raise damaged(error) from None


def read(location: Location, name: str) -> Iterator[ReportBatch]:
    """Yield the reports of the segment, one row group at a time."""
    for part in partitions(location.source, name):
        yield part.load()


def intact_file(location: Location, name: str, sha256: bytes) -> bytes:
    """Return the file of a segment; raise StoreError if it is not the one that was recorded."""
    content = location.get(name)
    if hashlib.sha256(content).digest() != sha256:
        raise StoreError(
            f"segment {name} was changed: its SHA-256 differs from the recorded one; restore the "
            "backup"
        )
    return content


def check_segment(
    location: Location, name: str, survey: Survey | None, reports: int, sha256: bytes | None = None
) -> list[str]:
    """Return what is wrong with a segment, given what the store recorded about it.

    survey : survey of its reports; None if the store does not have it
    reports : number of its reports
    sha256 : hash of its file; None if it was not recorded
    """
    if survey is None:
        return [f"segment {name} answers a survey that the store does not have"]
    try:
        if sha256 is not None:
            intact_file(location, name, sha256)
        batches = list(read(location, name))
    except DeniableError as error:
        return [str(error)]
    if any(batch.survey != survey for batch in batches):
        return [f"segment {name} answers a different survey than {survey}"]
    if (count := sum(map(len, batches))) != reports:
        return [f"segment {name}: expected {reports} reports, got {count}"]
    return []
