"""The collector as one ASGI application: its parts, put together, started and stopped."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from threading import Event, Thread
from typing import Self

from starlette.types import Receive, Scope, Send

from deniable import store as stores
from deniable.collector.api.routes import application
from deniable.collector.ingest import upload_route as ingest
from deniable.collector.ingest.body import BodyLimits, Incoming
from deniable.collector.ingest.catalogue import Catalogue, today, versions_of
from deniable.collector.ingest.upload_route import Ingest
from deniable.collector.ingest.writer import CommitWriter
from deniable.collector.jobs.runner import Jobs
from deniable.collector.keyring import Keyring
from deniable.collector.metrics import Metrics
from deniable.collector.settings import Settings
from deniable.errors import InputError, StoreError
from deniable.store import Store
from deniable.survey import Survey

ROOM_SECONDS = 0.25
"""How often free space is looked at besides after every commit: others use the disk too."""
LAST_SECONDS = 2.0
"""How long a compaction under way may hold up a shutdown."""

log = logging.getLogger("deniable.collector")


class Collector:
    """Use as `async with Collector(settings) as app`; `app` is called by the server."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        surveys = [Survey.load(path) for path in settings.surveys]
        if not surveys:
            raise InputError("expected at least one survey to collect, got none")
        self.catalogue = Catalogue(surveys, settings.grace)
        self.keyring = Keyring(Path(settings.keys) if settings.keys else None)
        self.metrics = Metrics()
        self.jobs = Jobs()
        self.limits = BodyLimits(settings.max_body, settings.max_memory, settings.body_time)
        self.stopping = False
        self.room: int | None = None
        """Bytes left for the store; None if it cannot know."""
        self._ingest = Ingest(self)
        self._rest = application(self)

    store: Store
    writer: CommitWriter

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] == ingest.PATH:
            await self._ingest(scope, receive, send)
            return
        # Starlette answers a failure and raises it again, for the server to log with its text,
        # which may quote the request; `routes` has logged its kind.
        with suppress(Exception):
            await self._rest(scope, receive, send)

    # --- starting and stopping --------------------------------------------------------------

    async def __aenter__(self) -> Self:
        settings = self.settings
        if not settings.store:
            raise InputError("expected a store, such as --store sqlite:///reports.db; got none")
        self.store = stores.open(settings.store, create=True)
        for survey in self.catalogue.all():
            self.store.add_survey(survey)
        self._look_at_room()
        queue = (settings.max_queue, settings.group)
        self.writer = CommitWriter(self.store, self.metrics, *queue, self._look_at_room)
        self._upkeep = [
            Periodic(name, seconds, work)
            for name, seconds, work in (
                ("looking at the disk", ROOM_SECONDS, self._look_at_room),
                ("compaction", settings.compact, self.keep_up),
                ("logging", settings.log, lambda: log.info(self.metrics.line())),
            )
            if seconds
        ]
        return self

    def stop_soon(self) -> None:
        """No longer ready; bodies under way get little time."""
        self.stopping = True
        self.jobs.stop()
        self.limits.hurry(self.settings.stop_time)

    async def __aexit__(self, *_: object) -> None:
        """Commit all that was accepted, then let go of the store."""
        self.jobs.stop()
        await asyncio.to_thread(self.writer.stop)
        # What the last commit told the event loop must reach those who wait.
        await asyncio.sleep(0)
        ended = [work.stop(LAST_SECONDS) for work in self._upkeep]
        if all(ended):
            self.store.close()

    # --- upkeep -----------------------------------------------------------------------------

    def keep_up(self) -> None:
        """Compact, forget old idempotency keys, delete old reports."""
        compacted = self.store.compact(at_least=self.settings.at_least)
        self.metrics.totals["compacted_reports"] += compacted.reports
        self.store.forget(today() - timedelta(days=self.settings.key_days))
        if self.settings.keep_days:
            before = today() - timedelta(days=self.settings.keep_days)
            for survey in self.store.surveys():
                deleted = self.store.delete(survey, before=before)
                self.metrics.totals["deleted_reports"] += deleted

    def _look_at_room(self) -> None:
        self.room = self.store.room()

    @property
    def disk_low(self) -> bool:
        """Whether an upload might use the last of the disk."""
        return self.room is not None and self.room < self.settings.reserve

    # --- what others ask ----------------------------------------------------------------------

    def incoming(self, receive: Receive) -> Incoming:
        """Return the body of a request that begins now."""
        return Incoming(receive, self.limits)

    def trouble(self) -> str | None:
        """Why no upload would be taken now; None if it would. May wait for the store."""
        if self.stopping:
            return "the collector is stopping"
        if self.disk_low:
            return "the disk is nearly full"
        if self.writer.full:
            return "too many uploads wait for the store"
        if self.writer.failing:
            try:
                self.store.surveys()
            except StoreError:
                return "the store cannot be reached"
        return None

    def kept(self, name: str, version: int | None = None) -> list[Survey]:
        """Return the versions of a survey in the store, collected now or not; one if it is named.

        Raises Problem if there is none.
        """
        return versions_of(self.store.surveys(), name, version)

    def gauges(self) -> dict[str, tuple[str, float]]:
        """What /metrics shows besides counters."""
        found: dict[str, tuple[str, float]] = {
            "queue_uploads": ("Uploads that wait for the store.", len(self.writer)),
            "held_bytes": ("Bytes of bodies in memory.", self.limits.held),
            "store_failing": ("Whether the last commit failed.", self.writer.failing),
        }
        if self.room is not None:
            found["disk_room_bytes"] = ("Bytes left for the store.", self.room)
        return found


class Periodic:
    """Calls `work` every so many seconds until stopped; a failure is logged and tried again."""

    def __init__(self, name: str, seconds: float, work: Callable[[], None]) -> None:
        self.name, self.seconds, self.work = name, seconds, work
        self._stopping = Event()
        # A daemon: the work is safe to interrupt, so that it never holds up a shutdown.
        self._thread = Thread(target=self._run, name=f"deniable-{name}", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopping.wait(self.seconds):
            try:
                self.work()
            except Exception as error:
                log.error("%s failed: %s", self.name, type(error).__name__)

    def stop(self, seconds: float) -> bool:
        """Begin nothing more; whether what was under way ended within so many seconds."""
        self._stopping.set()
        self._thread.join(seconds)
        return not self._thread.is_alive()
