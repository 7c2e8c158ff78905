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
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from threading import RLock

from deniable.errors import DeniableError, StoreError, StoreUnavailable
from deniable.store.base import AT_LEAST, Compacted, Outcome, Upload
from deniable.store.base_store import BaseStore, check_at_least, tell_apart, this_day
from deniable.store.parquet.folder_compaction import (
    Files,
    FolderCompaction,
    count_of,
    day_of,
    key_files,
    staged_files,
)  # fmt: skip
from deniable.store.parquet.staged_files import Staged, read_counts, read_receipts, read_staged
from deniable.store.places import folder
from deniable.store.segments import folder_of, read
from deniable.store.snapshot import Snapshot
from deniable.store.sql.sessions import T
from deniable.survey import Survey

FORMAT = "deniable-store/1"
MANIFEST = "store.json"
TRIES = 10


class FolderStore(BaseStore):
    """See `store.base.Store`."""

    def __init__(self, url: str, *, create: bool = False) -> None:
        self._folder = folder(url)
        super().__init__(self._folder.url)
        self._lock = RLock()
        self._seals: dict[bytes, bytes] = {}
        self._read_already: set[str] = set()
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
        """How often it changed, and the loose files."""
        data = json.loads(self._folder.get(MANIFEST))
        if data.get("format") != FORMAT:
            raise StoreError(
                f"{self.url} has format {data.get('format')!r}, this release knows {FORMAT!r}: "
                "update deniable"
            )
        return int(data["generation"]), list(data["loose"])

    def _note(self, loose: Sequence[str], generation: int | None = None) -> None:
        if generation is None:
            generation = self._manifest()[0] + 1
        content = {"format": FORMAT, "generation": generation, "loose": sorted(loose)}
        self._folder.put(MANIFEST, json.dumps(content).encode())

    def _names(self, kind: str) -> list[str]:
        """The files of this kind that are part of the store."""
        loose = set(self._manifest()[1])
        return [name for name in self._folder.names(kind) if name not in loose]

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """The only one to write; what a killed one left is removed."""
        with self._lock, self._folder.alone():
            if loose := self._manifest()[1]:
                self._sweep(loose)
            yield

    def _sweep(self, names: Iterable[str]) -> None:
        for name in names:
            self._folder.remove(name)
        self._note([])

    def _swap(self, old: Sequence[str], new: Mapping[str, tuple[bytes, date | None]]) -> None:
        """Put new files in the place of old ones, at once as far as anyone can see."""
        if not old and not new:
            return
        self._note(list(new))
        for name, (data, day) in new.items():
            self._folder.put(name, data, day)
        self._note(old)
        self._sweep(old)

    def _unchanged(self, look: Callable[[], T]) -> T:
        """What is seen while nothing but appends happens."""
        for _ in range(TRIES):
            before, _ = self._manifest()
            try:
                found = look()
            except StoreUnavailable:
                raise
            except StoreError:
                if self._manifest()[0] == before:
                    raise
                continue
            if self._manifest()[0] == before:
                return found
        raise StoreUnavailable(f"{self.url} is being changed all the time: try again later")

    # --- uploads and surveys ---------------------------------------------------------------------

    def append(self, uploads: Sequence[Upload]) -> list[Outcome]:
        """Stage all of them in one file, which is durable when this returns."""
        self._check_uploads(uploads)
        staged = [Staged.of(upload) for upload in uploads]
        with self._alone():
            self._learn_seals()
            outcomes, new = tell_apart([upload.receipt for upload in uploads], self._seals)
            if new:
                for name, (data, _) in staged_files([staged[i] for i in new]).items():
                    self._folder.put(name, data)
                self._learn_seals()
        return outcomes

    def _learn_seals(self) -> None:
        """Read the names and seals of files that came since; this process or another wrote them."""
        for name in self._names("staged") + self._names("keys"):
            if name not in self._read_already:
                self._seals.update(read_receipts(self._folder, name))
                self._read_already.add(name)

    def forget(self, before: date) -> int:
        """Forget the idempotency keys of uploads before that day; says how many."""
        with self._alone():
            old = [name for name in self._names("keys") if day_of(name) < before]
            forgotten = sum(map(count_of, old))
            new: Files = {}
            for name in self._names("staged"):
                uploads = read_staged(self._folder, name)
                late = sum(u.day < before and u.name is not None for u in uploads)
                if late:
                    new |= staged_files([u.forgotten() if u.day < before else u for u in uploads])
                    old.append(name)
                    forgotten += late
            self._swap(old, new)
            self._seals.clear()
            self._read_already.clear()
        return forgotten

    def add_survey(self, survey: Survey) -> None:
        """Keep the published survey; its reports can be appended from now on."""
        with self._alone():
            if self._is_new(survey, (canonical for _, canonical in self._published())):
                self._folder.put(f"surveys/{survey.digest.hex()}.json", survey.canonical + b"\n")
        self._known[survey.digest] = survey

    def _published(self) -> Iterable[tuple[bytes, bytes]]:
        for name in self._folder.names("surveys"):
            digest = bytes.fromhex(Path(name).stem)
            yield digest, self._folder.get(name).removesuffix(b"\n")

    # --- reading ---------------------------------------------------------------------------------

    def days(self, survey: Survey) -> dict[date, int]:
        """The number of reports of each day that has some."""
        self._survey(survey.digest)
        return self._unchanged(lambda: self._days(survey, date.min, date.max))

    def _days(self, survey: Survey, first: date, last: date) -> dict[date, int]:
        found: dict[date, int] = defaultdict(int)
        for name in self._segments(survey):
            found[day_of(name)] += count_of(name)
        for name in self._names("staged"):
            for digest, day, reports in read_counts(self._folder, name):
                if digest == survey.digest:
                    found[day] += reports
        return {day: found[day] for day in sorted(found) if first <= day <= last}

    def _segments(self, survey: Survey) -> list[str]:
        return self._names(f"segments/{folder_of(survey)}")

    def snapshot(
        self, survey: Survey, *, since: date | None = None, until: date | None = None
    ) -> Snapshot:
        """The survey's reports as they are now, to be read several times."""
        self._survey(survey.digest)
        first, last = since or date.min, until or date.max

        def bodies(names: Iterable[str]) -> Iterator[bytes]:
            for name in names:
                for upload in read_staged(self._folder, name):
                    if upload.digest == survey.digest and first <= upload.day <= last:
                        yield upload.bodies

        def take() -> Snapshot:
            found = Snapshot(survey, self._folder, self._days(survey, first, last))
            chosen = [name for name in self._segments(survey) if first <= day_of(name) <= last]
            return found.take(chosen, bodies(self._names("staged")))

        return self._unchanged(take)

    # --- keeping house ---------------------------------------------------------------------------

    def compact(self, *, at_least: int = AT_LEAST, today: date | None = None) -> Compacted:
        """Shuffle what is staged into segments, and delete it from staging for good."""
        check_at_least(at_least)
        with self._alone():
            compaction = FolderCompaction(self._folder, self._survey, at_least, self._swap)
            for name in self._names("staged"):
                compaction.take(name)
            compaction.compact()
            compaction.join(self._names("segments"), today or this_day())
        return compaction.done()

    def delete(self, survey: Survey, *, before: date | None = None) -> int:
        """Delete the survey's reports, of all days or of those before one; says how many."""
        self._survey(survey.digest)
        end = before or date.max
        with self._alone():
            old = [name for name in self._segments(survey) if day_of(name) < end]
            deleted = sum(map(count_of, old))
            new: Files = {}
            for name in self._names("staged"):
                uploads = read_staged(self._folder, name)
                gone = [u for u in uploads if u.digest == survey.digest and u.day < end]
                if gone:
                    kept = [u for u in uploads if u.digest != survey.digest or u.day >= end]
                    new |= staged_files(kept) | key_files(gone)
                    old.append(name)
                    deleted += sum(u.reports for u in gone)
            self._swap(old, new)
        return deleted

    def check(self) -> list[str]:
        """Everything that is wrong with the store: none, if all is well."""
        found: list[str] = []
        with self._alone():
            folders = {folder_of(survey): survey for survey in self.surveys()}
            for name in self._names("segments"):
                found += self._check_segment(name, folders.get(name.split("/")[1]))
            for name in self._names("staged"):
                try:
                    for upload in read_staged(self._folder, name):
                        size = self._survey(upload.digest).body_size * upload.reports
                        if len(upload.bodies) != size:
                            found.append(
                                f"{name}: expected {size} bytes for {upload.reports} reports, got "
                                f"{len(upload.bodies)}"
                            )
                except DeniableError as error:
                    found.append(str(error))
        return found

    def _check_segment(self, name: str, survey: Survey | None) -> list[str]:
        if survey is None:
            return [f"{name} is of a survey that is not kept"]
        try:
            batches = list(read(self._folder, name))
        except DeniableError as error:
            return [str(error)]
        if any(batch.survey != survey for batch in batches):
            return [f"{name} is of another survey than {survey!r}"]
        if (found := sum(map(len, batches))) != count_of(name):
            return [f"{name}: expected {count_of(name)} reports, got {found}"]
        return []

    def backup(self, to: str | Path) -> None:
        """Copy every file to a new folder; its store.json comes last."""
        target = folder(str(to))
        if target.names(""):
            raise StoreError(f"expected an empty folder for the backup, got {target.url}")
        with self._alone():
            for name in self._folder.names(""):
                if name != MANIFEST:
                    target.put(name, self._folder.get(name))
            target.put(MANIFEST, self._folder.get(MANIFEST))

    def room(self) -> int | None:
        """Bytes left on the folder's disk; None for others."""
        return self._folder.room()
