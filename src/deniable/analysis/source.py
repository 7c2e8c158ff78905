"""Reports from wherever they are, as a stream of batches that can be read again."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, TypeVar

import deniable.store
from deniable.columns import ReportBatch, scan
from deniable.columns.files import SUFFIXES
from deniable.compute.executor import Executor, Held
from deniable.compute.progress import tell
from deniable.errors import InputError
from deniable.store import Store
from deniable.store.snapshot import Snapshot
from deniable.survey import Survey

ROWS = 1 << 16
"""Rows worked on together: a batch is cut into pieces of this many, so that threads share them."""


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
Part = ReportBatch | Stored | Store | str | Path
Reports = Part | Iterable[Part]


class Source:
    """A survey's reports: a batch, a file, a folder of files, an Arrow table, a store, or any
    number of these."""

    def __init__(self, reports: Reports | Any, survey: Survey) -> None:
        self.survey = survey
        one = isinstance(reports, ReportBatch | Stored | str | Path)
        one = one or hasattr(reports, "schema") or hasattr(reports, "snapshot")
        given: Any = reports
        self._parts = [each for part in ([given] if one else given) for each in _parts(part)]
        if not self._parts:
            raise InputError("expected reports, got none")
        self._snapshots: dict[int, tuple[Snapshot, str]] = {}
        self.origin = ""

    def map(
        self, executor: Executor, function: Callable[[ReportBatch], Result]
    ) -> Iterator[Result]:
        """What the function makes of all reports, some at a time, in order."""
        return executor.map(function, self.batches())

    def hold(self, executor: Executor, function: Callable[[ReportBatch], Result]) -> Held[Result]:
        """The same, kept where it was made."""
        return executor.hold(function, self.batches())

    def batches(self) -> Iterator[ReportBatch]:
        """Every report, some at a time. A store is read as it was the first time."""
        origins: dict[str, None] = {}
        for i, part in enumerate(self._parts):
            if isinstance(part, Stored):
                part, origin = self._snapshot(i, part)
                origins[origin] = None
            size, seen = self._size(part), 0
            for batch in self._read(part):
                if batch.survey != self.survey:
                    raise InputError(
                        f"expected reports of {self.survey!r}, got some of {batch.survey!r}"
                    )
                origins[batch.origin] = None
                for start in range(0, len(batch), ROWS):
                    yield (piece := batch.select(slice(start, start + ROWS)))
                    seen += len(piece)
                    tell("reading reports", (i + min(seen / size, 1.0)) / len(self._parts))
        if not origins:
            raise InputError("expected reports, got none")
        self.origin = "; ".join(o for o in origins if o)

    def _snapshot(self, index: int, part: Stored) -> tuple[Snapshot, str]:
        if index not in self._snapshots:
            with part.opened() as store:
                found = store.snapshot(self.survey, since=part.since, until=part.until)
                url = store.url
            if not len(found):
                raise InputError(
                    f"{url} has no reports of {self.survey!r} from {part.since or 'the first day'} "
                    f"to {part.until or 'the last'}"
                )
            self._snapshots[index] = found, f"{url}, {min(found.days)} to {max(found.days)}"
        return self._snapshots[index]

    def _size(self, part: Any) -> float:
        """About how many reports there are: files hold little else."""
        if isinstance(part, str | Path):
            return max(Path(part).stat().st_size / self.survey.body_size, 1.0)
        return max(len(part), 1.0) if hasattr(part, "__len__") else math.inf

    def _read(self, part: Any) -> Iterator[ReportBatch]:
        if isinstance(part, ReportBatch):
            yield part
        elif isinstance(part, Snapshot):
            yield from part.batches(ROWS)
        elif isinstance(part, str | Path):
            yield from scan(part, survey=self.survey)
        elif hasattr(part, "schema"):
            from deniable.columns.arrow import from_arrow

            yield from_arrow(part)
        else:
            raise InputError(
                f"expected a ReportBatch, a file, an Arrow table or a store, got "
                f"{type(part).__name__}"
            )


def _parts(part: Any) -> list[Any]:
    """A store, or what names one, as all that it has; a folder that is none as its files."""
    if isinstance(part, str | Path) and Path(part).is_dir():
        files = sorted(p for p in Path(part).iterdir() if p.suffix in SUFFIXES)
        if files:  # a store has its reports in folders of its own
            return list(files)
    named = isinstance(part, str | Path) and deniable.store.is_url(part)
    return [Stored(part) if named or hasattr(part, "snapshot") else part]
