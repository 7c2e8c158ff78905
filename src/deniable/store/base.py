"""What every store keeps and promises; `open` finds the store that a URL names.

An upload is *staged* as it came: one row a batch. That is for a short time only, since a batch says
which reports came together. `compact` splits the batches of a survey and a day, shuffles their
reports together and keeps them as *segments*. `scan` reads both, every report once.

Time is the day and nothing finer. Nothing is kept of who sent a report.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self

from deniable.errors import InputError, StoreError
from deniable.survey import Survey
from deniable.survey.survey import DIGEST_SIZE

if TYPE_CHECKING:
    from types import TracebackType

    from deniable.columns import ReportBatch
    from deniable.store.snapshot import Snapshot

KEY_SIZE = 16
ROWS = 1 << 18
AT_LEAST = 1000
KEYS_KEPT_DAYS = 7
"""How long an idempotency key is remembered, unless the operator says otherwise."""


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
        for name, size in (("key", KEY_SIZE), ("digest", DIGEST_SIZE), ("fingerprint", KEY_SIZE)):
            if len(getattr(self, name)) != size:
                raise InputError(
                    f"expected a {name} of {size} bytes, got {len(getattr(self, name))}"
                )
        if self.reports < 1 or not self.bodies or len(self.bodies) % self.reports:
            raise InputError(
                f"expected at least one report, bodies of equal length; got {self.reports} reports "
                f"in {len(self.bodies)} bytes"
            )

    @property
    def receipt(self) -> tuple[bytes, bytes]:
        """What is kept to know the upload again: a name and a seal, 16 bytes each.

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


@dataclass(frozen=True)
class Compacted:
    """What a compaction did: segments written, reports in them, reports that still wait staged."""

    segments: int
    reports: int
    waiting: int


class Store(Protocol):
    """Keeps reports. Any thread may call any method.

    Errors are StoreError and its kinds: StoreFull when no room is left, StoreUnavailable when
    trying again later may help.
    """

    url: str

    def append(self, uploads: Sequence[Upload]) -> list[Outcome]:
        """Stage all of them in one transaction, which is durable when this returns."""

    def add_survey(self, survey: Survey) -> None:
        """Keep the published survey; its reports can be appended from now on."""

    def surveys(self) -> list[Survey]:
        """Every survey kept, by name and version."""

    def days(self, survey: Survey) -> dict[date, int]:
        """The number of reports of each day that has some."""

    def scan(
        self, survey: Survey, *, since: date | None = None, until: date | None = None,
        rows: int = ROWS,
    ) -> Iterator[ReportBatch]:  # fmt: skip
        """Every report from `since` to `until`, both included, once, at most `rows` at a time.

        Their order says nothing. What happens meanwhile does not change what a scan sees.
        """

    def snapshot(
        self, survey: Survey, *, since: date | None = None, until: date | None = None
    ) -> Snapshot:
        """The same reports, to be read several times."""

    def compact(self, *, at_least: int = AT_LEAST, today: date | None = None) -> Compacted:
        """Shuffle what is staged into segments, and delete it from staging for good.

        A batch is taken when at least `at_least` reports of other uploads of the same survey and
        day are shuffled with it. What is left of a day before `today` (UTC unless given) joins a
        segment of that day, if there is one. A process killed at any point loses and doubles
        nothing.
        """

    def delete(self, survey: Survey, *, before: date | None = None) -> int:
        """Delete the survey's reports, of all days or of those before one; says how many."""

    def forget(self, before: date) -> int:
        """Forget the idempotency keys of uploads before that day; says how many."""

    def check(self) -> list[str]:
        """Everything that is wrong with the store: none, if all is well."""

    def backup(self, to: str | Path) -> None:
        """Make a copy that is a store of its own, while this one goes on working."""

    def room(self) -> int | None:
        """Bytes left where the store writes; None if it cannot know."""

    def close(self) -> None:
        """Let go of files and connections."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


def is_url(text: str | Path) -> bool:
    """Whether this names a store, and not a file of reports."""
    text = str(text)
    return "://" in text or text.partition("?")[0].endswith(".db") or Path(text).is_dir()


def open(url: str | Path, *, create: bool = False) -> Store:
    """The store that the URL names; it must exist, unless `create`.

    `sqlite:///FILE.db` or a path that ends in `.db`; `postgresql://…`; else a folder of Parquet
    files, as a path or as a URL that fsspec knows. The first two take `?segments=URL`.
    """
    text = str(url)
    if text.startswith(("postgresql:", "postgres:")):
        try:
            from deniable.store.sql.postgres import PostgresStore
        except ModuleNotFoundError as error:
            raise StoreError(
                f"PostgreSQL needs {error.name}: pip install 'deniable[postgres]'"
            ) from None
        return PostgresStore(text, create=create)
    if text.startswith("sqlite:") or text.partition("?")[0].endswith(".db"):
        from deniable.store.sql.sqlite import SqliteStore

        return SqliteStore(text, create=create)
    if "://" not in text and Path(text).suffix and not Path(text).is_dir():
        raise InputError(f"expected FILE.db, postgresql://… or a folder, no other file; got {text}")
    from deniable.store.parquet.folder_store import FolderStore

    return FolderStore(text, create=create)
