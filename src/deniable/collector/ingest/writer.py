"""One thread that commits what waits, all of it at once, and then says so.

Syncing to disk takes the same time for one upload as for hundreds, so everything that arrives
during a commit goes into the next. An upload is acknowledged only after `Store.append` returned.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Condition, Thread

from deniable.collector.api.problems import BUSY, Problem, problem_of
from deniable.collector.metrics import Metrics
from deniable.errors import StoreError
from deniable.store import Outcome, Store, Upload

Waiting = tuple[Upload, "asyncio.Future[Outcome]"]


class CommitWriter:
    """A bounded queue into the store. `submit` is called in the event loop only."""

    def __init__(
        self, store: Store, metrics: Metrics, limit: int, group: int, after: Callable[[], None]
    ) -> None:
        """`after` is called in the writer's thread after every commit."""
        self.store, self.metrics, self.limit, self.group = store, metrics, limit, group
        self._after = after
        self.failing = False
        """Whether the last commit failed."""
        self._waiting: deque[Waiting] = deque()
        self._changed = Condition()
        self._stopping = False
        self._loop = asyncio.get_running_loop()
        self._thread = Thread(target=self._run, name="deniable-writer")
        self._thread.start()

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def full(self) -> bool:
        """Whether nothing more may wait."""
        return len(self._waiting) >= self.limit

    def check_room(self) -> None:
        """Raise Problem if nothing more may wait."""
        if self.full or self._stopping:
            raise Problem(BUSY, "too many uploads wait for the store: try again later")

    def submit(self, upload: Upload) -> asyncio.Future[Outcome]:
        """Return the outcome, once it is durable; raises Problem if the queue is full."""
        self.check_room()
        future: asyncio.Future[Outcome] = self._loop.create_future()
        with self._changed:
            self._waiting.append((upload, future))
            self._changed.notify()
        return future

    def stop(self) -> None:
        """Commit what waits, then end; returns when that is done."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while group := self._next():
            uploads, futures = zip(*group, strict=True)
            start = time.perf_counter()
            outcomes: Sequence[Outcome | Problem]
            try:
                outcomes = self.store.append(uploads)
                self.failing = False
            except Exception as error:
                outcomes = [problem_of(error) for _ in uploads]
                self.failing = True
                self.metrics.totals["store_errors"] += 1
            self.metrics.committed(time.perf_counter() - start)
            self._loop.call_soon_threadsafe(_deliver, futures, outcomes)
            with suppress(OSError, StoreError):
                self._after()

    def _next(self) -> list[Waiting]:
        """What waits, at most one group; empty when there will be no more."""
        with self._changed:
            while not self._waiting and not self._stopping:
                self._changed.wait()
            count = min(len(self._waiting), self.group)
            return [self._waiting.popleft() for _ in range(count)]


def _deliver(
    futures: Sequence[asyncio.Future[Outcome]], outcomes: Sequence[Outcome | Problem]
) -> None:
    for future, outcome in zip(futures, outcomes, strict=True):
        if future.done():
            continue
        if isinstance(outcome, Problem):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)
