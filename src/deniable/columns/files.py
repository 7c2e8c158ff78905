"""Files of reports, read and written as streams of batches.

`.parquet`  columns without compression (noise does not compress), in small row groups
`.arrow`    Arrow's own file format: memory-mapped, so that nothing is read until it is used
`.dn`       wire batches one after another
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

from deniable.columns.batch import ReportBatch
from deniable.columns.partition import Partition, file_partitions
from deniable.columns.wire import to_wire
from deniable.errors import InputError
from deniable.survey import Survey

ROWS = 1 << 18
SUFFIXES = (".parquet", ".arrow", ".dn")


class ReportWriter:
    """Writes batches of one survey to a file, which appears under its name only when complete."""

    def __init__(self, path: str | Path, survey: Survey, origin: str = "") -> None:
        self.path, self.survey, self.reports = Path(path), survey, 0
        _check_suffix(self.path)
        self._origin = origin
        self._temporary = self.path.with_name(self.path.name + ".partial")
        self._sink: Any = None

    def __enter__(self) -> ReportWriter:
        if self.path.suffix == ".dn":
            self._sink = self._temporary.open("wb")
        elif self.path.suffix == ".arrow":
            import pyarrow as pa

            from deniable.columns.arrow import schema_of

            self._sink = pa.ipc.new_file(str(self._temporary), schema_of(self.survey, self._origin))
        else:
            from deniable.columns.arrow import schema_of
            from deniable.columns.parquet import writer

            self._sink = writer(self._temporary, schema_of(self.survey, self._origin))
        return self

    def write(self, batch: ReportBatch) -> None:
        """Append the batch."""
        if batch.survey != self.survey:
            raise InputError(f"expected reports of {self.survey!r}, got {batch.survey!r}")
        if self.path.suffix == ".dn":
            for start in range(0, len(batch), ROWS):
                self._sink.write(to_wire(batch.select(slice(start, start + ROWS))))
        else:
            from deniable.columns.arrow import schema_of, to_arrow
            from deniable.columns.parquet import ROW_GROUP

            record = to_arrow(batch)
            schema = schema_of(self.survey, self._origin)
            record = record.cast(schema) if record.schema != schema else record
            groups = (ROW_GROUP,) if self.path.suffix == ".parquet" else ()
            self._sink.write_batch(record, *groups)
        self.reports += len(batch)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
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
    """The file's reports, at most `rows` at a time. A `.dn` file needs its survey."""
    for whole in partitions(path, survey=survey):
        for part in whole.cut(rows):
            yield part.load()


def partitions(path: str | Path, *, survey: Survey | None = None) -> list[Partition]:
    """Where the file's reports are, to be loaded here or elsewhere."""
    _check_suffix(Path(path))
    Path(path).stat()  # says that it is missing by the name it was given
    # Whoever loads them may stand in another folder.
    path = Path(path).absolute()
    found: list[Partition] = file_partitions(path, survey)
    for part in found:
        if survey is not None and part.survey != survey:
            raise InputError(f"{path} holds reports of {part.survey!r}, expected {survey!r}")
    return found


def read(path: str | Path, *, survey: Survey | None = None) -> ReportBatch:
    """The whole file in one batch; an `.arrow` file of one batch is not copied into memory."""
    return ReportBatch.concat(scan(path, survey=survey, rows=1 << 62))


def _check_suffix(path: Path) -> None:
    if path.suffix not in SUFFIXES:
        raise InputError(f"expected a file ending in {', '.join(SUFFIXES)}, got {path}")
