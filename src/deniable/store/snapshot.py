"""A survey's reports as they were at one moment, to be read any number of times.

An analysis reads its reports several times, and must see the same ones each time while a collector
goes on adding. Segments never change, so their names will do. What is staged may be compacted at
any moment, so it is copied, in an order drawn anew: a snapshot does not say which reports came
together. Copies above 64 MiB go to a temporary file without a name.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date
from functools import partial
from os import SEEK_END
from tempfile import SpooledTemporaryFile
from threading import Lock
from typing import IO

from deniable.columns import ReportBatch
from deniable.columns.batch import from_bodies
from deniable.columns.partition import Carried, CarriedGroupRows, GroupRows, Partition
from deniable.store.base import ROWS
from deniable.store.locations import Location, OpenSource, cached_source
from deniable.store.segments import partitions, shuffled
from deniable.survey import Survey

MAX_BYTES_IN_MEMORY = 1 << 26
_FOOTERS_AT_ONCE = 8
"""Segments whose footers are read at once: far away, each is a matter of waiting."""


class Snapshot:
    """The reports of some days; see `Store.snapshot`. Made by a store within a transaction."""

    def __init__(
        self,
        survey: Survey,
        days: dict[date, int],
        location: Location,
        segments: Iterable[str],
        staged: Iterable[bytes],
    ) -> None:
        self.survey, self.days = survey, days
        self._location, self._segments = location, list(segments)
        self._staged: IO[bytes] = SpooledTemporaryFile(max_size=MAX_BYTES_IN_MEMORY)  # noqa: SIM115
        self._reading = Lock()
        weakref.finalize(self, self._staged.close)
        waiting, size = [], 0
        for bodies in staged:
            waiting.append(bodies)
            size += len(bodies)
            if size >= MAX_BYTES_IN_MEMORY:
                self._copy(waiting)
                waiting, size = [], 0
        self._copy(waiting)

    def __len__(self) -> int:
        return sum(self.days.values())

    def _copy(self, bodies: list[bytes]) -> None:
        self._staged.write(shuffled(b"".join(bodies), self.survey.body_size).data)

    def partitions(self) -> list[Partition]:
        """Return where the reports are, each once; copies travel with those that are staged."""
        source: OpenSource = self._location.source
        kind = GroupRows
        if not self._location.shared:
            # A file of many row groups would come whole for each of them.
            source, kind = cached_source(self._location), CarriedGroupRows
        with ThreadPoolExecutor(_FOOTERS_AT_ONCE) as pool:
            found = pool.map(partial(partitions, source, kind=kind), self._segments)
            segments: list[Partition] = [part for parts in found for part in parts]
        count = self._staged.seek(0, SEEK_END) // self.survey.body_size
        return [_StagedRows(self.survey, "", 0, count, self), *segments] if count else segments

    def batches(self, rows: int = ROWS) -> Iterator[ReportBatch]:
        """Yield every report once, at most `rows` at a time."""
        for whole in self.partitions():
            for part in whole.cut(rows):
                yield part.load()

    def staged(self, start: int, count: int) -> ReportBatch:
        """Return some of the copies."""
        size = self.survey.body_size
        with self._reading:
            self._staged.seek(start * size)
            return from_bodies(self._staged.read(count * size), self.survey)


@dataclass(frozen=True, eq=False)
class _StagedRows(Carried):
    """Copies of staged reports."""

    snapshot: Snapshot

    def load(self) -> ReportBatch:
        return self.snapshot.staged(self.start, self.count)
