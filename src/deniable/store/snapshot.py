"""A survey's reports as they were at one moment, to be read any number of times.

An analysis reads its reports several times, and must see the same ones each time while a collector
goes on adding. Segments never change, so their names will do. What is staged may be compacted at
any moment, so it is copied, in an order drawn anew: a snapshot does not say which reports came
together. Copies above 64 MiB go to a temporary file without a name.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator
from datetime import date
from tempfile import SpooledTemporaryFile
from threading import Lock
from typing import IO

from deniable.columns import ReportBatch
from deniable.columns.wire import from_bodies
from deniable.store.base import ROWS
from deniable.store.places import Place
from deniable.store.segments import read, shuffled
from deniable.survey import Survey

IN_MEMORY = 1 << 26


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

    def batches(self, rows: int = ROWS) -> Iterator[ReportBatch]:
        """Every report once, at most `rows` at a time."""
        at, size = 0, rows * self.survey.body_size
        while True:
            with self._reading:
                self._staged.seek(at)
                bodies = self._staged.read(size)
            if not bodies:
                break
            yield from_bodies(bodies, self.survey)
            at += len(bodies)
        for name in self._segments:
            yield from read(self._place, name, rows)
