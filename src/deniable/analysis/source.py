"""Reports from wherever they are, in partitions that whoever works on them loads."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeVar

import deniable.store
from deniable.columns import ReportBatch
from deniable.columns.files import SUFFIXES, partitions
from deniable.columns.frames import ArrowStream, PandasFrame
from deniable.columns.partition import BatchPartition, Partition
from deniable.compute.backend import Backend, Held
from deniable.compute.progress import report_progress
from deniable.errors import InputError
from deniable.store import Store
from deniable.survey import Survey

ROWS = 1 << 16
"""Rows worked on together, at most: what is larger is cut, so that workers share it."""
FEWEST = 1 << 11
"""… and what has fewer is not worth cutting."""


@dataclass(frozen=True)
class Stored:
    """The reports of some days in a store, both ends included; a store alone means all of it.

    store : open, or its URL: `sqlite:///FILE.db`, `postgresql://…`, or a folder of Parquet files
    """

    store: Store | str | Path
    since: date | None = None
    until: date | None = None

    def __post_init__(self) -> None:
        if self.since and self.until and self.since > self.until:
            raise InputError(f"expected since before until, got {self.since} and {self.until}")

    @contextmanager
    def opened(self) -> Iterator[Store]:
        """The store; closed again if it was not open before."""
        if not isinstance(self.store, str | Path):
            yield self.store
            return
        with deniable.store.open(self.store) as store:
            yield store


Result = TypeVar("Result")
Part = ReportBatch | Stored | Store | str | Path | ArrowStream | PandasFrame
Reports = Part | Iterable[Part]


class Source:
    """A survey's reports: a batch, a file, a folder of files, an Arrow table, a pandas or polars
    frame, a store, or any number of these."""

    def __init__(self, reports: Reports | Iterable[object], survey: Survey) -> None:
        self.survey = survey
        self._parts = [each for part in listed(reports) for each in _parts(part)]
        if not self._parts:
            raise InputError("expected reports, got none")
        self.origin = ""

    def map(self, executor: Backend, function: Callable[[ReportBatch], Result]) -> Iterator[Result]:
        """What the function makes of all reports, some at a time, in order."""
        return executor.map(partial(_of_loaded, function), self._taken())

    def hold(self, executor: Backend, function: Callable[[ReportBatch], Result]) -> Held[Result]:
        """The same, kept where it was made."""
        return executor.hold(partial(_of_loaded, function), self._taken())

    def groups(self, rows: int) -> Iterator[list[Partition]]:
        """The partitions, so many together that they have `rows` reports, or a quarter of all."""
        enough = min(rows, sum(part.count for part in self.partitions) // 4)
        group: list[Partition] = []
        for part in self._taken():
            group.append(part)
            if sum(each.count for each in group) >= enough:
                yield group
                group = []
        if group:
            yield group

    def batches(self) -> Iterator[ReportBatch]:
        """Every report, some at a time."""
        return (part.load() for part in self._taken())

    @cached_property
    def partitions(self) -> list[Partition]:
        """Where the reports are, in parts to be worked on together; found the first time, so that
        a store is read as it was then."""
        origins: dict[str, None] = {}
        wholes: list[Partition] = []
        for part in self._parts:
            located, origin = self._located(part)
            for each in located:
                if each.survey != self.survey:
                    raise InputError(
                        f"expected reports of {self.survey!r}, got some of {each.survey!r}"
                    )
            wholes += located
            origins |= dict.fromkeys([origin, *(each.origin for each in located)])
        self.origin = "; ".join(o for o in origins if o)
        # Fewer at a time where there are few, so that all processors have some.
        rows = min(ROWS, max(FEWEST, sum(part.count for part in wholes) // 8))
        if not wholes:
            raise InputError("expected reports, got none")
        # Sources that are there but empty are no mistake: nobody has answered yet.
        return [part for whole in wholes for part in whole.cut(rows)] or wholes[:1]

    def _taken(self) -> Iterator[Partition]:
        """The partitions; each one taken is progress."""
        parts = self.partitions
        total, seen = sum(part.count for part in parts), 0
        for part in parts:
            yield part
            seen += part.count
            report_progress("reading reports", seen / max(total, 1))

    def _located(self, part: Part) -> tuple[list[Partition], str]:
        """Where the reports of one part are, and its origin beside theirs."""
        match part:
            case Stored():
                return self._stored(part)
            case str() | Path():
                return partitions(part, survey=self.survey), ""
            case ReportBatch():
                return [BatchPartition.of(part)], ""
            case ArrowStream() | PandasFrame():
                from deniable.columns.arrow import from_frame

                return [BatchPartition.of(from_frame(part, self.survey))], ""
        raise InputError(
            f"expected a ReportBatch, a file, an Arrow table, a pandas or polars frame or a store, "
            f"got {type(part).__name__}"
        )

    def _stored(self, part: Stored) -> tuple[list[Partition], str]:
        with part.opened() as store:
            snapshot = store.snapshot(self.survey, since=part.since, until=part.until)
            url = store.url
        if not len(snapshot):
            raise InputError(
                f"{url} has no reports of {self.survey!r} from {part.since or 'the first day'} "
                f"to {part.until or 'the last'}"
            )
        days = snapshot.days
        return snapshot.partitions(), f"{url}, {min(days)} to {max(days)}"


def listed(reports: object) -> list[Any]:
    """What was given: one thing, or each of several."""
    if isinstance(reports, Part) or not isinstance(reports, Iterable):
        return [reports]
    return list(reports)


def _of_loaded(function: Callable[[ReportBatch], Result], part: Partition) -> Result:
    return function(part.load())


def _parts(part: Part) -> list[Part]:
    """A store, or what names one, as all that it has; a folder that is none as its files."""
    if isinstance(part, Store):
        return [Stored(part)]
    if not isinstance(part, str | Path):
        return [part]
    if Path(part).is_dir():
        files = sorted(p for p in Path(part).iterdir() if p.suffix in SUFFIXES)
        if files:  # a store has its reports in folders of its own
            return list(files)
    return [Stored(part) if deniable.store.is_url(part) else part]
