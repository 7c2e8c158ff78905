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
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from os import SEEK_END
from tempfile import SpooledTemporaryFile
from threading import Lock
from typing import IO

from deniable.columns import ReportBatch
from deniable.columns.partition import Carried, Partition, edges
from deniable.columns.wire import from_bodies
from deniable.store.base import ROWS
from deniable.store.places import Place, Recent
from deniable.store.segments import partitions, shuffled
from deniable.survey import Survey

IN_MEMORY = 1 << 26
_AT_ONCE = 8
"""Segments whose footers are read at once: far away, each is a matter of waiting."""


class Snapshot:
    """The reports of some days; see `Store.snapshot`."""

    def __init__(self, survey: Survey, place: Place, days: dict[date, int]) -> None:
        self.survey, self.days = survey, days
        self._place = place
        self._segments: list[str] = []
        self._staged: IO[bytes] = SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115
        self._reading = Lock()
        weakref.finalize(self, self._staged.close)

    def __len__(self) -> int:
        return sum(self.days.values())

    def take(self, segments: Iterable[str], staged: Iterable[bytes]) -> Snapshot:
        """Note the segments and copy the staged bodies; run by the store within a transaction."""
        self._segments = list(segments)
        waiting, size = [], 0
        for bodies in staged:
            waiting.append(bodies)
            size += len(bodies)
            if size >= IN_MEMORY:
                self._copy(waiting)
                waiting, size = [], 0
        self._copy(waiting)
        return self

    def _copy(self, bodies: list[bytes]) -> None:
        self._staged.write(shuffled(b"".join(bodies), self.survey.body_size).data)

    def partitions(self) -> list[Partition]:
        """Where the reports are, each once; the copies travel with those that are staged."""
        # A file of many row groups would come whole for each of them.
        place = self._place if self._place.everywhere else Recent(self._place)
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            found = pool.map(partial(partitions, place), self._segments)
            segments: list[Partition] = [part for parts in found for part in parts]
        if not self._place.everywhere:
            segments = [Carried(part) for part in segments]
        count = self._staged.seek(0, SEEK_END) // self.survey.body_size
        return [Carried(_Staged(self, 0, count)), *segments] if count else segments

    def batches(self, rows: int = ROWS) -> Iterator[ReportBatch]:
        """Every report once, at most `rows` at a time."""
        for whole in self.partitions():
            for part in whole.cut(rows):
                yield part.load()

    def staged(self, start: int, stop: int) -> ReportBatch:
        """Some of the copies."""
        size = self.survey.body_size
        with self._reading:
            self._staged.seek(start * size)
            bodies = self._staged.read((stop - start) * size)
        return from_bodies(bodies, self.survey)


@dataclass(frozen=True, eq=False)
class _Staged:
    """Copies of staged reports."""

    snapshot: Snapshot
    start: int
    stop: int
    origin: str = ""

    @property
    def survey(self) -> Survey:
        return self.snapshot.survey

    @property
    def count(self) -> int:
        return self.stop - self.start

    def load(self) -> ReportBatch:
        return self.snapshot.staged(self.start, self.stop)

    def cut(self, rows: int) -> list[_Staged]:
        return [
            replace(self, start=self.start + low, stop=self.start + high)
            for low, high in edges(self.count, rows)
        ]
