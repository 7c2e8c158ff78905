"""Partitions: descriptions of where reports are, small enough to send to a worker that loads them.

A partition of a file holds its name and a range of rows; a partition of reports in memory holds the
reports. Every partition can be pickled, loaded any number of times, and cut into smaller ones.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Self

from deniable.columns.batch import ReportBatch, from_bodies
from deniable.errors import InputError, WireError
from deniable.survey import Survey

if TYPE_CHECKING:
    from deniable.columns.arrow import ParquetGroups

OpenGroups = Callable[[], AbstractContextManager["ParquetGroups"]]
"""Opens the row groups of a file; raises a DeniableError if the file is damaged."""


@dataclass(frozen=True, eq=False)
class Partition(ABC):
    """Reports `start` to `stop` (exclusive) of a source with reports of one survey.

    origin : description of the source, such as "simulated, seed 7"; may be empty
    """

    survey: Survey
    origin: str
    start: int
    stop: int

    @property
    def count(self) -> int:
        """Number of reports."""
        return self.stop - self.start

    @abstractmethod
    def load(self) -> ReportBatch:
        """Return the reports."""

    def cut(self, max_rows: int) -> list[Self]:
        """Return the same reports as partitions of almost equal size, at most `max_rows` each."""
        return [
            replace(self, start=self.start + low, stop=self.start + high)
            for low, high in even_ranges(self.count, max_rows)
        ]


def load_all(partitions: Iterable[Partition], max_rows: int) -> Iterator[ReportBatch]:
    """Yield the reports of all partitions, at most `max_rows` at a time."""
    for partition in partitions:
        for part in partition.cut(max_rows):
            yield part.load()


def even_ranges(count: int, max_rows: int) -> list[tuple[int, int]]:
    """Divide rows 0 to `count` into ranges (start, stop) of almost equal size.

    Each range has at most `max_rows` rows.

    >>> even_ranges(10, 4)
    [(0, 3), (3, 6), (6, 10)]
    """
    parts = -(-count // max_rows)  # rounded up
    return list(pairwise(count * part // parts for part in range(parts + 1))) if parts else []


@dataclass(frozen=True, eq=False)
class BatchPartition(Partition):
    """Reports in memory, which are pickled with the partition."""

    batch: ReportBatch

    @classmethod
    def of(cls, batch: ReportBatch) -> Self:
        """Return a partition with all reports of a batch."""
        return cls(batch.survey, batch.origin, 0, len(batch), batch)

    def load(self) -> ReportBatch:
        """Return the reports."""
        return self.batch

    def cut(self, max_rows: int) -> list[Self]:
        """Return the same reports as partitions of almost equal size, at most `max_rows` each."""
        ranges = even_ranges(self.count, max_rows)
        return [self.of(self.batch.select(slice(start, stop))) for start, stop in ranges]


@contextmanager
def naming(path: str | Path) -> Iterator[None]:
    """Name the file in errors about what is in it."""
    try:
        yield
    except (InputError, WireError) as error:
        raise type(error)(f"{path}: {error}") from None


class LocalPartition(Partition):
    """A partition that only this process can load, such as from a temporary file of its own.

    Pickling it loads the reports and pickles these, as a `BatchPartition`.
    """

    def __reduce__(self) -> tuple[Callable[[ReportBatch], BatchPartition], tuple[ReportBatch]]:
        return BatchPartition.of, (self.load(),)


@dataclass(frozen=True, eq=False)
class RowGroup(Partition):
    """Rows of one row group of a Parquet file."""

    open_groups: OpenGroups
    group: int

    def load(self) -> ReportBatch:
        """Read the rows from the file."""
        from deniable.columns.arrow import from_arrow

        with self.open_groups() as groups:
            return from_arrow(groups.read(self.group).slice(self.start, self.count))


class LocalRowGroup(LocalPartition, RowGroup):
    """Rows of a file that only this process can open."""


def row_groups(open_groups: OpenGroups, kind: type[RowGroup] = RowGroup) -> list[RowGroup]:
    """Return one partition per row group of a file.

    kind : class of the partitions, `RowGroup` or `LocalRowGroup`
    """
    from deniable.columns.arrow import origin_of, survey_of

    with open_groups() as groups:
        survey, origin, sizes = survey_of(groups.schema), origin_of(groups.schema), groups.sizes
    return [kind(survey, origin, 0, size, open_groups, i) for i, size in enumerate(sizes)]


@dataclass(frozen=True, eq=False)
class WirePartition(Partition):
    """Report bodies in a file of wire batches.

    extents : byte offset and number of reports of each contiguous range of bodies. They say where
    the reports are; only the difference of `start` and `stop`, the number of reports, matters.
    """

    path: Path
    extents: tuple[tuple[int, int], ...]

    def cut(self, max_rows: int) -> list[Self]:
        """Return the same reports as partitions of almost equal size, at most `max_rows` each."""
        parts = []
        extents = iter(self.extents)
        offset, left_in_extent = 0, 0
        for low, high in even_ranges(self.count, max_rows):
            left_in_part, part_extents = high - low, []
            while left_in_part:
                if not left_in_extent:
                    offset, left_in_extent = next(extents)
                taken = min(left_in_extent, left_in_part)
                part_extents.append((offset, taken))
                offset += taken * self.survey.body_size
                left_in_extent -= taken
                left_in_part -= taken
            stop = self.start + high - low
            parts.append(replace(self, stop=stop, extents=tuple(part_extents)))
        return parts

    def load(self) -> ReportBatch:
        """Read the report bodies from the file, and check every report."""
        bodies = []
        with self.path.open("rb") as file:
            for offset, count in self.extents:
                file.seek(offset)
                bodies.append(file.read(count * self.survey.body_size))
        with naming(self.path):
            return from_bodies(b"".join(bodies), self.survey)
