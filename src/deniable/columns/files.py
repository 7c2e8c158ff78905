"""Files of reports, read and written as streams of batches.

`.parquet`  columns without compression (noise does not compress), one row group a batch
`.arrow`    Arrow's own file format: memory-mapped, so that nothing is read until it is used
`.dn`       wire batches one after another
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO

from deniable.columns.batch import ReportBatch
from deniable.columns.wire import from_wire, to_wire
from deniable.errors import InputError
from deniable.survey import Survey
from deniable.survey.report import BATCH_HEADER_SIZE, batch_size

if TYPE_CHECKING:
    import pyarrow as pa

ROWS = 1 << 18
SUFFIXES = (".parquet", ".arrow", ".dn")


class Writer:
    """Writes batches of one survey to a file, which appears under its name only when complete."""

    def __init__(self, path: str | Path, survey: Survey, origin: str = "") -> None:
        self.path, self.survey, self.reports = Path(path), survey, 0
        _check_suffix(self.path)
        self._origin = origin
        self._temporary = self.path.with_name(self.path.name + ".partial")
        self._sink: Any = None

    def __enter__(self) -> Writer:
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

            record = to_arrow(batch)
            schema = schema_of(self.survey, self._origin)
            self._sink.write_batch(record.cast(schema) if record.schema != schema else record)
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
    with Writer(path, first.survey, first.origin) as writer:
        writer.write(first)
        for batch in stream:
            writer.write(batch)
    return writer.reports


def scan(
    path: str | Path, *, survey: Survey | None = None, rows: int = ROWS
) -> Iterator[ReportBatch]:
    """The file's reports, at most `rows` at a time. A `.dn` file needs its survey."""
    path = Path(path)
    _check_suffix(path)
    if path.suffix == ".dn":
        if survey is None:
            raise InputError(f"{path} holds wire batches: give the survey they answer")
        with path.open("rb") as file:
            yield from _scan_wire(file, survey, path, path.stat().st_size)
        return
    from deniable.columns.arrow import from_arrow

    for batch in _arrow_batches(path, rows):
        found = from_arrow(batch)
        if survey is not None and found.survey != survey:
            raise InputError(f"{path} holds reports of {found.survey!r}, expected {survey!r}")
        for start in range(0, len(found), rows):
            yield found.select(slice(start, start + rows))


def read(path: str | Path, *, survey: Survey | None = None) -> ReportBatch:
    """The whole file in one batch; an `.arrow` file of one batch is not copied into memory."""
    return ReportBatch.concat(scan(path, survey=survey, rows=1 << 62))


def _arrow_batches(path: Path, rows: int) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    try:
        if path.suffix == ".arrow":
            reader = pa.ipc.open_file(pa.memory_map(str(path)))
            for i in range(reader.num_record_batches):
                yield reader.get_batch(i)
        else:
            from deniable.columns.parquet import record_batches

            yield from record_batches(path, min(rows, ROWS))
    except pa.ArrowInvalid as error:
        raise InputError(f"{path} cannot be read as {path.suffix[1:]}: {error}") from None


def _scan_wire(file: BinaryIO, survey: Survey, path: Path, left: int) -> Iterator[ReportBatch]:
    while head := file.read(BATCH_HEADER_SIZE):
        size, _ = batch_size(head, survey)
        if size > left:
            raise InputError(f"{path} ends within a batch: expected {size} bytes, got {left}")
        yield from_wire(head + file.read(size - len(head)), survey)
        left -= size


def _check_suffix(path: Path) -> None:
    if path.suffix not in SUFFIXES:
        raise InputError(f"expected a file ending in {', '.join(SUFFIXES)}, got {path}")
