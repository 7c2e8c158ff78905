"""What all stores share: they know their surveys, tell uploads apart, and read by snapshots."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime
from types import TracebackType
from typing import Self

from deniable.columns import ReportBatch
from deniable.errors import InputError, UnknownSurvey
from deniable.store.base import ROWS, Outcome, Upload
from deniable.store.snapshot import Snapshot
from deniable.survey import Survey


class BaseStore(ABC):
    """The part of `store.base.Store` that does not depend on where things are kept."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._known: dict[bytes, Survey] = {}

    @abstractmethod
    def _published(self) -> Iterable[tuple[bytes, bytes]]:
        """Digest and published form of every survey kept."""

    @abstractmethod
    def snapshot(
        self, survey: Survey, *, since: date | None = None, until: date | None = None
    ) -> Snapshot:
        """The survey's reports as they are now, to be read several times."""

    @abstractmethod
    def close(self) -> None:
        """Let go of files and connections."""

    def surveys(self) -> list[Survey]:
        """Every survey kept, by name and version."""
        for digest, canonical in self._published():
            if digest not in self._known:
                self._known[digest] = Survey.from_json(canonical)
        return sorted(self._known.values(), key=lambda s: (s.name, s.version))

    def scan(
        self, survey: Survey, *, since: date | None = None, until: date | None = None,
        rows: int = ROWS,
    ) -> Iterator[ReportBatch]:  # fmt: skip
        """Every report from `since` to `until`, both included, once, at most `rows` at a time."""
        yield from self.snapshot(survey, since=since, until=until).batches(rows)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # --- for the stores --------------------------------------------------------------------------

    def _survey(self, digest: bytes) -> Survey:
        with suppress(KeyError):
            return self._known[digest]
        found = self.surveys()  # another process may have added it
        with suppress(KeyError):
            return self._known[digest]
        known = ", ".join(f"{s.name} v{s.version}" for s in found) or "none"
        raise UnknownSurvey(f"digest {digest.hex()} is none of the surveys in {self.url}: {known}")

    def _is_new(self, survey: Survey, published: Iterable[bytes]) -> bool:
        """Whether the survey is to be added to those published; its name and version must be."""
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


def tell_apart(
    receipts: Sequence[tuple[bytes, bytes]], seals: dict[bytes, bytes]
) -> tuple[list[Outcome], list[int]]:
    """What becomes of each upload, and which of them are new; `seals` are those kept, by name."""
    seals = dict(seals)
    outcomes, new = [], []
    for i, (name, seal) in enumerate(receipts):
        if name not in seals:
            seals[name] = seal
            new.append(i)
            outcomes.append(Outcome.STORED)
        else:
            same = seals[name] == seal
            outcomes.append(Outcome.REPEATED if same else Outcome.CONFLICT)
    return outcomes, new


def check_at_least(at_least: int) -> None:
    """A batch needs some company."""
    if at_least < 1:
        raise InputError(f"expected at_least of 1 or more, got {at_least}")


def this_day() -> date:
    """Today, UTC."""
    return datetime.now(UTC).date()
