"""From the staged files of a folder store to its segments. `folder` says why it is safe."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import date

from deniable.columns.parquet import to_parquet
from deniable.columns.wire import from_bodies
from deniable.store.base import Compacted
from deniable.store.parquet.staged_files import Staged, read_staged, receipts_file, staged_file
from deniable.store.places import Place
from deniable.store.segments import (
    MOST_BYTES,
    folder_of,
    others,
    portion,
    read_bodies,
    shuffled,
)  # fmt: skip
from deniable.survey import Survey

Files = dict[str, tuple[bytes, date | None]]
"""Names, with what the files hold and the day they are of."""
Swap = Callable[[Sequence[str], Mapping[str, tuple[bytes, date | None]]], None]


def day_of(name: str) -> date:
    """The day of a segment or of a file of keys."""
    return date.fromisoformat(name.split("/")[-2])


def count_of(name: str) -> int:
    """How many reports or keys the file has."""
    return int(name.split("/")[-1].split("-")[0])


def staged_files(uploads: Sequence[Staged]) -> Files:
    """These uploads as a file of their own, if there are any."""
    if not uploads:
        return {}
    return {f"staged/{os.urandom(16).hex()}.parquet": (staged_file(uploads), None)}


def key_files(uploads: Sequence[Staged]) -> Files:
    """What is kept of uploads that are no longer staged, a file a day."""
    by_day = defaultdict(list)
    for upload in uploads:
        if upload.name is not None:
            by_day[upload.day].append(upload)
    return {
        f"keys/{day.isoformat()}/{len(some)}-{os.urandom(16).hex()}.parquet":
            (receipts_file(some), day)
        for day, some in by_day.items()
    }  # fmt: skip


def segment_file(survey: Survey, day: date, bodies: bytes) -> Files:
    """The reports, shuffled, as a segment."""
    batch = from_bodies(shuffled(bodies, survey.body_size).tobytes(), survey)
    folder = f"segments/{folder_of(survey)}/{day.isoformat()}"
    return {f"{folder}/{len(batch)}-{os.urandom(16).hex()}.parquet": (to_parquet(batch), day)}


class FolderCompaction:
    """One run: staged files are taken one after another, and swapped when they make segments."""

    def __init__(
        self, place: Place, survey_of: Callable[[bytes], Survey], at_least: int, swap: Swap
    ) -> None:
        self._place, self._survey_of = place, survey_of
        self._at_least, self._swap = at_least, swap
        self._waiting: list[Staged] = []
        self._held: list[str] = []
        """The files that those waiting are in."""
        self._segments = self._reports = 0

    def done(self) -> Compacted:
        """What was done."""
        return Compacted(self._segments, self._reports, sum(u.reports for u in self._waiting))

    def take(self, name: str) -> None:
        """Read one more file; when there is much in memory, compact it."""
        self._waiting += read_staged(self._place, name)
        self._held.append(name)
        if sum(len(u.bodies) for u in self._waiting) >= MOST_BYTES:
            self.compact()

    def _groups(self) -> dict[tuple[bytes, date], list[Staged]]:
        groups = defaultdict(list)
        for upload in self._waiting:
            groups[upload.digest, upload.day].append(upload)
        return groups

    def compact(self) -> None:
        """Make segments of those waiting, as far as they have company."""
        new: Files = {}
        taken: list[Staged] = []
        for (digest, day), group in self._groups().items():
            survey = self._survey_of(digest)
            most = MOST_BYTES // survey.body_size
            while count := portion([u.reports for u in group], self._at_least, most):
                some, group = group[:count], group[count:]
                new |= segment_file(survey, day, b"".join(u.bodies for u in some))
                taken += some
        self._put(new, taken, [])

    def join(self, segments: Sequence[str], today: date) -> None:
        """Let what is left of days that are over join a segment of its day."""
        new: Files = {}
        taken: list[Staged] = []
        old: list[str] = []
        for (digest, day), group in self._groups().items():
            survey = self._survey_of(digest)
            under = f"segments/{folder_of(survey)}/{day.isoformat()}/"
            company = [name for name in segments if name.startswith(under)]
            if day >= today or not company:
                continue
            joined = min(company, key=count_of)
            if others([u.reports for u in group]) + count_of(joined) >= self._at_least:
                bodies = [*(u.bodies for u in group), read_bodies(self._place, joined)]
                new |= segment_file(survey, day, b"".join(bodies))
                old.append(joined)
                taken += group
        self._put(new, taken, old)

    def _put(self, new: Files, taken: Sequence[Staged], old: Sequence[str]) -> None:
        if not taken:
            return
        gone = set(map(id, taken))
        self._waiting = [u for u in self._waiting if id(u) not in gone]
        self._segments += len(new)
        self._reports += sum(u.reports for u in taken)
        rest = staged_files(self._waiting)
        self._swap([*self._held, *old], {**new, **key_files(taken), **rest})
        self._held = list(rest)
