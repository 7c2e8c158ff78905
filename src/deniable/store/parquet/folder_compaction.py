"""From the staged files of a folder store to its segments. `folder_store` says why it is safe."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from itertools import islice

from deniable.store.compaction import Compaction
from deniable.store.locations import Folder
from deniable.store.parquet import folder_files
from deniable.store.parquet.folder_files import Files, Staged, count_of
from deniable.store.segments import read_bodies
from deniable.survey import Survey


@dataclass
class FolderCompaction(Compaction):
    """One run over a folder. An upload is known by its file and its row there.

    swap : puts new files in the place of old ones, at once as far as anyone can see
    """

    folder: Folder
    swap: Callable[[Sequence[str], Files], None]

    @cached_property
    def _staged(self) -> dict[str, list[tuple[bytes, date, int]]]:
        """Survey, day and number of reports of the uploads of each file."""
        names = self.folder.names("staged")
        return {name: folder_files.read_groups(self.folder, name) for name in names}

    def groups(self) -> Iterable[tuple[bytes, date]]:
        return {(digest, day): None for rows in self._staged.values() for digest, day, _ in rows}

    def waiting(self, survey: Survey, day: date) -> int:
        return sum(reports for _, _, reports, _ in self._uploads(survey, day))

    def _uploads(self, survey: Survey, day: date) -> Iterator[tuple[str, int, int, int]]:
        """Yield file, row, number of reports and bytes to hold of each upload that is staged."""
        for name, rows in self._staged.items():
            # A file is read whole for the first upload that is taken from it.
            size = sum(reports * self.survey_of(digest).body_size for digest, _, reports in rows)
            for row, (digest, its_day, reports) in enumerate(rows):
                if (digest, its_day) == (survey.digest, day):
                    yield name, row, reports, size
                    size = 0

    def write_segment(self, survey: Survey, day: date) -> int:
        segments = f"{folder_files.segments_of(survey)}/{day.isoformat()}"

        def smallest() -> tuple[str, int] | None:
            name = min(self.folder.names(segments), key=count_of, default=None)
            return (name, count_of(name)) if name else None

        sizes = ((reports, size) for _, _, reports, size in self._uploads(survey, day))
        count, joined = self.choose(sizes, day, smallest)
        if not count:
            return 0
        rows_of = defaultdict(set)
        for name, row, _, _ in islice(self._uploads(survey, day), count):
            rows_of[name].add(row)
        taken: list[Staged] = []
        left: list[Staged] = []
        for name, rows in rows_of.items():
            for row, upload in enumerate(folder_files.read_staged(self.folder, name)):
                (taken if row in rows else left).append(upload)
        bodies = b"".join(upload.bodies for upload in taken)
        if joined:
            bodies += read_bodies(self.folder, joined)
        rest = folder_files.staged_files(left)
        new = folder_files.segment_files(survey, day, bodies)
        new |= folder_files.receipt_files(taken) | rest
        self.swap([*rows_of, *([joined] if joined else [])], new)
        for name in rows_of:
            del self._staged[name]
        self._staged |= {name: [(u.digest, u.day, u.reports) for u in left] for name in rest}
        return sum(upload.reports for upload in taken)
