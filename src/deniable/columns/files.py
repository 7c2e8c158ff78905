"""Read and write files of reports as streams of batches.

`.parquet`  columns in small row groups, uncompressed because noise does not compress
`.dn`       wire batches, one after another
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from deniable.columns.batch import ReportBatch, to_wire
from deniable.columns.partition import Partition, WirePartition, load_all, naming, row_groups
from deniable.errors import InputError, did_you_mean
from deniable.survey import Survey, SurveyOrPath
from deniable.survey.report import BATCH_HEADER_SIZE, batch_size

if TYPE_CHECKING:
    from deniable.columns.arrow import ParquetGroups, ParquetSink

MAX_BATCH_ROWS = 1 << 18
"""Largest number of reports that `scan` yields at once, and per wire batch of a `.dn` file."""
SUFFIXES = (".parquet", ".dn")


class WireSink:
    """Writes reports to a `.dn` file, as wire batches of at most `MAX_BATCH_ROWS`."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")

    def write(self, batch: ReportBatch) -> None:
        """Append a batch of reports."""
        for start in range(0, len(batch), MAX_BATCH_ROWS):
            self._file.write(to_wire(batch.select(slice(start, start + MAX_BATCH_ROWS))))

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class ReportWriter:
    """Writes batches of one survey to a file, which gets its name only when it is complete.

    Use it in a `with` statement; the format follows the extension of `path`.
    """

    def __init__(self, path: str | Path, survey: Survey, origin: str = "") -> None:
        self.path, self.survey, self.reports = Path(path), survey, 0
        _check_suffix(self.path)
        self._origin = origin
        self._temporary = self.path.with_name(self.path.name + ".partial")

    def __enter__(self) -> ReportWriter:
        self._sink: WireSink | ParquetSink
        if self.path.suffix == ".dn":
            self._sink = WireSink(self._temporary)
        else:
            from deniable.columns.arrow import ParquetSink, schema_of

            self._sink = ParquetSink(self._temporary, schema_of(self.survey, self._origin))
        return self

    def write(self, batch: ReportBatch) -> None:
        """Append a batch of the writer's survey."""
        if batch.survey != self.survey:
            raise InputError(
                f"a file has reports of one survey: expected reports of {self.survey}, got "
                f"{batch.survey}"
            )
        self._sink.write(batch)
        self.reports += len(batch)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._sink.close()
        if kind is None:
            self._temporary.replace(self.path)
        else:
            self._temporary.unlink()


def write(path: str | Path, batches: ReportBatch | Iterable[ReportBatch]) -> int:
    """Write reports of one survey to a file.

    Parameters
    ----------
    path : str or Path
        File to write; its extension `.parquet` or `.dn` selects the format.
    batches : ReportBatch or iterable of ReportBatch
        Reports to write, at least one batch.

    Returns
    -------
    int
        Number of reports written.

    Raises
    ------
    InputError
        If there is no batch, the batches are of several surveys, or the extension is unknown.

    Examples
    --------
    >>> from deniable import Client
    >>> from deniable.columns import from_wire
    >>> from deniable.survey import example_survey, to_batch
    >>> survey = example_survey()
    >>> report = Client(survey, secret=bytes(32)).answer({"dark_mode": True})
    >>> batch = from_wire(to_batch([report, report]), survey)
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(f"{folder}/reports.dn", batch)
    2
    """
    if isinstance(batches, ReportBatch):
        batches = [batches]
    stream = iter(batches)
    first = next(stream, None)
    if first is None:
        raise InputError("cannot write a file of no reports: expected at least one batch")
    with ReportWriter(path, first.survey, first.origin) as writer:
        writer.write(first)
        for batch in stream:
            writer.write(batch)
    return writer.reports


def scan(
    path: str | Path, *, survey: SurveyOrPath | None = None, rows: int = MAX_BATCH_ROWS
) -> Iterator[ReportBatch]:
    """Yield the reports of a file, a batch at a time.

    Parameters
    ----------
    path : str or Path
        `.parquet` or `.dn` file.
    survey : Survey, str or Path, optional
        Survey of the reports, or the path of its file; required for a `.dn` file, checked for a
        `.parquet` file.
    rows : int, default 262144
        Largest number of reports per batch.

    Yields
    ------
    ReportBatch
        At most `rows` reports.

    Raises
    ------
    InputError
        If the file is damaged, has an unknown extension, or has reports of another survey.

    Examples
    --------
    >>> from deniable import Client
    >>> from deniable.columns import from_wire
    >>> from deniable.survey import example_survey, to_batch
    >>> survey = example_survey()
    >>> report = Client(survey, secret=bytes(32)).answer({"dark_mode": True})
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = write(f"{folder}/reports.dn", from_wire(to_batch([report] * 5), survey))
    ...     [len(batch) for batch in scan(f"{folder}/reports.dn", survey=survey, rows=3)]
    [2, 3]
    """
    yield from load_all(partitions(path, survey=survey), rows)


def read(path: str | Path, *, survey: SurveyOrPath | None = None) -> ReportBatch:
    """Read a whole file as one batch.

    Parameters
    ----------
    path : str or Path
        `.parquet` or `.dn` file.
    survey : Survey, str or Path, optional
        Survey of the reports, or the path of its file; required for a `.dn` file, checked for a
        `.parquet` file.

    Returns
    -------
    ReportBatch
        All reports of the file.

    Raises
    ------
    InputError
        If the file is empty or damaged, has an unknown extension, or has reports of another survey.

    Examples
    --------
    >>> from deniable import Client
    >>> from deniable.columns import from_wire
    >>> from deniable.survey import example_survey, to_batch
    >>> survey = example_survey()
    >>> report = Client(survey, secret=bytes(32)).answer({"dark_mode": True})
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = write(f"{folder}/reports.dn", from_wire(to_batch([report]), survey))
    ...     len(read(f"{folder}/reports.dn", survey=survey))
    1
    """
    batches = list(scan(path, survey=survey, rows=1 << 62))
    if not batches:
        raise InputError(f"{path} has no reports")
    return ReportBatch.concat(batches)


def partitions(path: str | Path, *, survey: SurveyOrPath | None = None) -> list[Partition]:
    """Return the largest possible partitions of a file, to be loaded by any process."""
    path = Path(path)
    survey = None if survey is None else Survey.of(survey)
    if path.suffix not in SUFFIXES and not path.exists():
        raise InputError(f"there is no file or folder {path}: check its name and its folder")
    _check_suffix(path)
    path.stat()  # if the file is missing, the error quotes the path as the user wrote it
    # The process that loads a partition may run in another folder.
    path = path.absolute()
    if path.suffix == ".dn":
        if survey is None:
            raise InputError(f"{path} does not contain its survey: give the survey of its reports")
        extents = tuple(_extents(path, survey))
        return [WirePartition(survey, "", 0, sum(count for _, count in extents), path, extents)]
    parts = row_groups(partial(open_groups, path))
    if survey is not None and parts and parts[0].survey != survey:
        raise InputError(f"{path} has reports of {parts[0].survey}, expected {survey}")
    return [*parts]


@contextmanager
def open_groups(
    path: str | Path,
    source: Callable[[Any], AbstractContextManager[Path | IO[bytes]]] = nullcontext,
) -> Iterator[ParquetGroups]:
    """Open a file as row groups; raise InputError if it is damaged.

    source : opens the file, in a form that pyarrow reads: a path or an open file
    """
    from deniable.columns.arrow import ParquetGroups, damage_as

    def damaged(what: str) -> InputError:
        return InputError(f"cannot read {path} as a Parquet file: {what}")

    with source(path) as file, damage_as(damaged), naming(path):
        yield ParquetGroups(file)


def _extents(path: Path, survey: Survey) -> Iterator[tuple[int, int]]:
    """Yield the byte offset and the number of the report bodies of each wire batch."""
    bytes_left = path.stat().st_size
    with path.open("rb") as file:
        offset = 0
        while head := file.read(BATCH_HEADER_SIZE):
            with naming(path):
                size, _ = batch_size(head, survey)
            if size > bytes_left:
                raise InputError(
                    f"{path} ends within a batch, which has {bytes_left} of {size} bytes: the file "
                    "was truncated"
                )
            yield offset + BATCH_HEADER_SIZE, (size - BATCH_HEADER_SIZE) // survey.body_size
            offset, bytes_left = offset + size, bytes_left - size
            file.seek(offset)


def _check_suffix(path: Path) -> None:
    """Raise InputError unless the extension is that of a file of reports."""
    if path.suffix not in SUFFIXES:
        hint = did_you_mean(path.suffix, SUFFIXES)
        raise InputError(
            f"{path} is not a file of reports: expected a name that ends in "
            f"{', '.join(SUFFIXES)}.{hint}"
        )
