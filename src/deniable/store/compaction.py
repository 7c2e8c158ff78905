"""Compaction, as in every store: choose which staged uploads are shuffled into the next segment.

Analysts see only segments, and may compare what they see at two times. Segments therefore never
change, and each adds at least `at_least` + 1 reports of several uploads at once: a *batch*. The
last uploads of a day, which are too few for a batch, wait and join a batch of a later day. They
count as reports of that day; a segment that showed their own day would set them apart.

A subclass lists the staged uploads of its store, and replaces them with a segment atomically, so
that a process killed at any point neither loses nor duplicates reports.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date
from itertools import groupby
from operator import itemgetter

from deniable.errors import InputError
from deniable.store.base import Compacted
from deniable.survey import Survey

MAX_SEGMENT_BYTES = 1 << 24
"""A segment with this many bytes of reports is full. It is shuffled in memory, and new uploads wait
while its staged uploads are deleted."""
MAX_SEGMENT_UPLOADS = 1 << 14
"""A segment made of this many uploads is full."""

Days = tuple[date, date]
"""First and last of some days."""


@dataclass
class Compaction(ABC):
    """One compaction of a store, which the caller has locked; see `Store.compact`.

    at_least : minimum number of other reports that every upload is shuffled with
    day : current day
    survey_of : returns the survey with a digest
    """

    at_least: int
    day: date
    survey_of: Callable[[bytes], Survey]

    damaged = 0
    """Number of uploads that were found damaged and set aside."""

    def __post_init__(self) -> None:
        if self.at_least < 1:
            raise InputError(f"expected at_least to be 1 or more, got {self.at_least}")

    @abstractmethod
    def groups(self) -> Iterable[tuple[bytes, date]]:
        """Return the survey digest and the day of everything that is staged now."""

    @abstractmethod
    def write_segment(self, survey: Survey, days: Days) -> int:
        """Replace the uploads of these days that `count_uploads` selects with a segment.

        The segment belongs to the last of the days. Uploads of earlier days come first.

        Return the number of their reports, or 0 if there are too few for a segment.
        """

    @abstractmethod
    def count_staged(self, survey: Survey, days: Days) -> int:
        """Return the number of reports of these days that are staged."""

    def run(self) -> Compacted:
        """Write segments until too few reports are staged for another."""
        segments = reports = waiting = 0
        for digest, group in groupby(sorted(self.groups()), key=itemgetter(0)):
            survey, rest = self.survey_of(digest), 0
            first: date | None = None
            for _, day in group:
                # The rest of earlier days, which are over, is shuffled with this day.
                days = (day if first is None else first, day)
                while written := self.write_segment(survey, days):
                    segments, reports = segments + 1, reports + written
                staged = self.count_staged(survey, days)
                waiting += staged if first is None else staged - rest
                rest, first = staged, days[0] if staged and day < self.day else None
        return Compacted(segments, reports, waiting, self.damaged)

    def count_uploads(self, staged: Iterable[tuple[int, int]]) -> int:
        """Return how many uploads make the next segment; 0 if there are too few.

        Each upload must be shuffled with `at_least` reports of others.

        staged : number of reports and of bytes in memory of each upload, in the order in which they
            are compacted; read only until the segment is full
        """
        # The largest upload is shuffled with the fewest reports of others.
        uploads = reports = largest = size = 0
        for upload_reports, upload_size in staged:
            uploads, reports, size = uploads + 1, reports + upload_reports, size + upload_size
            largest = max(largest, upload_reports)
            full = size >= MAX_SEGMENT_BYTES or uploads >= MAX_SEGMENT_UPLOADS
            if full and reports - largest >= self.at_least:
                break
        return uploads if reports - largest >= self.at_least else 0
