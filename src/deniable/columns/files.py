"""Files of reports, read and written as streams of batches.

`.parquet`  columns without compression (noise does not compress), in small row groups
`.arrow`    Arrow's own file format: memory-mapped, so that nothing is read until it is used
`.dn`       wire batches one after another
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from deniable.columns.batch import ReportBatch, to_wire
from deniable.columns.partition import Partition, WireRows, group_partitions
from deniable.errors import InputError
from deniable.survey import Survey
from deniable.survey.report import BATCH_HEADER_SIZE, batch_size

if TYPE_CHECKING:
    from deniable.columns.arrow import ArrowSink, Groups

ROWS = 1 << 18
SUFFIXES = (".parquet", ".arrow", ".dn")


class WireSink:
    """Writes wire batches of at most `ROWS` reports."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")

    def write(self, batch: ReportBatch) -> None:
        for start in range(0, len(batch), ROWS):
            self._file.write(to_wire(batch.select(slice(start, start + ROWS))))

    def close(self) -> None:
        self._file.close()


class ReportWriter:
    """Writes batches of one survey to a file, which appears under its name only when complete."""

    def __init__(self, path: str | Path, survey: Survey, origin: str = "") -> None:
        self.path, self.survey, self.reports = Path(path), survey, 0
        _check_suffix(self.path)
        self._origin = origin
        self._temporary = self.path.with_name(self.path.name + ".partial")

    def __enter__(self) -> ReportWriter:
        self._sink: WireSink | ArrowSink
        if self.path.suffix == ".dn":
            self._sink = WireSink(self._temporary)
        else:
            from deniable.columns.arrow import ArrowSink, schema_of

            schema = schema_of(self.survey, self._origin)
            self._sink = ArrowSink(self._temporary, self.path.suffix, schema)
        return self

    def write(self, batch: ReportBatch) -> None:
        """Append the batch."""
        if batch.survey != self.survey:
            raise InputError(f"expected reports of {self.survey!r}, got {batch.survey!r}")
        self._sink.write(batch)
        self.reports += len(batch)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._sink.close()
        if kind is None:
            self._temporary.replace(self.path)
        else:
            self._temporary.unlink()


def write(path: str | Path, batches: ReportBatch | Iterable[ReportBatch]) -> int:
    """Write batches of one survey; returns how many reports. At least one batch is needed."""
    if isinstance(batches, ReportBatch):
        batches = [batches]
    stream = iter(batches)
    first = next(stream, None)
    if first is None:
        raise InputError("expected at least one batch, got none")
    with ReportWriter(path, first.survey, first.origin) as writer:
        writer.write(first)
        for batch in stream:
            writer.write(batch)
    return writer.reports


def scan(
    path: str | Path, *, survey: Survey | None = None, rows: int = ROWS
) -> Iterator[ReportBatch]:
    """Yield the file's reports, at most `rows` at a time. A `.dn` file needs its survey."""
    for whole in partitions(path, survey=survey):
        for part in whole.cut(rows):
            yield part.load()


def read(path: str | Path, *, survey: Survey | None = None) -> ReportBatch:
    """Read the whole file as one batch; an `.arrow` file of one batch is not copied to memory."""
    return ReportBatch.concat(scan(path, survey=survey, rows=1 << 62))


def partitions(path: str | Path, *, survey: Survey | None = None) -> list[Partition]:
    """Return where the file's reports are, to be loaded here or elsewhere, as large as can be."""
    path = Path(path)
    _check_suffix(path)
    path.stat()  # says that it is missing by the name it was given
    # Whoever loads them may stand in another folder.
    path = path.absolute()
    if path.suffix == ".dn":
        if survey is None:
            raise InputError(f"{path} holds wire batches: give the survey they answer")
        stretches = tuple(_stretches(path, survey))
        return [WireRows(survey, "", 0, sum(count for _, count in stretches), path, stretches)]
    parts = group_partitions(partial(_opened, path))
    if survey is not None and parts and parts[0].survey != survey:
        raise InputError(f"{path} holds reports of {parts[0].survey!r}, expected {survey!r}")
    return [*parts]


@contextmanager
def _opened(path: Path) -> Iterator[Groups]:
    import pyarrow as pa

    from deniable.columns.arrow import ArrowGroups, ParquetGroups

    try:
        yield ArrowGroups(path) if path.suffix == ".arrow" else ParquetGroups(path)
    except pa.ArrowInvalid as error:
        raise InputError(f"{path} cannot be read as {path.suffix[1:]}: {error}") from None


def _stretches(path: Path, survey: Survey) -> Iterator[tuple[int, int]]:
    """Yield where the bodies of each wire batch begin, and how many there are."""
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


def _check_suffix(path: Path) -> None:
    if path.suffix not in SUFFIXES:
        raise InputError(f"expected a file ending in {', '.join(SUFFIXES)}, got {path}")
