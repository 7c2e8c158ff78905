"""Compaction, as in every store: choose which staged uploads are shuffled into the next segment.

A subclass lists the staged uploads of its store, and replaces them with a segment atomically, so
that a process killed at any point neither loses nor duplicates reports.
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
"""A segment with this many bytes of reports is full. It is shuffled in memory, and new uploads wait
while its staged uploads are deleted."""
MAX_SEGMENT_UPLOADS = 1 << 14
"""A segment made of this many uploads is full."""


@dataclass
class Compaction(ABC):
    """One compaction of a store, which the caller has locked; see `Store.compact`.

    at_least : minimum number of other reports that every upload is shuffled with
    today : current day; None for today in UTC
    survey_of : returns the survey with a digest
    """

    at_least: int
    today: date | None
    survey_of: Callable[[bytes], Survey]

    def __post_init__(self) -> None:
        if self.at_least < 1:
            raise InputError(f"expected at_least to be 1 or more, got {self.at_least}")

    @abstractmethod
    def groups(self) -> Iterable[tuple[bytes, date]]:
        """Return the survey digest and the day of everything that is staged now."""

    @abstractmethod
    def write_segment(self, survey: Survey, day: date) -> int:
        """Replace the uploads that `choose_uploads` selects with a segment.

        Return the number of their reports, or 0 if there are too few for a segment.
        """

    @abstractmethod
    def count_staged(self, survey: Survey, day: date) -> int:
        """Return the number of reports that are staged."""

    def run(self) -> Compacted:
        """Write segments until too few reports are staged for another."""
        segments = reports = waiting = 0
        for digest, day in self.groups():
            survey = self.survey_of(digest)
            while written := self.write_segment(survey, day):
                segments, reports = segments + 1, reports + written
            waiting += self.count_staged(survey, day)
        return Compacted(segments, reports, waiting)

    def choose_uploads(
        self,
        staged: Iterable[tuple[int, int]],
        day: date,
        find_smallest_segment: Callable[[], tuple[str, int] | None],
    ) -> tuple[int, str | None]:
        """Return how many uploads make the next segment, and the segment they are merged with.

        Each upload must be shuffled with `at_least` reports of others. Once a day is over, no more
        uploads will arrive: those that are left are merged with an existing segment of that day.

        staged : number of reports and of bytes in memory of each upload of one survey and day; read
            only until the segment is full
        find_smallest_segment : returns name and number of reports of the day's smallest segment
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
        segment = find_smallest_segment() if uploads and day < today else None
        if segment and reports - largest + segment[1] >= self.at_least:
            return uploads, segment[0]
        return 0, None
