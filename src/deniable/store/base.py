"""What every store keeps and promises.

An upload is *staged* as it came: one row per batch. That is for a short time only, since a batch
says which reports came together. `compact` splits the batches of a survey and a day, shuffles their
reports together and keeps them as *segments*. `scan` reads both, every report once.

Time is the day and nothing finer. Nothing is kept of who sent a report.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Self

from deniable.errors import InputError, UnknownSurvey
from deniable.survey import Survey
from deniable.survey.survey import DIGEST_SIZE

if TYPE_CHECKING:
    from deniable.columns import ReportBatch
    from deniable.store.snapshot import Snapshot

ROWS = 1 << 18
AT_LEAST = 1000
KEY_SIZE = 16


@dataclass(frozen=True)
class Upload:
    """What one request brought, already validated.

    key : 16 random bytes, the same when the upload is tried again; digest : of the survey;
    bodies : the reports' bodies one after another; fingerprint : 16 bytes, SHA-256 of the upload
    """

    key: bytes
    digest: bytes
    reports: int
    bodies: bytes
    day: date
    fingerprint: bytes

    def __post_init__(self) -> None:
        sizes = {"key": KEY_SIZE, "digest": DIGEST_SIZE, "fingerprint": KEY_SIZE}
        for name, size in sizes.items():
            if (got := len(vars(self)[name])) != size:
                raise InputError(f"expected a {name} of {size} bytes, got {got}")
        if self.reports < 1 or not self.bodies or len(self.bodies) % self.reports:
            raise InputError(
                f"expected at least one report, bodies of equal length; got {self.reports} reports "
                f"in {len(self.bodies)} bytes"
            )

    @property
    def receipt(self) -> tuple[bytes, bytes]:
        """What is kept to recognise the upload: a name and a seal, 16 bytes each.

        Both are keyed by the idempotency key, which is not kept: whoever reads the store cannot
        try which reports, once shuffled, make up the batch that a seal belongs to.
        """
        name = hashlib.sha256(b"deniable/upload/name" + self.key).digest()
        seal = hashlib.sha256(b"deniable/upload/seal" + self.key + self.digest + self.fingerprint)
        return name[:KEY_SIZE], seal.digest()[:KEY_SIZE]


class Outcome(Enum):
    """What became of an upload."""

    STORED = "stored"
    REPEATED = "repeated"
    """The same upload was stored before: nothing was added, and all is well."""
    CONFLICT = "conflict"
    """Another upload was stored under this key: nothing was added."""


def tell_apart(
    receipts: Sequence[tuple[bytes, bytes]], seals: dict[bytes, bytes]
) -> tuple[list[Outcome], list[int]]:
    """Return the outcome of each upload and the indices of the new ones.

    seals : the seals that the store keeps, by name
    """
    seals = dict(seals)
    outcomes, new = [], []
    for i, (name, seal) in enumerate(receipts):
        if name not in seals:
            seals[name] = seal
            new.append(i)
            outcomes.append(Outcome.STORED)
        else:
            outcomes.append(Outcome.REPEATED if seals[name] == seal else Outcome.CONFLICT)
    return outcomes, new


@dataclass(frozen=True)
class Compacted:
    """What a compaction did: segments written, reports in them, reports that still wait staged."""

    segments: int
    reports: int
    waiting: int


class Store(ABC):
    """Keeps reports. Any thread may call any method.

    Errors are StoreError and its kinds: StoreFull when no room is left, StoreUnavailable when
    trying again later may help.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self._known: dict[bytes, Survey] = {}

    # --- uploads and surveys ---------------------------------------------------------------------

    @abstractmethod
    def append(self, uploads: Sequence[Upload]) -> list[Outcome]:
        """Stage all of them in one transaction, which is durable when this returns."""

    @abstractmethod
    def add_survey(self, survey: Survey) -> None:
        """Keep the published survey; its reports can be appended from now on."""

    def surveys(self) -> list[Survey]:
        """Return every survey kept, by name and version."""
        for digest, canonical in self._published():
            if digest not in self._known:
                self._known[digest] = Survey.from_json(canonical)
        return sorted(self._known.values(), key=lambda s: (s.name, s.version))

    # --- reading ---------------------------------------------------------------------------------

    @abstractmethod
    def days(self, survey: Survey) -> dict[date, int]:
        """Return the number of reports of each day that has some."""

    @abstractmethod
    def snapshot(
        self, survey: Survey, *, since: date | None = None, until: date | None = None
    ) -> Snapshot:
        """Return the reports from `since` to `until`, both included, to be read several times.

        What happens meanwhile does not change what a snapshot sees.
        """

    def scan(
        self,
        survey: Survey,
        *,
        since: date | None = None,
        until: date | None = None,
        rows: int = ROWS,
    ) -> Iterator[ReportBatch]:
        """Yield the same reports, each once, at most `rows` at a time; their order says nothing."""
        yield from self.snapshot(survey, since=since, until=until).batches(rows)

    # --- upkeep ----------------------------------------------------------------------------------

    @abstractmethod
    def compact(self, *, at_least: int = AT_LEAST, today: date | None = None) -> Compacted:
        """Shuffle what is staged into segments, and delete it from staging for good.

        A batch is taken when at least `at_least` reports of other uploads of the same survey and
        day are shuffled with it. What is left of a day before `today` (UTC unless given) joins a
        segment of that day, if there is one. A process killed at any point loses and doubles
        nothing.
        """

    @abstractmethod
    def delete(self, survey: Survey, *, before: date | None = None) -> int:
        """Delete the survey's reports, of all days or of those before one; returns how many."""

    @abstractmethod
    def forget(self, before: date) -> int:
        """Forget the idempotency keys of uploads before that day; returns how many."""

    @abstractmethod
    def check(self) -> list[str]:
        """Return everything that is wrong with the store: none, if all is well."""

    @abstractmethod
    def backup(self, to: str | Path) -> None:
        """Make a copy that is a store of its own, while this one goes on working."""

    def room(self) -> int | None:
        """Return the bytes left where the store writes; None if it cannot know."""
        return None

    @abstractmethod
    def close(self) -> None:
        """Let go of files and connections."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- for the stores --------------------------------------------------------------------------

    @abstractmethod
    def _published(self) -> Iterable[tuple[bytes, bytes]]:
        """Return digest and published form of every survey kept."""

    def _survey(self, digest: bytes) -> Survey:
        if digest not in self._known:
            surveys = self.surveys()  # another process may have added it
            if digest not in self._known:
                known = ", ".join(f"{s.name} v{s.version}" for s in surveys) or "none"
                raise UnknownSurvey(
                    f"digest {digest.hex()} is none of the surveys in {self.url}: {known}"
                )
        return self._known[digest]

    def _is_new(self, survey: Survey, published: Iterable[bytes]) -> bool:
        """Return whether the survey must be added; raise if it has another's name and version."""
        for canonical in published:
            if canonical == survey.canonical:
                return False
            other = Survey.from_json(canonical)
            if (other.name, other.version) == (survey.name, survey.version):
                raise InputError(
                    f"{self.url} has another survey {survey.name!r} v{survey.version}, digest "
                    f"{other.digest.hex()}: give the changed survey a new version"
                )
        return True

    def _check_uploads(self, uploads: Sequence[Upload]) -> None:
        for upload in uploads:
            survey = self._survey(upload.digest)
            if len(upload.bodies) != upload.reports * survey.body_size:
                raise InputError(
                    f"expected {upload.reports * survey.body_size} bytes for {upload.reports} "
                    f"reports of {survey!r}, got {len(upload.bodies)}"
                )

    def _check_staged(self, staged: Iterable[tuple[bytes, int, int]]) -> Iterator[str]:
        """Yield what is wrong with staged uploads: (digest, reports, bytes) of each."""
        known = {survey.digest: survey for survey in self.surveys()}
        for digest, reports, size in staged:
            if digest not in known:
                yield f"an upload is of survey {digest.hex()}, which is not kept"
            elif size != reports * known[digest].body_size:
                yield (
                    f"an upload of {known[digest]!r} has {size} bytes, expected "
                    f"{reports * known[digest].body_size} for {reports} reports"
                )
