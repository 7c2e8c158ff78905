"""The interface of a store, and the rules that every store follows.

An upload is *staged* as it arrived: one row per batch. It stays staged only briefly, because a
batch reveals which reports arrived together. `Store.compact` splits the batches of a survey and a
day, shuffles their reports together, and writes them as *segments*. `Store.scan` reads staged and
compacted reports alike, each report once, unless it was opened for analysts, who see compacted
reports only.

The only time that a store keeps is the day. It keeps nothing about the sender of a report.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self

from deniable.arguments import Day, as_day, as_optional_day
from deniable.errors import DeniableError, InputError, StoreError, StoreUnavailable, UnknownSurvey
from deniable.store import calendar
from deniable.store.calendar import Calendar
from deniable.survey import Survey, SurveyOrPath
from deniable.survey.survey import DIGEST_SIZE

if TYPE_CHECKING:
    from deniable.columns import ReportBatch
    from deniable.store.snapshot import Snapshot

MAX_BATCH_ROWS = 1 << 18
"""Largest number of reports that `Store.scan` yields at once."""
MIN_SHUFFLED = 1000
"""Default number of other reports that every batch is shuffled with."""
KEY_SIZE = 16
"""Bytes of an idempotency key, and of the fingerprint, name and seal of an upload."""


@dataclass(frozen=True)
class Upload:
    """The reports of one request, after validation.

    Parameters
    ----------
    key : bytes
        Idempotency key: 16 random bytes, the same when the client retries the upload.
    digest : bytes
        Digest of the survey that the reports answer.
    reports : int
        Number of reports, at least 1.
    bodies : bytes
        Bodies of the reports, one after another, all of the same length.
    day : date
        Day of arrival, in UTC.
    fingerprint : bytes
        First 16 bytes of the SHA-256 of the request's body.

    Raises
    ------
    InputError
        If a field has the wrong length or there are no reports.

    Examples
    --------
    >>> from datetime import date
    >>> upload = Upload(bytes(16), bytes(16), 2, b"abcdef", date(2024, 5, 1), bytes(16))
    >>> upload.reports
    2
    """

    key: bytes
    digest: bytes
    reports: int
    bodies: bytes
    day: date
    fingerprint: bytes

    def __post_init__(self) -> None:
        for name, value, size in (
            ("key", self.key, KEY_SIZE),
            ("digest", self.digest, DIGEST_SIZE),
            ("fingerprint", self.fingerprint, KEY_SIZE),
        ):
            if len(value) != size:
                got = f"expected an upload's {name} to have {size} bytes, got {len(value)}"
                raise InputError(got)
        if self.reports < 1 or not self.bodies or len(self.bodies) % self.reports:
            raise InputError(
                f"expected one or more report bodies of equal length, got {self.reports} reports "
                f"in {len(self.bodies)} bytes"
            )

    @cached_property
    def receipt(self) -> tuple[bytes, bytes]:
        """Name and seal, 16 bytes each, by which a store recognises the upload.

        Both are hashes keyed by the idempotency key, which is not kept. A reader of the store
        therefore cannot test which of the shuffled reports make up the batch of a seal.
        """
        name = hashlib.sha256(b"deniable/upload/name" + self.key).digest()
        seal = hashlib.sha256(b"deniable/upload/seal" + self.key + self.digest + self.fingerprint)
        return name[:KEY_SIZE], seal.digest()[:KEY_SIZE]


class Outcome(Enum):
    """What a store did with an upload.

    Attributes
    ----------
    STORED : str
        The upload is new, and its reports are stored.
    REPEATED : str
        The same upload was stored before. Nothing was added, and the client gets the same answer.
    CONFLICT : str
        A different upload was stored under this key. Nothing was added.

    Examples
    --------
    >>> Outcome("repeated") is Outcome.REPEATED
    True
    """

    STORED = "stored"
    REPEATED = "repeated"
    CONFLICT = "conflict"


def classify(
    uploads: Iterable[Upload], stored_seals: dict[bytes, bytes]
) -> tuple[list[Outcome], list[Upload]]:
    """Return the outcome of each upload, and the new uploads.

    `stored_seals` holds the seals in the store, by name.
    """
    seals = dict(stored_seals)
    outcomes, new = [], []
    for upload in uploads:
        name, seal = upload.receipt
        if name not in seals:
            seals[name] = seal
            new.append(upload)
            outcomes.append(Outcome.STORED)
        else:
            outcomes.append(Outcome.REPEATED if seals[name] == seal else Outcome.CONFLICT)
    return outcomes, new


@dataclass(frozen=True)
class Compacted:
    """Counts of one compaction.

    Parameters
    ----------
    segments : int
        Number of segments written.
    reports : int
        Number of reports moved from staging into segments.
    waiting : int
        Number of reports that are still staged, because there are too few for a batch.
    damaged : int, default 0
        Number of staged uploads that were found damaged and set aside; see `Store.damage`.

    Examples
    --------
    >>> Compacted(segments=1, reports=1200, waiting=3).reports
    1200
    """

    segments: int
    reports: int
    waiting: int
    damaged: int = 0


class Store(ABC):
    """A place that keeps reports; `deniable.store.open` returns one.

    Every method may be called from any thread. Methods raise StoreError: its subclass StoreFull if
    no space is left, and StoreUnavailable if a later retry may succeed.

    Parameters
    ----------
    url : str
        Address of the store, without any password. Messages and results quote it.

    Examples
    --------
    >>> import tempfile, deniable.store
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with deniable.store.open(f"{folder}/reports.db", create=True) as store:
    ...         store.surveys()
    []
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.compacted_only = False
        """Whether `days`, `snapshot` and `scan` leave out staged reports; see `store.open`."""
        self._known: dict[bytes, Survey] = {}
        """Surveys in the store, by digest, as far as this process has read them."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.url}>"

    # --- uploads and surveys ---------------------------------------------------------------------

    @abstractmethod
    def append(self, uploads: Sequence[Upload]) -> list[Outcome]:
        """Stage uploads in one transaction, which is durable when this method returns.

        Parameters
        ----------
        uploads : sequence of Upload
            Uploads of surveys that the store has.

        Returns
        -------
        list of Outcome
            One outcome per upload, in the same order.

        Raises
        ------
        UnknownSurvey
            If the store does not have the survey of an upload.
        InputError
            If the bodies of an upload do not have the length that its survey prescribes.
        """

    def add_survey(self, survey: SurveyOrPath) -> None:
        """Add a published survey, so that its reports can be appended.

        Adding a survey that the store already has does nothing.

        Parameters
        ----------
        survey : Survey, str or Path
            Survey to add, or the path of its file.

        Raises
        ------
        InputError
            If the store has a different survey of the same name and version.
        """
        self._add_survey(Survey.of(survey))

    def surveys(self) -> list[Survey]:
        """Return every survey in the store.

        Returns
        -------
        list of Survey
            Surveys, sorted by name and version.
        """
        for digest, canonical in self._published():
            if digest not in self._known:
                self._known[digest] = self._parse_survey(digest, canonical)
        return sorted(self._known.values(), key=lambda s: (s.name, s.version))

    # --- reading ---------------------------------------------------------------------------------

    def days(self, survey: SurveyOrPath) -> dict[date, int]:
        """Return the number of reports per day.

        Parameters
        ----------
        survey : Survey, str or Path
            Survey whose reports are counted, or the path of its file.

        Returns
        -------
        dict of date to int
            Number of reports of each day that has any, in the order of the days.
        """
        return self._days(Survey.of(survey), self.compacted_only)

    def waiting(self, survey: SurveyOrPath) -> int:
        """Return the number of reports that are staged, because they wait to be shuffled.

        Parameters
        ----------
        survey : Survey, str or Path
            Survey whose reports are counted, or the path of its file.

        Returns
        -------
        int
            Number of reports that analysts of a collector do not see yet.
        """
        survey = Survey.of(survey)
        compacted, every = (self._days(survey, only).values() for only in (True, False))
        return max(0, sum(every) - sum(compacted))

    def snapshot(
        self, survey: SurveyOrPath, *, since: Day | None = None, until: Day | None = None
    ) -> Snapshot:
        """Return the survey's reports as they are now, to be read any number of times.

        Uploads and compactions that happen later do not change the snapshot.

        Parameters
        ----------
        survey : Survey, str or Path
            Survey whose reports are read, or the path of its file.
        since : date or str, optional
            First day; by default, the first day with reports.
        until : date or str, optional
            Last day, inclusive; by default, the last day with reports.

        Returns
        -------
        Snapshot
            Reports of these days.
        """
        first, last = as_optional_day("since", since), as_optional_day("until", until)
        days = first or date.min, last or date.max
        return self._snapshot(Survey.of(survey), *days, self.compacted_only)

    def scan(
        self,
        survey: SurveyOrPath,
        *,
        since: Day | None = None,
        until: Day | None = None,
        rows: int = MAX_BATCH_ROWS,
    ) -> Iterator[ReportBatch]:
        """Yield the survey's reports, each once, in an order without meaning.

        Parameters
        ----------
        survey : Survey, str or Path
            Survey whose reports are read, or the path of its file.
        since : date or str, optional
            First day; by default, the first day with reports.
        until : date or str, optional
            Last day, inclusive; by default, the last day with reports.
        rows : int, default 262144
            Largest number of reports per batch.

        Yields
        ------
        ReportBatch
            At most `rows` reports.
        """
        yield from self.snapshot(survey, since=since, until=until).batches(rows)

    # --- maintenance -----------------------------------------------------------------------------

    def compact(self, *, at_least: int = MIN_SHUFFLED, today: Day | None = None) -> Compacted:
        """Shuffle staged reports into segments, and delete them from staging for good.

        A batch is compacted once at least `at_least` reports of other uploads of the same survey
        and day can be shuffled with it. When a day is over, its remaining batches are shuffled with
        those of the next day that has any, and count as reports of that day. A process that is
        killed at any point neither loses nor duplicates reports.

        Parameters
        ----------
        at_least : int, default 1000
            Minimum number of other reports that every batch is shuffled with.
        today : date or str, optional
            Current day; by default, today in UTC.

        Returns
        -------
        Compacted
            Number of segments, of compacted reports and of reports that are still staged.
        """
        return self._compact(at_least, as_optional_day("today", today) or calendar.today())

    def delete(self, survey: SurveyOrPath, *, before: Day | None = None) -> int:
        """Delete reports of a survey.

        Parameters
        ----------
        survey : Survey, str or Path
            Survey whose reports are deleted, or the path of its file.
        before : date or str, optional
            Delete only reports from before this day; by default, delete all. Damaged uploads that
            were set aside stay: see `delete_damaged`.

        Returns
        -------
        int
            Number of deleted reports.
        """
        return self._delete(Survey.of(survey), as_optional_day("before", before) or date.max)

    def forget(self, before: Day) -> int:
        """Forget the idempotency keys of old uploads, whose repeats are then no longer recognised.

        Parameters
        ----------
        before : date or str
            Forget the keys of uploads from before this day.

        Returns
        -------
        int
            Number of forgotten keys.
        """
        return self._forget(as_day("before", before))

    def calendar(self) -> Calendar:
        """Return the days that the store has seen.

        Returns
        -------
        Calendar
            Latest day that is trusted, and the days that are not trusted yet, if any.
        """
        return self._read_calendar()

    def observe_day(self, day: Day | None = None) -> Calendar:
        """Note which day it is, and return the calendar, whose latest day can be trusted.

        Count ages from this day, never from the clock: a clock that is wrong for a moment would
        delete reports and forget keys. See `store.calendar`.

        Parameters
        ----------
        day : date or str, optional
            Day that the clock shows; by default, today in UTC.

        Returns
        -------
        Calendar
            Days that the store has seen, including this one if it can be trusted.
        """
        before = self._read_calendar()
        after = before.observe(as_optional_day("day", day) or calendar.today())
        if after != before:
            self._write_calendar(after)
        return after

    def accept_clock(self, day: Day | None = None) -> Calendar:
        """Trust the clock at once, however far it is from the latest day of the store.

        Parameters
        ----------
        day : date or str, optional
            Day that the clock shows; by default, today in UTC.

        Returns
        -------
        Calendar
            The calendar, whose latest day is this day.
        """
        accepted = Calendar(as_optional_day("day", day) or calendar.today())
        self._write_calendar(accepted)
        return accepted

    @abstractmethod
    def damage(self) -> list[str]:
        """Return what the store knows to be lost or damaged, without reading everything.

        Returns
        -------
        list of str
            One sentence per damaged upload that was set aside, and per loss of uploads.
        """

    @abstractmethod
    def accept_damage(self) -> list[str]:
        """Delete damaged uploads that were set aside, and no longer mention losses.

        Returns
        -------
        list of str
            Sentences that `damage` no longer returns.
        """

    def delete_damaged(self, before: Day) -> int:
        """Delete damaged uploads that were set aside long ago, of whatever survey.

        Parameters
        ----------
        before : date or str
            Delete what was set aside before this day.

        Returns
        -------
        int
            Number of deleted uploads, or files of a folder.
        """
        return self._delete_damaged(as_day("before", before))

    def unlock(self) -> bool:
        """Remove the lock of a process that was killed, which only remote folders need.

        The system removes other locks by itself. Be sure that no other process writes to the store.

        Returns
        -------
        bool
            Whether there was a lock.
        """
        return False

    @abstractmethod
    def check(self) -> list[str]:
        """Read everything and return what is wrong with the store.

        Returns
        -------
        list of str
            One sentence per problem; empty if there is none.
        """

    @abstractmethod
    def backup(self, to: str | Path) -> None:
        """Copy the store, as it is at one moment, to a new store; uploads may go on meanwhile.

        Parameters
        ----------
        to : str or Path
            URL or path of the copy, which must be empty or not exist.
        """

    def room(self) -> int | None:
        """Return the free space where the store writes.

        Returns
        -------
        int or None
            Free bytes, or None if they cannot be determined.
        """
        return None

    def check_files(self) -> None:
        """Raise StoreError if files in use were deleted or replaced, so that writing is in vain."""
        return

    def check_writable(self) -> None:
        """Raise StoreError if nothing can be written now; the content stays as it is."""
        return

    @abstractmethod
    def close(self) -> None:
        """Close files and connections."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- for implementations ---------------------------------------------------------------------

    @abstractmethod
    def _add_survey(self, survey: Survey) -> None:
        """Add a published survey, unless the store has it."""

    @abstractmethod
    def _days(self, survey: Survey, compacted_only: bool) -> dict[date, int]:
        """Return the number of reports of each day that has any, in the order of the days."""

    @abstractmethod
    def _snapshot(self, survey: Survey, first: date, last: date, compacted_only: bool) -> Snapshot:
        """Return the survey's reports of these days as they are now."""

    @abstractmethod
    def _compact(self, at_least: int, today: date) -> Compacted:
        """Shuffle staged reports into segments."""

    @abstractmethod
    def _delete(self, survey: Survey, before: date) -> int:
        """Delete the survey's reports from before a day; return how many."""

    @abstractmethod
    def _forget(self, before: date) -> int:
        """Forget the idempotency keys of uploads from before a day; return how many."""

    @abstractmethod
    def _delete_damaged(self, before: date) -> int:
        """Delete damaged uploads that were set aside before a day; return how many."""

    @abstractmethod
    def _read_calendar(self) -> Calendar:
        """Return the recorded calendar."""

    @abstractmethod
    def _write_calendar(self, calendar: Calendar) -> None:
        """Record the calendar."""

    @abstractmethod
    def _published(self) -> Iterable[tuple[bytes, bytes]]:
        """Return the digest and canonical JSON of every survey in the store."""

    def _parse_survey(self, digest: bytes, canonical: bytes) -> Survey:
        """Return a survey from the store, or raise StoreError if its bytes are damaged."""
        try:
            survey = Survey.from_json(canonical)
        except DeniableError:
            survey = None
        if survey is None or survey.digest != digest:
            raise StoreError(
                f"{self.url}: the survey with digest {digest.hex()[:12]} is damaged: restore the "
                "store from a backup"
            )
        return survey

    def _survey(self, digest: bytes) -> Survey:
        """Return the survey with this digest, or raise UnknownSurvey."""
        if digest not in self._known:
            surveys = self.surveys()  # another process may have added it
            if digest not in self._known:
                known = ", ".join(f"{s.name} v{s.version}" for s in surveys) or "no surveys"
                raise UnknownSurvey(
                    f"{self.url} has no survey with digest {digest.hex()[:12]}; it has {known}"
                )
        return self._known[digest]

    def _is_new(self, survey: Survey, published: Iterable[bytes]) -> bool:
        """Return whether the survey must be added.

        Raise InputError if `published`, the canonical JSON of the surveys in the store, holds a
        different survey of the same name and version, or a survey of this name of which only one
        of the two is for testing: people ask for the newest version of a name.
        """
        for canonical in published:
            if canonical == survey.canonical:
                return False
            other = Survey.from_json(canonical)
            if other.name == survey.name and other.testing != survey.testing:
                real, test = (survey, other) if other.testing else (other, survey)
                raise InputError(
                    f"{self.url} cannot hold both survey {real.name!r} v{real.version} and v"
                    f"{test.version}, which is for testing: keep test data in a separate store"
                )
            if (other.name, other.version) == (survey.name, survey.version):
                raise InputError(
                    f"{self.url} has a different survey {survey.name!r} v{survey.version}, with "
                    f"digest {other.digest.hex()}: give the changed survey a new version"
                )
        return True

    def _check_uploads(self, uploads: Sequence[Upload]) -> None:
        """Raise unless the survey of each upload is known and its bodies have the right size."""
        for upload in uploads:
            survey = self._survey(upload.digest)
            if len(upload.bodies) != upload.reports * survey.body_size:
                raise InputError(
                    f"expected {upload.reports * survey.body_size} bytes for {upload.reports} "
                    f"reports of {survey}, got {len(upload.bodies)}"
                )

    def _check_calendar(self) -> Iterator[str]:
        """Yield what is wrong with the recorded calendar."""
        try:
            self._read_calendar()
        except StoreUnavailable:
            raise
        except StoreError as error:
            yield str(error)

    def _check_staged(self, staged: Iterable[tuple[bytes, int, int]]) -> Iterator[str]:
        """Yield what is wrong with staged uploads, given digest, reports and bytes of each."""
        known = {survey.digest: survey for survey in self.surveys()}
        for digest, reports, size in staged:
            if digest not in known:
                yield f"a staged upload answers the unknown survey {digest.hex()}"
            elif size != reports * known[digest].body_size:
                yield (
                    f"a staged upload of {known[digest]!r} has {size} bytes, expected "
                    f"{reports * known[digest].body_size} for {reports} reports"
                )
