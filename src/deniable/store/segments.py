"""Segments: reports of one survey and one day, shuffled, as Parquet files that never change."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.columns import ReportBatch
from deniable.columns.partition import ParquetRows, parquet_partitions
from deniable.columns.wire import from_bodies, records
from deniable.errors import DeniableError, StoreError
from deniable.store.places import Place, Readable
from deniable.survey import Survey

MOST_BYTES = 1 << 24
"""A segment is closed when it has so many: it is shuffled in memory, and uploads wait while its
sources are deleted."""
MOST_UPLOADS = 1 << 14
"""… or comes from this many uploads."""


@dataclass(frozen=True)
class Segment:
    """One file: where, of what, how many, and its SHA-256."""

    name: str
    digest: bytes
    day: date
    reports: int
    size: int
    sha256: bytes


def folder_of(survey: Survey) -> str:
    """The folder of this survey's segments."""
    return f"{survey.name}-v{survey.version}-{survey.digest.hex()[:8]}"


def new_name(survey: Survey, day: date) -> str:
    """A name that says of what and of which day, and nothing of when it was written."""
    return f"{folder_of(survey)}/{day.isoformat()}/{os.urandom(16).hex()}.parquet"


def shuffled(bodies: bytes | memoryview, size: int) -> NDArray[np.uint8]:
    """u8[N, size]: the bodies in an order drawn by the operating system."""
    rows = np.frombuffer(bodies, np.uint8).reshape(-1, size)
    order = np.argsort(np.frombuffer(os.urandom(8 * len(rows)), np.uint64))
    return rows[order]


def write(place: Place, name: str, survey: Survey, day: date, bodies: bytes) -> Segment:
    """Shuffle the bodies and write them, durably, as the segment of this name."""
    from deniable.columns.parquet import to_parquet

    batch = from_bodies(shuffled(bodies, survey.body_size).tobytes(), survey)
    data = to_parquet(batch)
    place.put(name, data, day)
    checksum = hashlib.sha256(data).digest()
    return Segment(name, survey.digest, day, len(batch), len(data), checksum)


def partitions(place: Readable, name: str) -> list[ParquetRows]:
    """Where the segment's reports are."""
    return parquet_partitions(partial(_opened, place, name))


@contextmanager
def _opened(place: Readable, name: str) -> Iterator[Any]:
    import pyarrow as pa

    try:
        with place.source(name) as source:
            yield source
    except pa.ArrowException as error:
        raise StoreError(f"segment {name} is damaged: {error}; restore it from a backup") from None


def read(place: Place, name: str) -> Iterator[ReportBatch]:
    """The segment's reports, some at a time."""
    for part in partitions(place, name):
        yield part.load()


def read_bodies(place: Place, name: str) -> bytes:
    """The bodies of the segment's reports."""
    return b"".join(records(batch).tobytes() for batch in read(place, name))


def problems(place: Place, segment: Segment) -> list[str]:
    """What is wrong with the segment."""
    try:
        data = place.get(segment.name)
        if hashlib.sha256(data).digest() != segment.sha256:
            return [f"segment {segment.name} was changed: its SHA-256 is not the one recorded"]
        found = sum(map(len, read(place, segment.name)))
    except DeniableError as error:
        return [str(error)]
    if found != segment.reports:
        return [f"segment {segment.name}: expected {segment.reports} reports, got {found}"]
    return []


def others(sizes: Sequence[int]) -> int:
    """How many reports the largest upload is shuffled with; every other has more company."""
    return sum(sizes) - max(sizes, default=0)


def portion(sizes: Sequence[int], at_least: int, most: int) -> int:
    """How many of these uploads, from the first on, make the next segment: 0 if they must wait.

    Each must be shuffled with `at_least` reports of others. Beyond that a segment is closed once
    it has `most` reports or many uploads.
    """
    total = largest = 0
    for i, size in enumerate(sizes):
        total, largest = total + size, max(largest, size)
        large = total >= most or i + 1 >= MOST_UPLOADS
        if large and total - largest >= at_least:
            return i + 1
    return len(sizes) if sizes and total - largest >= at_least else 0
