"""Snapshots: a survey's reports as they were at one moment, to be read any number of times.

An analysis reads its reports several times, and must see the same ones each time while the
collector adds more. Segments never change, so a snapshot keeps their names. Staged reports may be
compacted at any moment, so a snapshot copies them in a new random order, which does not reveal
which reports arrived together. Copies above 64 MiB go to an anonymous temporary file.
"""

from __future__ import annotations

import warnings
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
from deniable.columns.partition import LocalPartition, LocalRowGroup, Partition, RowGroup, load_all
from deniable.formatting import counted
from deniable.store.locations import Location, OpenSource, cached_source
from deniable.store.segments import partitions, shuffle_bodies
from deniable.survey import Survey

MAX_BATCH_ROWS = 1 << 18
"""Largest number of reports that `Snapshot.batches` yields at once."""
MAX_BYTES_IN_MEMORY = 1 << 26
"""Largest size of copied staged reports before they go to a temporary file."""
FOOTER_READERS = 8
"""Threads that read the footers of segments: reading from a remote location is mostly waiting."""


class Snapshot:
    """Reports of one survey in a range of days; see `Store.snapshot`.

    A store creates it within a transaction.

    days : number of reports per day, complete when `staged` has been read
    segments : names of the segments in `location`
    staged : bodies of the reports of each staged upload
    """

    def __init__(
        self,
        survey: Survey,
        days: dict[date, int],
        location: Location,
        segments: Iterable[str],
        staged: Iterable[bytes],
    ) -> None:
        self.survey = survey
        self.damage: list[str] = []
        """What is known to be damaged or lost, and therefore left out."""
        self._location, self._segments = location, list(segments)
        self._staged: IO[bytes] = SpooledTemporaryFile(max_size=MAX_BYTES_IN_MEMORY)  # noqa: SIM115
        self._reading = Lock()
        weakref.finalize(self, self._staged.close)
        group, size = [], 0
        for bodies in staged:
            group.append(bodies)
            size += len(bodies)
            if size >= MAX_BYTES_IN_MEMORY:
                self._copy_shuffled(group)
                group, size = [], 0
        self._copy_shuffled(group)
        self.days = dict(sorted(days.items()))

    def __len__(self) -> int:
        return sum(self.days.values())

    def __repr__(self) -> str:
        return f"<Snapshot of {counted(len(self), 'report')} of {self.survey!r}>"

    def warn(self) -> None:
        """Warn of what is damaged or lost."""
        for sentence in self.damage:
            warnings.warn(sentence, stacklevel=3)

    def _copy_shuffled(self, bodies: list[bytes]) -> None:
        """Append report bodies, shuffled together, to the copy of staged reports."""
        self._staged.write(shuffle_bodies(b"".join(bodies), self.survey.body_size).data)

    def partitions(self) -> list[Partition]:
        """Return partitions that together hold each report once.

        A partition of staged reports carries them along when it is sent to another process.
        """
        source: OpenSource = self._location.source
        kind = RowGroup
        if not self._location.shared:
            # Without a cache, each row group would fetch the whole file again.
            source, kind = cached_source(self._location), LocalRowGroup
        with ThreadPoolExecutor(FOOTER_READERS) as pool:
            by_segment = pool.map(partial(partitions, source, kind=kind), self._segments)
            segments: list[Partition] = [part for parts in by_segment for part in parts]
        count = self._staged.seek(0, SEEK_END) // self.survey.body_size
        return [_StagedPartition(self.survey, "", 0, count, self), *segments] if count else segments

    def batches(self, rows: int = MAX_BATCH_ROWS) -> Iterator[ReportBatch]:
        """Yield every report once, at most `rows` at a time."""
        yield from load_all(self.partitions(), rows)

    def staged(self, start: int, count: int) -> ReportBatch:
        """Return `count` of the copied staged reports, from index `start`."""
        size = self.survey.body_size
        with self._reading:
            self._staged.seek(start * size)
            return from_bodies(self._staged.read(count * size), self.survey)


@dataclass(frozen=True, eq=False)
class _StagedPartition(LocalPartition):
    """Copies of staged reports."""

    snapshot: Snapshot

    def load(self) -> ReportBatch:
        return self.snapshot.staged(self.start, self.count)
