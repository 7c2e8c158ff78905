"""Reports from memory, files and stores, cut into partitions that workers load."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeVar

import deniable.store
from deniable.arguments import Day, as_optional_day
from deniable.columns import ReportBatch
from deniable.columns.files import SUFFIXES, open_groups, partitions
from deniable.columns.frames import ArrowStream, PandasFrame
from deniable.columns.partition import BatchPartition, Partition, row_groups
from deniable.compute.executors import Executor, Held
from deniable.compute.progress import report_progress
from deniable.errors import InputError
from deniable.formatting import counted
from deniable.store import Store
from deniable.store.locations import is_object_url, without_password
from deniable.survey import Survey

MAX_PARTITION_ROWS = 1 << 16
"""Maximum number of rows of a partition: larger ones are cut, so that workers can share them."""
MIN_PARTITION_ROWS = 1 << 11
"""Number of rows below which cutting a partition does not pay."""


@dataclass(frozen=True)
class Stored:
    """Reports of some days in a store.

    Parameters
    ----------
    store : Store, str or Path
        An open store, or its URL: `sqlite:///FILE.db`, `FILE.db` or `postgresql://…`.
    since : date or str, optional
        First day, also as text: "2025-03-01". All earlier days are included by default.
    until : date or str, optional
        Last day. All later days are included by default.

    Raises
    ------
    InputError
        If `since` is after `until`, or one of them is not a day.

    Examples
    --------
    >>> from deniable import Stored
    >>> Stored("reports.db", since="2025-03-01").since
    datetime.date(2025, 3, 1)
    """

    store: Store | str | Path
    since: Day | None = None
    until: Day | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.store, Store | str | Path):
            raise InputError(
                f"store must be an open store, its URL or its path, not {type(self.store).__name__}"
            )
        since, until = as_optional_day("since", self.since), as_optional_day("until", self.until)
        if since and until and since > until:
            raise InputError(f"since ({since}) must not be after until ({until})")
        object.__setattr__(self, "since", since)
        object.__setattr__(self, "until", until)

    def __repr__(self) -> str:
        store, days = self.store, (self.since, self.until)
        if isinstance(store, str | Path):
            store = without_password(str(store))
        limits = zip(("since", "until"), days, strict=True)
        return f"<Stored {', '.join([str(store), *(f'{k} {day}' for k, day in limits if day)])}>"

    @contextmanager
    def opened(self) -> Iterator[Store]:
        """Open the store, and close it at the end unless it was open before.

        Yields
        ------
        Store
            The open store.
        """
        if not isinstance(self.store, str | Path):
            yield self.store
            return
        with deniable.store.open(self.store) as store:
            yield store


NO_REPORTS = "there are no reports to analyse"
Result = TypeVar("Result")
Part = ReportBatch | Stored | Store | str | Path | ArrowStream | PandasFrame
Reports = Part | Iterable[Part]


class Source:
    """Reports of one survey, in partitions.

    Parameters
    ----------
    reports : ReportBatch, str, Path, Arrow table, data frame, Store, Stored, or several of these
        Where the reports are. A path may name a file, a folder of files, or a store; a URL s3://…
        or gs://… a Parquet file or a folder of them.
    survey : Survey
        Survey that the reports must answer.
    """

    def __init__(self, reports: Reports | Iterable[object], survey: Survey) -> None:
        self.survey = survey
        self._parts = [each for part in listed(reports) for each in _parts(part)]
        if not self._parts:
            raise InputError(NO_REPORTS)
        check_distinct(self._parts)
        self.origin = ""
        """Description of where the reports come from; empty until `partitions` is used."""

    @property
    def count(self) -> int:
        """Number of reports."""
        return sum(each.count for each in self.partitions)

    def map(
        self, executor: Executor, function: Callable[[ReportBatch], Result]
    ) -> Iterator[Result]:
        """Yield function(batch) for the reports of each partition, in order."""
        return executor.map(partial(_apply, function), self._with_progress())

    def hold(self, executor: Executor, function: Callable[[ReportBatch], Result]) -> Held[Result]:
        """Return function(batch) for each partition, kept on the worker that computed it."""
        return executor.hold(partial(_apply, function), self._with_progress())

    def groups(self, rows: int) -> Iterator[list[Partition]]:
        """Yield lists of partitions, each list with at least `rows` reports in total.

        A quarter of all reports suffices if that is fewer; the last list may have fewer still.
        """
        enough = min(rows, self.count // 4)
        group: list[Partition] = []
        for partition in self._with_progress():
            group.append(partition)
            if sum(each.count for each in group) >= enough:
                yield group
                group = []
        if group:
            yield group

    def batches(self) -> Iterator[ReportBatch]:
        """Yield all reports, one partition at a time."""
        return (partition.load() for partition in self._with_progress())

    @cached_property
    def partitions(self) -> list[Partition]:
        """Partitions of the reports.

        They are located on first use; a store is read as it was at that time.
        """
        origins: dict[str, None] = {}
        located: list[Partition] = []
        for part in self._parts:
            new, origin = self._located(part)
            for partition in new:
                if partition.survey != self.survey:
                    raise InputError(
                        f"the reports must answer {self.survey}, but some answer {partition.survey}"
                    )
            located += new
            origins |= dict.fromkeys([origin, *(each.origin for each in new)])
        self.origin = "; ".join(o for o in origins if o)
        # With few reports, partitions are smaller, so that all processors have some.
        total = sum(each.count for each in located)
        rows = min(MAX_PARTITION_ROWS, max(MIN_PARTITION_ROWS, total // 8))
        if not located:
            raise InputError(NO_REPORTS)
        # Files that hold no reports are no error, because clients may not have answered yet: one
        # empty partition is kept.
        return [piece for each in located for piece in each.cut(rows)] or located[:1]

    def _with_progress(self) -> Iterator[Partition]:
        """Yield the partitions, and report the fraction that was taken as progress."""
        total, seen = self.count, 0
        for partition in self.partitions:
            yield partition
            seen += partition.count
            report_progress("reading reports", seen / max(total, 1))

    def _located(self, part: Part) -> tuple[list[Partition], str]:
        """Return the partitions of one part, and its origin if the partitions do not have one."""
        match part:
            case Stored():
                return self._stored(part)
            case str() if is_object_url(part):
                from deniable.store.object_storage import open_file

                return [*row_groups(partial(open_groups, part, open_file))], ""
            case str() | Path():
                return partitions(part, survey=self.survey), ""
            case ReportBatch():
                return [BatchPartition.of(part)], ""
            case ArrowStream() | PandasFrame():
                from deniable.columns.arrow import from_frame

                return [BatchPartition.of(from_frame(part, self.survey))], ""
        raise InputError(
            "reports must be a ReportBatch, a file, an Arrow table, a pandas or polars data frame, "
            f"a store, or a list of these, got {type(part).__name__}"
        )

    def _stored(self, part: Stored) -> tuple[list[Partition], str]:
        """Return the partitions of some days of a store, and their origin."""
        with part.opened() as store:
            snapshot = store.snapshot(self.survey, since=part.since, until=part.until)
            url = store.url
            waiting = store.waiting(self.survey) if store.compacted_only else 0
        snapshot.warn()
        if not len(snapshot):
            raise no_reports(self.survey, url, part, waiting)
        days = snapshot.days
        origin = "; ".join([f"{url}, {min(days)} to {max(days)}", *snapshot.damage])
        return snapshot.partitions(), origin


def no_reports(survey: Survey, url: str, part: Stored, waiting: int = 0) -> InputError:
    """Return the error for days of a store that have no reports of a survey.

    waiting : number of reports that are left out, because they are not shuffled yet
    """
    days = {
        (True, True): f"from {part.since} to {part.until}",
        (True, False): f"since {part.since}",
        (False, True): f"until {part.until}",
        (False, False): "yet",
    }[part.since is not None, part.until is not None]
    hidden = f"; {counted(waiting, 'report')} of it wait to be shuffled with others"
    return InputError(
        f"there are no reports of survey {survey.name} version {survey.version} {days} in {url}"
        f"{hidden if waiting else ''}"
    )


def listed(reports: object) -> list[Any]:
    """Return what was given as a list: a single part, or each of several."""
    if isinstance(reports, Part) or not isinstance(reports, Iterable):
        return [reports]
    return list(reports)


def _apply(function: Callable[[ReportBatch], Result], part: Partition) -> Result:
    """Load a partition, and apply a function to it."""
    return function(part.load())


def check_distinct(parts: Iterable[Part]) -> None:
    """Raise InputError if a file is named twice: its reports would count twice."""
    seen: set[str] = set()
    for part in parts:
        if isinstance(part, str | Path):
            if (path := os.path.realpath(part)) in seen:
                raise InputError(f"{part} is given twice, so its reports would count twice")
            seen.add(path)


def _parts(part: Part) -> list[Part]:
    """Return a store as all its days, a folder as its files."""
    if isinstance(part, Store):
        return [Stored(part)]
    if not isinstance(part, str | Path):
        return [part]
    if not str(part):
        raise InputError("the name of a file of reports is empty")
    if is_object_url(part):
        from deniable.store.object_storage import report_files

        return [*report_files(str(part))]
    if Path(part).is_dir():
        files = sorted(p for p in Path(part).iterdir() if p.suffix in SUFFIXES)
        if not files:
            raise InputError(f"the folder {part} has no files of reports ({', '.join(SUFFIXES)})")
        return list(files)
    return [Stored(part) if deniable.store.is_url(part) else part]
