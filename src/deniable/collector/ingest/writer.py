"""A thread that commits queued uploads together, and then acknowledges them.

Syncing to disk takes the same time for one upload as for hundreds, so all uploads that arrive
during a commit share the next one. An upload is acknowledged only after `Store.append` returned.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Condition, Thread

from deniable.collector.api.problems import BUSY, Problem, to_problem
from deniable.collector.logs import log_event
from deniable.collector.metrics import Metrics
from deniable.errors import StoreError
from deniable.store import Outcome, Store, Upload

RETRY_SECONDS = 1.0
"""How often the store is tried after a commit failed, if no uploads arrive."""

QueuedUpload = tuple[Upload, "asyncio.Future[Outcome]"]


class CommitWriter:
    """A bounded queue of uploads, and the thread that commits them.

    Call `submit` in the event loop only.

    max_queue : maximum number of queued uploads
    max_group : maximum number of uploads per commit
    on_commit : function that the thread calls after every commit
    """

    def __init__(
        self,
        store: Store,
        metrics: Metrics,
        max_queue: int,
        max_group: int,
        on_commit: Callable[[], None],
    ) -> None:
        self.store, self.metrics = store, metrics
        self.max_queue, self.max_group = max_queue, max_group
        self._on_commit = on_commit
        self.failing = False
        """Whether the last commit failed, and no write has succeeded since."""
        self._queue: deque[QueuedUpload] = deque()
        self._changed = Condition()
        self._stopping = False
        self._loop = asyncio.get_running_loop()
        self._thread = Thread(target=self._run, name="deniable-writer")
        self._thread.start()

    def __len__(self) -> int:
        return len(self._queue)

    @property
    def full(self) -> bool:
        """Whether the queue is full."""
        return len(self._queue) >= self.max_queue

    def check_capacity(self) -> None:
        """Raise Problem if the queue is full or the collector is stopping."""
        if self._stopping:
            raise Problem(BUSY, "the collector is stopping: try again later")
        if self.full:
            raise Problem(BUSY, "too many uploads are waiting for the store: try again later")

    def submit(self, upload: Upload) -> asyncio.Future[Outcome]:
        """Queue an upload; return a future of its outcome, which is set once it is durable."""
        self.check_capacity()
        future: asyncio.Future[Outcome] = self._loop.create_future()
        with self._changed:
            self._queue.append((upload, future))
            self._changed.notify()
        return future

    def stop(self) -> None:
        """Commit all queued uploads, then end the thread; return when that is done."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        """Commit groups of uploads until the writer is stopped and the queue is empty."""
        while (group := self._next_group()) is not None:
            if group:
                self._commit(group)
                with suppress(OSError, StoreError):  # the commit is done: the thread must go on
                    self._on_commit()
            else:
                with suppress(Exception):  # as in `_commit`: the thread must go on
                    self.store.check_writable()
                    self._note(None)

    def _commit(self, group: list[QueuedUpload]) -> None:
        """Commit uploads and deliver their outcomes."""
        uploads, futures = zip(*group, strict=True)
        start = time.perf_counter()
        outcomes: Sequence[Outcome | Problem]
        try:
            outcomes = self.store.append(uploads)
            self._note(None)
        except Exception as error:
            outcomes = [to_problem(error) for _ in uploads]
            self._note(type(error).__name__)
            self.metrics.totals["store_errors"] += 1
        self.metrics.count_commit(time.perf_counter() - start)
        self._loop.call_soon_threadsafe(_set_outcomes, futures, outcomes)

    def _note(self, error: str | None) -> None:
        """Note the error of a commit, or None if it succeeded; log only changes."""
        if error and not self.failing:
            message = f"a commit failed ({error}): uploads are refused until commits succeed"
            log_event("commits-failing", message, logging.ERROR, error=error)
        elif self.failing and not error:
            log_event("commits-recovered", "commits succeed again")
        self.failing = error is not None

    def _next_group(self) -> list[QueuedUpload] | None:
        """Wait for uploads and return one group, or None after `stop`.

        While commits fail, the group is empty if none arrive soon.
        """
        with self._changed:
            seconds = RETRY_SECONDS if self.failing else None
            self._changed.wait_for(lambda: self._queue or self._stopping, seconds)
            if self._stopping and not self._queue:
                return None
            count = min(len(self._queue), self.max_group)
            return [self._queue.popleft() for _ in range(count)]


def _set_outcomes(
    futures: Sequence[asyncio.Future[Outcome]], outcomes: Sequence[Outcome | Problem]
) -> None:
    """Give each waiting request its outcome; run in the event loop."""
    for future, outcome in zip(futures, outcomes, strict=True):
        if future.done():  # the request was cancelled, for example because its client left
            continue
        if isinstance(outcome, Problem):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)
