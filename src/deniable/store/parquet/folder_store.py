"""A store in a folder of Parquet files, local or at an fsspec URL, for bulk imports.

    store.json                          format, calendar, and files that are not part of the store
    surveys/DIGEST.json                 published surveys
    staged/NAME.parquet                 uploads of one `append`
    segments/SURVEY/DAY/N-NAME.parquet  N shuffled reports
    keys/DAY/N-NAME.parquet             names and seals of N compacted uploads
    damaged/DAY/KIND-NAME.parquet       a damaged file from staged/ or keys/, set aside on that day

Every file is part of the store unless store.json lists it as *loose*. An append therefore writes
one file. Every other change writes store.json twice: first with the new files as loose, before they
are written, then with the old files as loose, before they are deleted. A process killed at any
point neither loses nor duplicates reports.

Processes that write take turns, by a lock: see `LocalFolder` and `RemoteFolder`. Idempotency keys
are held in memory. A scan must be started again if a compaction replaces one of its segments.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from pathlib import Path
from threading import RLock
from typing import TypeVar

from deniable.errors import DeniableError, StoreError, StoreUnavailable
from deniable.formatting import counted
from deniable.store.base import Compacted, Outcome, Store, Upload, classify
from deniable.store.calendar import Calendar
from deniable.store.locations import folder
from deniable.store.parquet import folder_files
from deniable.store.parquet.folder_compaction import FolderCompaction
from deniable.store.parquet.folder_files import (
    Files,
    Group,
    StagedUpload,
    count_of,
    day_of,
    sha256_of,
)
from deniable.store.parquet.folder_manifest import MANIFEST, Manifest
from deniable.store.segments import check_segment, survey_folder
from deniable.store.snapshot import Snapshot
from deniable.survey import Survey

T = TypeVar("T")
MAX_READ_ATTEMPTS = 10
"""How often a read is repeated because the store changed meanwhile."""


class FolderStore(Store):
    """A store in a folder of Parquet files."""

    def __init__(self, url: str, *, create: bool = False) -> None:
        self._folder = folder(url)
        super().__init__(self._folder.url)
        self._lock = RLock()
        self._seals: dict[bytes, bytes] = {}
        self._files_read: set[str] = set()
        self._groups: dict[str, list[Group]] = {}
        """What is in each staged file that was read; files never change."""
        try:
            self._manifest()
        except StoreError as error:
            if not isinstance(error.__cause__, FileNotFoundError):
                raise  # never replace the manifest of a store that cannot be read
            if not create:
                raise StoreError(
                    f"there is no store at {url}: expected FILE.db, postgresql://… or a folder "
                    "that deniable import made"
                ) from None
            if not self._folder.is_empty():
                raise StoreError(
                    f"{url} is not a store, and it is not empty: choose another folder"
                ) from None
            self._folder.put(
                MANIFEST, Manifest(calendar=Calendar.starting(None).to_text()).to_bytes()
            )

    def close(self) -> None:
        """Do nothing: no file stays open."""

    # --- manifest and files ----------------------------------------------------------------------

    def _manifest(self) -> Manifest:
        """Read store.json."""
        return Manifest.from_bytes(self._folder.get(MANIFEST), self.url)

    def _write_manifest(self, **changed: object) -> None:
        """Write store.json with these changes."""
        now = self._manifest()
        new = replace(now, generation=now.generation + 1, **changed)  # type: ignore[arg-type]
        self._folder.put(MANIFEST, new.to_bytes())

    def _names(self, kind: str) -> list[str]:
        """Return the files below a folder that are part of the store."""
        loose = set(self._manifest().loose)
        return [name for name in self._folder.names(kind) if name not in loose]

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        """Lock out other writers, and delete loose files that a killed one left behind."""
        with self._lock, self._folder.exclusive():
            if loose := self._manifest().loose:
                self._delete_loose(loose)
            yield

    def _delete_loose(self, names: Iterable[str]) -> None:
        """Delete the loose files, then forget that they were loose."""
        self._folder.remove(*names)
        self._write_manifest(loose=())

    def _replace_files(self, old: Sequence[str], new: Files) -> None:
        """Replace old files with new ones, atomically for every reader."""
        if not old and not new:
            return
        self._write_manifest(loose=tuple(new))
        for name, (data, day) in new.items():
            self._folder.put(name, data, day)
        self._write_manifest(loose=tuple(old))
        self._delete_loose(old)

    def _set_aside(self, name: str) -> None:
        """Move a damaged file to where nothing reads it; the caller holds the lock."""
        kind, file = name.split("/")[0], Path(name).name
        place = f"damaged/{self._read_calendar().latest}/{kind}-{file}"
        self._replace_files([name], {place: (self._folder.get(name), None)})

    def _consistent(self, read: Callable[[], T]) -> T:
        """Return the result of a read during which nothing but appends happened."""
        for _ in range(MAX_READ_ATTEMPTS):
            before = self._manifest().generation
            try:
                result = read()
            except StoreUnavailable:
                raise
            except StoreError:
                if self._manifest().generation == before:
                    raise
                continue
            if self._manifest().generation == before:
                return result
        raise StoreUnavailable(f"{self.url} changed whenever it was read: try again later")

    def _staged(
        self, wanted: Callable[[StagedUpload], bool]
    ) -> Iterator[tuple[str, list[StagedUpload], list[StagedUpload]]]:
        """Yield each staged file with wanted uploads: its name, those uploads, and its others."""
        for name in self._names("staged"):
            uploads = folder_files.read_staged(self._folder, name)
            if matching := [u for u in uploads if wanted(u)]:
                yield name, matching, [u for u in uploads if not wanted(u)]

    # --- uploads and surveys ---------------------------------------------------------------------

    def append(self, uploads: Sequence[Upload]) -> list[Outcome]:
        """Stage uploads in one file, which is durable when this method returns."""
        self._check_uploads(uploads)
        with self._exclusive():
            self._load_new_seals()
            outcomes, new = classify(uploads, self._seals)
            files = folder_files.staged_files([StagedUpload.of(upload) for upload in new])
            for name, (data, _) in files.items():
                self._folder.put(name, data)
                self._seals.update(upload.receipt for upload in new)
                self._files_read.add(name)
        return outcomes

    def _load_new_seals(self) -> None:
        """Read names and seals from files that this process has not read yet."""
        for name in self._names("staged") + self._names("keys"):
            if name in self._files_read:
                continue
            try:
                self._seals.update(folder_files.read_receipts(self._folder, name))
                self._files_read.add(name)
            except StoreUnavailable:
                raise
            except StoreError:
                self._set_aside(name)

    def _forget(self, before: date) -> int:
        with self._exclusive():
            old = [name for name in self._names("keys") if day_of(name) < before]
            forgotten = sum(map(count_of, old))
            new: Files = {}
            for name, late, others in self._staged(lambda u: u.day < before and u.name is not None):
                anonymous = [replace(u, name=None, seal=None) for u in late]
                new |= folder_files.staged_files([*anonymous, *others])
                old.append(name)
                forgotten += len(late)
            self._replace_files(old, new)
            self._seals.clear()
            self._files_read.clear()
        return forgotten

    def _add_survey(self, survey: Survey) -> None:
        with self._exclusive():
            if self._is_new(survey, (canonical for _, canonical in self._published())):
                self._folder.put(f"surveys/{survey.digest.hex()}.json", survey.canonical + b"\n")
        self._known[survey.digest] = survey

    def _published(self) -> Iterable[tuple[bytes, bytes]]:
        """Yield the digest and canonical JSON of every survey in the store."""
        for name in self._folder.names("surveys"):
            digest = bytes.fromhex(Path(name).stem)
            yield digest, self._folder.get(name).removesuffix(b"\n")

    # --- reading ---------------------------------------------------------------------------------

    def _days(self, survey: Survey, compacted_only: bool) -> dict[date, int]:
        self._survey(survey.digest)
        return self._consistent(lambda: self._counts(survey, compacted_only))

    def _counts(self, survey: Survey, compacted_only: bool) -> dict[date, int]:
        """Count reports per day, while the store may change."""
        days: Counter[date] = Counter()
        for name in self._segments(survey):
            days[day_of(name)] += count_of(name)
        for name in () if compacted_only else self._names("staged"):
            for digest, day, reports in self._groups_in(name):
                if digest == survey.digest:
                    days[day] += reports
        return dict(sorted(days.items()))

    def _groups_in(self, name: str) -> list[Group]:
        """Return survey digest, day and number of reports of each upload in a staged file."""
        if name not in self._groups:
            self._groups[name] = folder_files.read_groups(self._folder, name)
        return self._groups[name]

    def _segments(self, survey: Survey) -> list[str]:
        """Return the names of the survey's segments."""
        return self._names(folder_files.segments_folder(survey))

    def _snapshot(self, survey: Survey, first: date, last: date, compacted_only: bool) -> Snapshot:
        self._survey(survey.digest)

        def take() -> Snapshot:
            counts = self._counts(survey, compacted_only).items()
            days = {day: count for day, count in counts if first <= day <= last}
            segments = [name for name in self._segments(survey) if first <= day_of(name) <= last]
            matching = self._staged(lambda u: u.digest == survey.digest and first <= u.day <= last)
            staged = (upload.bodies for _, uploads, _ in matching for upload in uploads)
            read = () if compacted_only else staged
            return Snapshot(survey, days, self._folder, segments, read)

        return self._consistent(take)

    # --- maintenance -----------------------------------------------------------------------------

    def _compact(self, at_least: int, today: date) -> Compacted:
        with self._exclusive():
            rule = (at_least, today, self._survey)
            files = (self._folder, self._replace_files, self._set_aside)
            self._groups.clear()
            return FolderCompaction(*rule, *files).run()

    def _delete(self, survey: Survey, before: date) -> int:
        self._survey(survey.digest)
        digest, end = survey.digest, before
        with self._exclusive():
            old = [name for name in self._segments(survey) if day_of(name) < end]
            deleted = sum(map(count_of, old))
            new: Files = {}
            for name, gone, others in self._staged(lambda u: u.digest == digest and u.day < end):
                new |= folder_files.staged_files(others) | folder_files.receipt_files(gone)
                old.append(name)
                deleted += sum(u.reports for u in gone)
            self._replace_files(old, new)
        return deleted

    def check(self) -> list[str]:
        """Read everything and return what is wrong with the store, one sentence per problem."""
        problems: list[str] = []
        with self._exclusive():
            folders = {survey_folder(survey): survey for survey in self.surveys()}
            for name in self._names("segments"):
                survey = folders.get(name.split("/")[1])
                hashed = count_of(name), sha256_of(name)
                problems += check_segment(self._folder, name, survey, *hashed)
            for name in self._names("staged"):
                try:
                    uploads = folder_files.read_staged(self._folder, name)
                except DeniableError as error:
                    problems.append(str(error))
                    continue
                sizes = ((u.digest, u.reports, len(u.bodies)) for u in uploads)
                problems += [f"{name}: {problem}" for problem in self._check_staged(sizes)]
            for name in self._names("keys"):
                try:
                    folder_files.read_receipts(self._folder, name)
                except DeniableError as error:
                    problems.append(str(error))
        return [*problems, *self._check_calendar(), *self.damage()]

    def damage(self) -> list[str]:
        """Return which damaged files were set aside, one sentence each."""
        return [
            f"the damaged file {Path(name).name} was set aside on {day_of(name)}{_loss(name)}: "
            "restore the store from a backup, or run deniable store accept STORE --damage, which "
            "deletes it"
            for name in self._names("damaged")
        ]

    def accept_damage(self) -> list[str]:
        """Delete damaged files that were set aside."""
        with self._exclusive():
            accepted = self.damage()
            self._replace_files(self._names("damaged"), {})
        return accepted

    def _delete_damaged(self, before: date) -> int:
        with self._exclusive():
            old = [name for name in self._names("damaged") if day_of(name) < before]
            self._replace_files(old, {})
        return len(old)

    def unlock(self) -> bool:
        """Remove the lock of a process that was killed."""
        return self._folder.unlock()

    def _read_calendar(self) -> Calendar:
        if text := self._manifest().calendar:
            return Calendar.from_text(text)
        # An earlier version wrote the store: the latest day is in the names of its files.
        days = [day_of(name) for kind in ("segments", "keys") for name in self._names(kind)]
        for name in self._names("staged"):
            try:
                days += [day for _, day, _ in self._groups_in(name)]
            except StoreUnavailable:
                raise
            except StoreError:
                continue  # it will be set aside, which needs the calendar
        return Calendar.starting(max(days, default=None))

    def _write_calendar(self, calendar: Calendar) -> None:
        with self._exclusive():
            self._write_manifest(calendar=calendar.to_text())

    def backup(self, to: str | Path) -> None:
        """Copy every file to a new folder, store.json last."""
        target = folder(str(to))
        if target.names(""):
            raise StoreError(f"expected an empty folder for the backup: {target.url} has files")
        with self._exclusive():
            for name in self._folder.names(""):
                if name != MANIFEST:
                    content = self._folder.get(name)
                    if not name.startswith("damaged/"):
                        folder_files.check_hash(name, content)
                    target.put(name, content)
            target.put(MANIFEST, self._folder.get(MANIFEST))

    def room(self) -> int | None:
        """Return the free bytes of the folder's disk, or None for a remote folder."""
        return self._folder.room()


def _loss(name: str) -> str:
    """Return what is lost with a damaged file: the reports of uploads, or only their keys."""
    kind, _, file = Path(name).name.partition("-")
    if kind != "keys":
        return " and is not counted"
    return f", and repeats of {counted(count_of(file), 'upload')} would be counted again"
