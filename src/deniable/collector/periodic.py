"""Work that is done again and again in a thread of its own."""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import Event, Thread

log = logging.getLogger("deniable.collector")


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
