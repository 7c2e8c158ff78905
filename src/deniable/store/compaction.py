"""From staged uploads to segments: which uploads make a segment, in any store.

A store supplies how its staged uploads are listed and how a segment takes their place at once, so
that a process killed at any point loses and doubles nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime

from deniable.errors import InputError
from deniable.store.base import Compacted
from deniable.survey import Survey

MAX_SEGMENT_BYTES = 1 << 24
"""A segment is closed when it has so many: it is shuffled in memory, and uploads wait while its
sources are deleted."""
MAX_SEGMENT_UPLOADS = 1 << 14
"""… or comes from this many uploads."""


@dataclass
class Compaction(ABC):
    """One run over a store, whose lock is held; see `Store.compact`."""

    at_least: int
    today: date | None
    survey_of: Callable[[bytes], Survey]

    def __post_init__(self) -> None:
        if self.at_least < 1:
            raise InputError(f"expected at_least of 1 or more, got {self.at_least}")

    @abstractmethod
    def groups(self) -> Iterable[tuple[bytes, date]]:
        """Return the survey's digest and the day of everything that is staged now."""

    @abstractmethod
    def write_segment(self, survey: Survey, day: date) -> int:
        """Replace the uploads that `choose` takes by a segment; returns the number of reports."""

    @abstractmethod
    def waiting(self, survey: Survey, day: date) -> int:
        """Return the number of reports that are staged."""

    def run(self) -> Compacted:
        """Write segment after segment, while enough is staged for one."""
        segments = reports = waiting = 0
        for digest, day in self.groups():
            survey = self.survey_of(digest)
            while written := self.write_segment(survey, day):
                segments, reports = segments + 1, reports + written
            waiting += self.waiting(survey, day)
        return Compacted(segments, reports, waiting)

    def choose(
        self,
        staged: Iterable[tuple[int, int]],
        day: date,
        smallest: Callable[[], tuple[str, int] | None],
    ) -> tuple[int, str | None]:
        """Return how many uploads make the next segment, and the segment that they join, if any.

        Each must be shuffled with `at_least` reports of others. When a day is over, no more will
        come: the rest of it hides among reports that are shuffled already.

        staged : number of reports and of bytes to hold of each upload of one survey and day, looked
            at only until a segment is full
        smallest : finds the name and the reports of the day's smallest segment
        """
        # The largest upload is shuffled with the fewest reports of others.
        uploads = reports = largest = size = 0
        for upload_reports, upload_size in staged:
            uploads, reports, size = uploads + 1, reports + upload_reports, size + upload_size
            largest = max(largest, upload_reports)
            full = size >= MAX_SEGMENT_BYTES or uploads >= MAX_SEGMENT_UPLOADS
            if full and reports - largest >= self.at_least:
                break
        if reports - largest >= self.at_least:
            return uploads, None
        today = self.today or datetime.now(UTC).date()
        joined = smallest() if uploads and day < today else None
        if joined and reports - largest + joined[1] >= self.at_least:
            return uploads, joined[0]
        return 0, None
