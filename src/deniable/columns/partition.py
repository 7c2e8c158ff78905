"""Partitions: where some reports are, small enough to send to whoever shall load them.

A partition of a file is its name and which rows; one of reports in memory carries them. All of them
can be pickled, loaded any number of times, and cut.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

from deniable.columns.batch import ReportBatch
from deniable.columns.wire import from_bodies
from deniable.errors import InputError
from deniable.survey import Survey
from deniable.survey.report import BATCH_HEADER_SIZE, batch_size

if TYPE_CHECKING:
    import pyarrow as pa

Opener = Callable[[], AbstractContextManager[Any]]
"""Gives a path or an open file; what is wrong with either becomes our error."""


class Partition(Protocol):
    """Some reports of one survey, `count` of them."""

    @property
    def survey(self) -> Survey: ...

    @property
    def origin(self) -> str:
        """What is known of where they came from."""
        ...

    @property
    def count(self) -> int: ...

    def load(self) -> ReportBatch:
        """The reports themselves."""
        ...

    def cut(self, rows: int) -> list[Self]:
        """The same reports in even partitions of at most `rows`."""
        ...


def edges(count: int, rows: int) -> list[tuple[int, int]]:
    """Where `count` rows are cut into even parts of at most `rows`.

    >>> edges(10, 4)
    [(0, 3), (3, 6), (6, 10)]
    """
    parts = -(-count // rows)
    return list(pairwise(count * part // parts for part in range(parts + 1))) if parts else []


@dataclass(frozen=True)
class BatchPartition:
    """Reports in memory, which travel with the partition."""

    batch: ReportBatch

    @property
    def survey(self) -> Survey:
        return self.batch.survey

    @property
    def origin(self) -> str:
        return self.batch.origin

    @property
    def count(self) -> int:
        return len(self.batch)

    def load(self) -> ReportBatch:
        return self.batch

    def cut(self, rows: int) -> list[BatchPartition]:
        return [BatchPartition(self.batch.select(slice(*part))) for part in edges(self.count, rows)]


@dataclass(frozen=True)
class Carried:
    """What only this process can load: sent elsewhere, the reports themselves."""

    part: Partition

    @property
    def survey(self) -> Survey:
        return self.part.survey

    @property
    def origin(self) -> str:
        return self.part.origin

    @property
    def count(self) -> int:
        return self.part.count

    def load(self) -> ReportBatch:
        return self.part.load()

    def cut(self, rows: int) -> list[Carried]:
        return [Carried(part) for part in self.part.cut(rows)]

    def __reduce__(self) -> tuple[type[BatchPartition], tuple[ReportBatch]]:
        return BatchPartition, (self.load(),)


@dataclass(frozen=True)
class _Rows(ABC):
    """Rows of one group of a file: a Parquet file's row group, an Arrow file's record batch."""

    opened: Opener
    survey: Survey
    origin: str
    group: int
    start: int
    stop: int

    @property
    def count(self) -> int:
        return self.stop - self.start

    def cut(self, rows: int) -> list[Self]:
        return [
            replace(self, start=self.start + low, stop=self.start + high)
            for low, high in edges(self.count, rows)
        ]

    def load(self) -> ReportBatch:
        from deniable.columns.arrow import from_arrow

        with self.opened() as source:
            return from_arrow(self._group(source).slice(self.start, self.count))

    @abstractmethod
    def _group(self, source: Any) -> pa.Table | pa.RecordBatch:
        """The whole group."""


class ParquetRows(_Rows):
    """Rows of a row group, all of which is read."""

    def _group(self, source: Any) -> pa.Table:
        from deniable.columns.parquet import opened

        # Columns without compression are only copied: handing them to threads costs more.
        return opened(source).read_row_group(self.group, use_threads=False)


class ArrowRows(_Rows):
    """Rows of a record batch, which is mapped and not read."""

    def _group(self, source: Any) -> pa.RecordBatch:
        import pyarrow as pa

        return pa.ipc.open_file(pa.memory_map(str(source))).get_batch(self.group)


@dataclass(frozen=True)
class WireRows:
    """Bodies of reports in a file of wire batches: (offset, reports) of each stretch of them."""

    path: Path
    survey: Survey
    stretches: tuple[tuple[int, int], ...]
    origin: str = ""

    @property
    def count(self) -> int:
        return sum(count for _, count in self.stretches)

    def cut(self, rows: int) -> list[WireRows]:
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
            parts.append(replace(self, stretches=tuple(taken)))
        return parts

    def load(self) -> ReportBatch:
        bodies = []
        with self.path.open("rb") as file:
            for at, count in self.stretches:
                file.seek(at)
                bodies.append(file.read(count * self.survey.body_size))
        return from_bodies(b"".join(bodies), self.survey)


# --- files ---------------------------------------------------------------------------------------


def parquet_partitions(opened: Opener) -> list[ParquetRows]:
    """The row groups of a Parquet file."""
    from deniable.columns import parquet
    from deniable.columns.arrow import origin_of, survey_of

    with opened() as source:
        file = parquet.opened(source)
        survey, origin = survey_of(file.schema_arrow), origin_of(file.schema_arrow)
        sizes = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
    return [ParquetRows(opened, survey, origin, i, 0, size) for i, size in enumerate(sizes)]


def file_partitions(path: Path, survey: Survey | None) -> list[Any]:
    """The partitions of a file, as large as it has them. A `.dn` file needs its survey."""
    if path.suffix == ".parquet":
        return list(parquet_partitions(partial(_file, path)))
    if path.suffix == ".arrow":
        return _arrow_partitions(path)
    if survey is None:
        raise InputError(f"{path} holds wire batches: give the survey they answer")
    return [WireRows(path, survey, tuple(_stretches(path, survey)))]


def _arrow_partitions(path: Path) -> list[ArrowRows]:
    import pyarrow as pa

    from deniable.columns.arrow import origin_of, survey_of

    with _file(path):
        reader = pa.ipc.open_file(pa.memory_map(str(path)))
        survey, origin = survey_of(reader.schema), origin_of(reader.schema)
        sizes = [reader.get_batch(i).num_rows for i in range(reader.num_record_batches)]
    return [
        ArrowRows(partial(_file, path), survey, origin, i, 0, size) for i, size in enumerate(sizes)
    ]


@contextmanager
def _file(path: Path) -> Iterator[Path]:
    import pyarrow as pa

    try:
        yield path
    except pa.ArrowInvalid as error:
        raise InputError(f"{path} cannot be read as {path.suffix[1:]}: {error}") from None


def _stretches(path: Path, survey: Survey) -> Iterator[tuple[int, int]]:
    """Where the bodies of each wire batch begin, and how many there are."""
    left = path.stat().st_size
    with path.open("rb") as file:
        at = 0
        while head := file.read(BATCH_HEADER_SIZE):
            size, _ = batch_size(head, survey)
            if size > left:
                raise InputError(f"{path} ends within a batch: expected {size} bytes, got {left}")
            yield at + BATCH_HEADER_SIZE, (size - BATCH_HEADER_SIZE) // survey.body_size
            at, left = at + size, left - size
            file.seek(at)
