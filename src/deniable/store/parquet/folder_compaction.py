"""Compaction of a folder store; `folder_store` describes why it can be interrupted safely."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from itertools import islice

from deniable.errors import StoreError, StoreUnavailable, UnknownSurvey
from deniable.store.compaction import Compaction, Days
from deniable.store.locations import Folder
from deniable.store.parquet import folder_files
from deniable.store.parquet.folder_files import Files, Group, StagedUpload
from deniable.survey import Survey


@dataclass
class FolderCompaction(Compaction):
    """One compaction of a folder store.

    replace_files : replaces old files with new ones atomically; see `FolderStore._replace_files`
    set_aside : sets a damaged file aside; see `FolderStore._set_aside`
    """

    folder: Folder
    replace_files: Callable[[Sequence[str], Files], None]
    set_aside: Callable[[str], None]

    @cached_property
    def _staged(self) -> dict[str, list[Group]]:
        """Survey digest, day and number of reports of each upload, by file."""
        found = {}
        for name in self.folder.names("staged"):
            try:
                found[name] = folder_files.read_groups(self.folder, name)
            except StoreUnavailable:
                raise
            except StoreError:
                self._set_aside(name)
        return found

    def _set_aside(self, name: str) -> None:
        """Set a damaged file aside, so that it does not stop this compaction and later ones."""
        self.set_aside(name)
        self.damaged += 1

    def groups(self) -> Iterable[tuple[bytes, date]]:
        """Return survey digest and day of all staged uploads whose survey is known."""
        groups = {(digest, day) for rows in self._staged.values() for digest, day, _ in rows}
        return [(digest, day) for digest, day in groups if self._is_known(digest)]

    def _is_known(self, digest: bytes) -> bool:
        """Return whether the store has the survey; otherwise `check` says so."""
        try:
            self.survey_of(digest)
        except UnknownSurvey:
            return False
        return True

    def count_staged(self, survey: Survey, days: Days) -> int:
        """Return the number of reports of these days that are staged."""
        return sum(reports for _, _, reports, _ in self._uploads(survey, days))

    def _uploads(self, survey: Survey, days: Days) -> Iterator[tuple[str, int, int, int]]:
        """Yield file, row, number of reports and bytes in memory of each staged upload."""
        first, last = days
        for name, rows in sorted(self._staged.items(), key=_first_day):
            # The first upload taken from a file brings the whole file into memory.
            size = sum(
                reports * self.survey_of(digest).body_size
                for digest, _, reports in rows
                if self._is_known(digest)
            )
            for row, (digest, upload_day, reports) in enumerate(rows):
                if digest == survey.digest and first <= upload_day <= last:
                    yield name, row, reports, size
                    size = 0

    def write_segment(self, survey: Survey, days: Days) -> int:
        """Replace staged uploads with a segment; return the number of their reports."""
        count = self.count_uploads(
            (reports, size) for _, _, reports, size in self._uploads(survey, days)
        )
        if not count:
            return 0
        chosen_rows = defaultdict(set)
        for name, row, _, _ in islice(self._uploads(survey, days), count):
            chosen_rows[name].add(row)
        chosen: list[StagedUpload] = []
        others: list[StagedUpload] = []
        for name, rows in chosen_rows.items():
            try:
                uploads = folder_files.read_staged(self.folder, name)
            except StoreUnavailable:
                raise
            except StoreError:
                self._set_aside(name)
                del self._staged[name]
                return self.write_segment(survey, days)
            for row, upload in enumerate(uploads):
                (chosen if row in rows else others).append(upload)
        bodies = b"".join(upload.bodies for upload in chosen)
        staged_files = folder_files.staged_files(others)
        new = folder_files.segment_files(survey, days[-1], bodies)
        new |= folder_files.receipt_files(chosen) | staged_files
        self.replace_files([*chosen_rows], new)
        for name in chosen_rows:
            del self._staged[name]
        rows_left = [(u.digest, u.day, u.reports) for u in others]
        self._staged |= dict.fromkeys(staged_files, rows_left)
        return sum(upload.reports for upload in chosen)


def _first_day(file: tuple[str, list[Group]]) -> date:
    """Return the first day of a staged file's uploads."""
    return min(day for _, day, _ in file[1])
