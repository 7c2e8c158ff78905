"""Partitions: where some reports are, small enough to send to whoever shall load them.

A partition of a file is its name and which rows; one of reports in memory carries them. All of them
can be pickled, loaded any number of times, and cut.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Self

from deniable.columns.batch import ReportBatch, from_bodies
from deniable.survey import Survey

if TYPE_CHECKING:
    from deniable.columns.arrow import Groups

Opener = Callable[[], AbstractContextManager["Groups"]]
"""Opens a file's groups of rows; what is wrong with the file becomes one of our errors."""


@dataclass(frozen=True, eq=False)
class Partition(ABC):
    """The reports `start` to `stop` of something that holds reports of one survey.

    origin : what is known of where the reports came from
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
        """Return the reports themselves."""

    def cut(self, rows: int) -> list[Self]:
        """Return the same reports as even partitions of at most `rows`."""
        return [
            replace(self, start=self.start + low, stop=self.start + high)
            for low, high in edges(self.count, rows)
        ]


def edges(count: int, rows: int) -> list[tuple[int, int]]:
    """Return where `count` rows are cut into even parts of at most `rows`.

    >>> edges(10, 4)
    [(0, 3), (3, 6), (6, 10)]
    """
    parts = -(-count // rows)
    return list(pairwise(count * part // parts for part in range(parts + 1))) if parts else []


@dataclass(frozen=True, eq=False)
class BatchPartition(Partition):
    """Reports in memory, which travel with the partition."""

    batch: ReportBatch

    @classmethod
    def of(cls, batch: ReportBatch) -> Self:
        """Return the partition of all reports of a batch."""
        return cls(batch.survey, batch.origin, 0, len(batch), batch)

    def load(self) -> ReportBatch:
        return self.batch

    def cut(self, rows: int) -> list[Self]:
        return [self.of(self.batch.select(slice(*part))) for part in edges(self.count, rows)]


class Carried(Partition):
    """A partition that only this process can load: what is sent elsewhere are the reports."""

    def __reduce__(self) -> tuple[Callable[[ReportBatch], BatchPartition], tuple[ReportBatch]]:
        return BatchPartition.of, (self.load(),)


@dataclass(frozen=True, eq=False)
class GroupRows(Partition):
    """Rows of one group of a file: a Parquet file's row group, an Arrow file's record batch."""

    opened: Opener
    group: int

    def load(self) -> ReportBatch:
        from deniable.columns.arrow import from_arrow

        with self.opened() as groups:
            return from_arrow(groups.read(self.group).slice(self.start, self.count))


class CarriedGroupRows(Carried, GroupRows):
    """Rows of a file that only this process can open."""


def group_partitions(opened: Opener, kind: type[GroupRows] = GroupRows) -> list[GroupRows]:
    """Return one partition per group of the file."""
    from deniable.columns.arrow import origin_of, survey_of

    with opened() as groups:
        survey, origin, sizes = survey_of(groups.schema), origin_of(groups.schema), groups.sizes
    return [kind(survey, origin, 0, size, opened, i) for i, size in enumerate(sizes)]


@dataclass(frozen=True, eq=False)
class WireRows(Partition):
    """Bodies of reports in a file of wire batches: (offset, reports) of each stretch of them."""

    path: Path
    stretches: tuple[tuple[int, int], ...]

    def cut(self, rows: int) -> list[Self]:
        size, parts = self.survey.body_size, []
        stretches = iter(self.stretches)
        at, left = 0, 0
        for low, high in edges(self.count, rows):
            wanted, taken = high - low, []
            while wanted:
                if not left:
                    at, left = next(stretches)
                some = min(left, wanted)
                taken.append((at, some))
                at, left, wanted = at + some * size, left - some, wanted - some
            parts.append(replace(self, stop=self.start + high - low, stretches=tuple(taken)))
        return parts

    def load(self) -> ReportBatch:
        bodies = []
        with self.path.open("rb") as file:
            for at, count in self.stretches:
                file.seek(at)
                bodies.append(file.read(count * self.survey.body_size))
        return from_bodies(b"".join(bodies), self.survey)
