"""Reports in a folder of Parquet files, local or anywhere that fsspec reaches; for bulk.

    store.json                          the format, and files that are not part of the store
    surveys/DIGEST.json                 published surveys
    staged/NAME.parquet                 what one `append` brought
    segments/SURVEY/DAY/N-NAME.parquet  N reports, shuffled
    keys/DAY/N-NAME.parquet             names and seals of N uploads that were compacted

Every file is part of the store unless store.json calls it *loose*. So an append is one file, and
other changes are two of store.json: the first calls the new files loose before they are written,
the second calls the old ones loose instead, and then they are removed. A process killed at any
point loses and doubles nothing.

One process at a time may write; on a local disk a lock sees to it. Keys are held in memory. A scan
that was under way when a compaction replaced a segment has to be started again.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from pathlib import Path
from threading import RLock
from typing import TypeVar

from deniable.errors import DeniableError, StoreError, StoreUnavailable
from deniable.store.base import AT_LEAST, Compacted, Outcome, Store, Upload, tell_apart
from deniable.store.locations import folder
from deniable.store.parquet import folder_files
from deniable.store.parquet.folder_compaction import FolderCompaction
from deniable.store.parquet.folder_files import Files, Staged, count_of, day_of
from deniable.store.segments import folder_of, problems
from deniable.store.snapshot import Snapshot
from deniable.survey import Survey

T = TypeVar("T")
FORMAT = "deniable-store/1"
MANIFEST = "store.json"
TRIES = 10


class FolderStore(Store):
    """A store in a folder of Parquet files."""

    def __init__(self, url: str, *, create: bool = False) -> None:
        self._folder = folder(url)
        super().__init__(self._folder.url)
        self._lock = RLock()
        self._seals: dict[bytes, bytes] = {}
        self._files_read: set[str] = set()
        try:
            self._manifest()
        except StoreError:
            if not create:
                raise StoreError(
                    f"there is no store at {url}: import into it; segments of a database are read "
                    "through the database"
                ) from None
            self._note([], generation=0)

    def close(self) -> None:
        """Nothing is held open."""

    # --- what is part of the store ---------------------------------------------------------------

    def _manifest(self) -> tuple[int, list[str]]:
        """Return how often it changed, and the loose files."""
        data = json.loads(self._folder.get(MANIFEST))
        if data.get("format") != FORMAT:
            raise StoreError(
                f"{self.url} has format {data.get('format')!r}, this release knows {FORMAT!r}: "
                "update deniable"
            )
        return int(data["generation"]), list(data["loose"])

    def _note(self, loose: Iterable[str], generation: int | None = None) -> None:
        if generation is None:
            generation = self._manifest()[0] + 1
        content = {"format": FORMAT, "generation": generation, "loose": sorted(loose)}
        self._folder.put(MANIFEST, json.dumps(content).encode())

    def _names(self, kind: str) -> list[str]:
        """Return the files of this kind that are part of the store."""
        loose = set(self._manifest()[1])
        return [name for name in self._folder.names(kind) if name not in loose]

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        """Be the only one to write; what a killed one left is removed."""
        with self._lock, self._folder.exclusive():
            if loose := self._manifest()[1]:
                self._sweep(loose)
            yield

    def _sweep(self, names: Iterable[str]) -> None:
        for name in names:
            self._folder.remove(name)
        self._note([])

    def _swap(self, old: Sequence[str], new: Files) -> None:
        """Put new files in the place of old ones, at once as far as anyone can see."""
        if not old and not new:
            return
        self._note(new)
        for name, (data, day) in new.items():
            self._folder.put(name, data, day)
        self._note(old)
        self._sweep(old)

    def _unchanged(self, look: Callable[[], T]) -> T:
        """Return what is seen while nothing but appends happens."""
        for _ in range(TRIES):
            before, _ = self._manifest()
            try:
                seen = look()
            except StoreUnavailable:
                raise
            except StoreError:
                if self._manifest()[0] == before:
                    raise
                continue
            if self._manifest()[0] == before:
                return seen
        raise StoreUnavailable(f"{self.url} is being changed all the time: try again later")

    def _staged(
        self, wanted: Callable[[Staged], bool]
    ) -> Iterator[tuple[str, list[Staged], list[Staged]]]:
        """Yield the staged files with any wanted upload: name, wanted uploads, other uploads."""
        for name in self._names("staged"):
            uploads = folder_files.read_staged(self._folder, name)
            if matching := [u for u in uploads if wanted(u)]:
                yield name, matching, [u for u in uploads if not wanted(u)]

    # --- uploads and surveys ---------------------------------------------------------------------

    def append(self, uploads: Sequence[Upload]) -> list[Outcome]:
        """Stage all of them in one file, which is durable when this returns."""
        self._check_uploads(uploads)
        with self._exclusive():
            self._learn_seals()
            outcomes, new = tell_apart([upload.receipt for upload in uploads], self._seals)
            files = folder_files.staged_files([Staged.of(uploads[i]) for i in new])
            for name, (data, _) in files.items():
                self._folder.put(name, data)
                self._seals.update(uploads[i].receipt for i in new)
                self._files_read.add(name)
        return outcomes

    def _learn_seals(self) -> None:
        """Read the names and seals of files that came since; this process or another wrote them."""
        for name in self._names("staged") + self._names("keys"):
            if name not in self._files_read:
                self._seals.update(folder_files.read_receipts(self._folder, name))
                self._files_read.add(name)

    def forget(self, before: date) -> int:
        """Forget the idempotency keys of uploads before that day; returns how many."""
        with self._exclusive():
            old = [name for name in self._names("keys") if day_of(name) < before]
            forgotten = sum(map(count_of, old))
            new: Files = {}
            for name, late, others in self._staged(lambda u: u.day < before and u.name is not None):
                anonymous = [replace(u, name=None, seal=None) for u in late]
                new |= folder_files.staged_files([*anonymous, *others])
                old.append(name)
                forgotten += len(late)
            self._swap(old, new)
            self._seals.clear()
            self._files_read.clear()
        return forgotten

    def add_survey(self, survey: Survey) -> None:
        """Keep the published survey; its reports can be appended from now on."""
        with self._exclusive():
            if self._is_new(survey, (canonical for _, canonical in self._published())):
                self._folder.put(f"surveys/{survey.digest.hex()}.json", survey.canonical + b"\n")
        self._known[survey.digest] = survey

    def _published(self) -> Iterable[tuple[bytes, bytes]]:
        for name in self._folder.names("surveys"):
            digest = bytes.fromhex(Path(name).stem)
            yield digest, self._folder.get(name).removesuffix(b"\n")

    # --- reading ---------------------------------------------------------------------------------

    def days(self, survey: Survey) -> dict[date, int]:
        """Return the number of reports of each day that has some."""
        self._survey(survey.digest)
        return self._unchanged(lambda: self._days(survey))

    def _days(self, survey: Survey) -> dict[date, int]:
        days: Counter[date] = Counter()
        for name in self._segments(survey):
            days[day_of(name)] += count_of(name)
        for name in self._names("staged"):
            for digest, day, reports in folder_files.read_groups(self._folder, name):
                if digest == survey.digest:
                    days[day] += reports
        return dict(sorted(days.items()))

    def _segments(self, survey: Survey) -> list[str]:
        return self._names(folder_files.segments_of(survey))

    def snapshot(
        self, survey: Survey, *, since: date | None = None, until: date | None = None
    ) -> Snapshot:
        """Return the survey's reports as they are now, to be read several times."""
        self._survey(survey.digest)
        first, last = since or date.min, until or date.max

        def take() -> Snapshot:
            counts = self._days(survey).items()
            days = {day: count for day, count in counts if first <= day <= last}
            segments = [name for name in self._segments(survey) if first <= day_of(name) <= last]
            matching = self._staged(lambda u: u.digest == survey.digest and first <= u.day <= last)
            staged = (upload.bodies for _, uploads, _ in matching for upload in uploads)
            return Snapshot(survey, days, self._folder, segments, staged)

        return self._unchanged(take)

    # --- upkeep ----------------------------------------------------------------------------------

    def compact(self, *, at_least: int = AT_LEAST, today: date | None = None) -> Compacted:
        """Shuffle what is staged into segments, and delete it from staging for good."""
        with self._exclusive():
            rule = (at_least, today, self._survey)
            return FolderCompaction(*rule, self._folder, self._swap).run()

    def delete(self, survey: Survey, *, before: date | None = None) -> int:
        """Delete the survey's reports, of all days or of those before one; returns how many."""
        self._survey(survey.digest)
        digest, end = survey.digest, before or date.max
        with self._exclusive():
            old = [name for name in self._segments(survey) if day_of(name) < end]
            deleted = sum(map(count_of, old))
            new: Files = {}
            for name, gone, others in self._staged(lambda u: u.digest == digest and u.day < end):
                new |= folder_files.staged_files(others) | folder_files.receipt_files(gone)
                old.append(name)
                deleted += sum(u.reports for u in gone)
            self._swap(old, new)
        return deleted

    def check(self) -> list[str]:
        """Return everything that is wrong with the store: none, if all is well."""
        found: list[str] = []
        with self._exclusive():
            folders = {folder_of(survey): survey for survey in self.surveys()}
            for name in self._names("segments"):
                survey = folders.get(name.split("/")[1])
                found += problems(self._folder, name, survey, count_of(name))
            for name in self._names("staged"):
                try:
                    uploads = folder_files.read_staged(self._folder, name)
                except DeniableError as error:
                    found.append(str(error))
                    continue
                sizes = ((u.digest, u.reports, len(u.bodies)) for u in uploads)
                found += [f"{name}: {problem}" for problem in self._check_staged(sizes)]
        return found

    def backup(self, to: str | Path) -> None:
        """Copy every file to a new folder; its store.json comes last."""
        target = folder(str(to))
        if target.names(""):
            raise StoreError(f"expected an empty folder for the backup, got {target.url}")
        with self._exclusive():
            for name in self._folder.names(""):
                if name != MANIFEST:
                    target.put(name, self._folder.get(name))
            target.put(MANIFEST, self._folder.get(MANIFEST))

    def room(self) -> int | None:
        """Bytes left on the folder's disk; None for others."""
        return self._folder.room()
