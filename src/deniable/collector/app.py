"""The collector as one ASGI application: build, start, maintain and stop its parts."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import date, timedelta
from pathlib import Path
from threading import Event, Thread
from typing import Self

from deniable.collector.logs import log_event
from deniable.errors import InputError, StoreError
from deniable.extras import needs_packages
from deniable.survey import Survey

with needs_packages("the collector", extra="collector"):
    from starlette.types import Receive, Scope, Send

    from deniable import store as stores
    from deniable.collector.api.routes import application
    from deniable.collector.ingest.body import BodyLimits
    from deniable.collector.ingest.catalogue import Catalogue, versions_of
    from deniable.collector.ingest.upload_route import UPLOAD_PATH, UploadRoute
    from deniable.collector.ingest.writer import CommitWriter
    from deniable.collector.jobs.limits import JobLimits
    from deniable.collector.jobs.requests import JobRequest
    from deniable.collector.jobs.runner import Job, Jobs
    from deniable.collector.keyring import Keyring
    from deniable.collector.metrics import Metrics
    from deniable.collector.settings import Settings
    from deniable.store import Store, clock
    from deniable.store.clock import Today, day_that_counts

FREE_SPACE_CHECK_SECONDS = 0.25
"""How often free space is checked, in addition to after every commit."""
DAY_CHECK_SECONDS = 600
"""How often the store's last day is moved on, in addition to every maintenance."""
MAX_STOP_SECONDS = 2.0
"""How long a shutdown waits for maintenance, such as a running compaction."""
STAGED_COUNT_SECONDS = 15.0
"""How often staged reports are counted."""


class Collector:
    """A collector: use `async with Collector(settings) as app`, and let a server call `app`."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        surveys = [Survey.load(path) for path in settings.surveys]
        if not surveys:
            raise InputError("there is no survey to collect: give at least one survey file")
        self.catalogue = Catalogue(surveys, settings.grace)
        self.keyring = Keyring(Path(settings.keys) if settings.keys else None)
        self.metrics = Metrics()
        limits = JobLimits(settings.job_memory, settings.job_time)
        self.jobs = Jobs(limits, outcomes=self.metrics.jobs)
        self.limits = BodyLimits(settings.max_body, settings.max_memory, settings.body_time)
        self.stopping = False
        self.free_bytes: int | None = None
        """Free space for the store, or None if it cannot be determined."""
        self.staged = 0
        """Number of staged reports when they were last counted."""
        self.last_compaction = time.time()
        """Unix time of the last compaction, or of the start."""
        self._last_day: str | None = None
        self._doubted_on: date | None = None
        """Day of the clock on which the log last said that it is not trusted."""
        self._upload_route = UploadRoute(self)
        self._other_routes = application(self)

    store: Store
    writer: CommitWriter

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request (ASGI)."""
        if scope["type"] == "http" and scope["path"] == UPLOAD_PATH:
            await self._upload_route(scope, receive, send)
            return
        # Starlette answers a failure and raises it again, and the server would log its message,
        # which may quote the request. `problems` has already logged its type.
        with suppress(Exception):
            await self._other_routes(scope, receive, send)

    # --- starting and stopping --------------------------------------------------------------

    async def __aenter__(self) -> Self:
        settings = self.settings
        if not settings.store:
            raise InputError("there is no store: give one, such as --store sqlite:///reports.db")
        # Analysts must never see reports before they are shuffled, and nothing else here reads any.
        self.store = stores.open(settings.store, create=True, compacted_only=True)
        self.store.check_writable()
        self._move_day(settings.clock_is_right)
        self._check_surveys()
        for survey in self.catalogue.all():
            self.store.add_survey(survey)
        self._check_free_space()
        self._count_staged()
        self._check_damage()
        queue = (settings.max_queue, settings.group)
        self.writer = CommitWriter(self.store, self.metrics, *queue, self._check_free_space)
        self._maintenance = [
            Periodic(task, seconds, work, self.metrics.failed_tasks)
            for task, seconds, work in (
                ("free-space", FREE_SPACE_CHECK_SECONDS, self._check_free_space),
                ("staged-reports", STAGED_COUNT_SECONDS, self._count_staged),
                ("compaction", settings.compact, self.maintain_store),
                ("day", DAY_CHECK_SECONDS, self._move_day),
                ("log", settings.log, self.metrics.log_totals),
            )
            if seconds
        ]
        return self

    def _check_surveys(self) -> None:
        """Raise InputError if every survey has ended and the store has no report of them.

        Reports of surveys that have ended are still analysed, and deleted when they are old.
        """
        ended = self.ended_surveys()
        known = [survey for survey in self.store.surveys() if survey in ended]
        if len(ended) < len(self.catalogue.all()) or any(map(self._has_reports, known)):
            return
        self.store.close()
        names = ", ".join(f"{s.name} v{s.version} on {s.expires}" for s in ended)
        raise InputError(
            f"every survey has ended, so all reports would be refused: {names}. Publish a new "
            "version that expires later, or raise --grace"
        )

    def _has_reports(self, survey: Survey) -> bool:
        """Return whether the store has any report of a survey that it knows."""
        return bool(self.store.days(survey) or self.store.waiting(survey))

    def begin_shutdown(self) -> None:
        """Report "not ready", cancel jobs, and give incoming bodies `stop_time` seconds."""
        self.stopping = True
        self.jobs.stop()
        self.limits.end_within(self.settings.stop_time)

    async def __aexit__(self, *_: object) -> None:
        """Commit all accepted uploads, then close the store."""
        self.jobs.stop()
        await asyncio.to_thread(self.writer.stop)
        # Let the event loop deliver the outcomes of the last commit.
        await asyncio.sleep(0)
        for work in self._maintenance:
            work.stop()
        deadline = time.monotonic() + MAX_STOP_SECONDS
        if all(work.ended_by(deadline) for work in self._maintenance):
            self.store.close()

    # --- maintenance ------------------------------------------------------------------------

    def maintain_store(self) -> None:
        """Delete old reports, compact the store, and forget old idempotency keys."""
        day, doubt = self._move_day()
        # Deletion comes first: compaction may move staged reports to a later day.
        if self.settings.keep_days and not doubt:
            before = day - timedelta(days=self.settings.keep_days)
            for survey in self.store.surveys():
                deleted = self.store.delete(survey, before=before)
                self.metrics.totals["deleted_reports"] += deleted
        compacted = self.store.compact(at_least=self.settings.at_least, today=day)
        self.metrics.totals["compacted_reports"] += compacted.reports
        self.staged, self.last_compaction = compacted.waiting, time.time()
        if not doubt:
            self.store.forget(day - timedelta(days=self.settings.key_days))
        self._check_damage()

    def _move_day(self, clock_is_right: bool = False) -> Today:
        """Move the store's last day on, and return the day that counts."""
        self._last_day = self.store.move_day(clock_is_right)
        now, shown = self.today(), clock.today()
        if now.doubt and self._doubted_on != shown:
            log_event("clock-doubted", now.doubt, logging.WARNING)
        self._doubted_on = shown if now.doubt else None
        return now

    def _check_damage(self) -> None:
        """Log what the store knows to be lost or damaged."""
        self.damage = self.store.damage()
        for sentence in self.damage:
            log_event("store-damaged", sentence, logging.ERROR)

    def _check_free_space(self) -> None:
        """Update the free space for the store; log when uploads are refused or accepted again."""
        was_low = self.disk_low
        self.free_bytes = self.store.room()
        if self.disk_low and not was_low:
            message = f"the disk is nearly full ({self.free_bytes:,} bytes): uploads are refused"
            log_event("disk-low", message, logging.ERROR, free_bytes=self.free_bytes)
        elif was_low and not self.disk_low:
            log_event("disk-recovered", "the disk has free space again: uploads are accepted")

    def _count_staged(self) -> None:
        """Update the number of staged reports."""
        self.staged = sum(self.store.waiting(survey) for survey in self.store.surveys())

    @property
    def disk_low(self) -> bool:
        """Whether free space is below the reserve."""
        return self.free_bytes is not None and self.free_bytes < self.settings.reserve

    # --- for the routes -----------------------------------------------------------------------

    def reason_not_ready(self) -> str | None:
        """Return why uploads are refused now, or None; this may wait for the store."""
        if self.stopping:
            return "the collector is stopping"
        if self.disk_low:
            return "the disk is nearly full"
        if self.writer.full:
            return "too many uploads are waiting for the store"
        try:
            self.store.check_files()
        except StoreError:
            return "files of the store were deleted or replaced: restore them, and restart"
        return "the store is not available" if self.writer.failing else None

    def today(self) -> Today:
        """Return the day that counts for an upload that arrives now."""
        return day_that_counts(clock.today(), self._last_day)

    def ended_surveys(self) -> list[Survey]:
        """Return the surveys whose reports are refused, because they have certainly ended."""
        return [s for s in self.catalogue.all() if self.catalogue.ended(s, self.today())]

    def stored_surveys(self, name: str, version: int | None = None) -> list[Survey]:
        """Return the versions of a survey in the store, or only one version.

        They need not be collected now. Raise Problem if there is none.
        """
        return versions_of(self.store.surveys(), name, version)

    def start_job(self, request: JobRequest) -> Job:
        """Start an analysis of reports in the store, or raise Problem."""
        survey = self.stored_surveys(request.survey, request.version)[-1]
        return self.jobs.start(request, self.settings.store, survey)

    def gauges(self) -> dict[str, tuple[str, float]]:
        """Return help and value of every gauge, by name."""
        gauges: dict[str, tuple[str, float]] = {
            "queue_uploads": ("Uploads that are waiting for the store.", len(self.writer)),
            "held_bytes": ("Bytes of upload bodies in memory.", self.limits.held),
            "store_failing": ("Whether the last commit failed.", self.writer.failing),
            "last_compaction_timestamp_seconds": (
                "Unix time of the last compaction, or of the start.",
                self.last_compaction,
            ),
            "staged_reports": ("Reports that wait to be shuffled.", self.staged),
            "running_jobs": ("Analyses that are running.", self.jobs.running()),
            "max_queue_uploads": ("Setting max_queue.", self.settings.max_queue),
            "max_held_bytes": ("Setting max_memory.", self.settings.max_memory),
            "disk_reserve_bytes": ("Setting reserve.", self.settings.reserve),
            "compaction_interval_seconds": ("Setting compact.", self.settings.compact),
            "clock_doubted": ("Whether the clock is not trusted.", bool(self.today().doubt)),
            "store_damage": ("Losses and damaged uploads that the store knows.", len(self.damage)),
        }
        if self.free_bytes is not None:
            gauges["disk_room_bytes"] = ("Free bytes for the store.", self.free_bytes)
        return gauges


class Periodic:
    """A thread that calls `work` every `seconds` until stopped.

    It counts failures, logs them and goes on.
    """

    def __init__(
        self, task: str, seconds: float, work: Callable[[], object], failures: Counter[str]
    ) -> None:
        self.task, self.seconds, self.work, self.failures = task, seconds, work, failures
        failures[task] = 0
        self._stopping = Event()
        # A daemon thread does not delay the end of the process; the work can be interrupted.
        self._thread = Thread(target=self._run, name=f"deniable-{task}", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        """Call `work` until stopped."""
        while not self._stopping.wait(self.seconds):
            try:
                self.work()
            except Exception as error:
                self.failures[self.task] += 1
                name = type(error).__name__
                message = f"the regular task {self.task} failed: {name}"
                fields = {"task": self.task, "error": name}
                log_event("maintenance-failed", message, logging.ERROR, **fields)

    def stop(self) -> None:
        """Stop calling `work`; a running call goes on."""
        self._stopping.set()

    def ended_by(self, deadline: float) -> bool:
        """Wait for a running call; return whether it ended. deadline : of the monotonic clock."""
        self._thread.join(max(0.0, deadline - time.monotonic()))
        return not self._thread.is_alive()
