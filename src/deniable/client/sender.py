"""The sender: what waits in an outbox goes to the collector, once, whatever happens on the way.

A device sends each report by itself: own upload, own key, own connection, in random order. Only a
gateway that mixes the reports of many people puts several in one upload (`batch`).
docs/how-to/send.md says what this hides and what it does not.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deniable.client.exchange import Reply, checked_url, exchange, shown
from deniable.client.outbox import Outbox, QueuedUpload
from deniable.errors import InputError, TransferError

if TYPE_CHECKING:
    import ssl

ROUTE = "/v1/reports"
FIRST_WAIT = 1.0
WAIT_CAP = 3600.0
"""Seconds: waits grow from the one towards the other."""
ABOUT_THE_UPLOAD = frozenset({400, 404, 409, 410, 413, 415, 422})
"""What a collector answers when it will never take this upload. Anything else may pass."""
ABOUT_THE_SENDER = frozenset({401, 403})


@dataclass(frozen=True)
class Sent:
    """What one call of `send` did, and what is left, in reports."""

    accepted: int
    refused: int
    waiting: int
    dropped: int
    """Since the outbox was made."""
    wait: float
    """Seconds until the next try is due."""
    problem: str | None
    """Why it stopped before the outbox was empty, or what was refused; None if all went well."""


class Sender:
    """Sends what is in `outbox` to the collector at `url`, such as https://collector.example.

    token : the collector's ingest key, if it asks for one; the same for all clients.
    batch : the most reports of one upload. More than 1 only where many people's reports mix.
    spread : seconds; after each accepted upload the next waits a random time up to this.
    timeout : seconds for one exchange.
    tls : trust other authorities than the system's.
    """

    def __init__(
        self,
        outbox: Outbox,
        url: str,
        *,
        token: str | None = None,
        batch: int = 1,
        spread: float = 0.0,
        timeout: float = 30.0,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        parts = checked_url(url)
        if parts.query or parts.fragment or parts.path.rstrip("/").endswith(ROUTE):
            raise InputError(f"expected the collector's address without {ROUTE}, got {url!r:.200}")
        if token is not None and not (token.isascii() and token.isprintable() and token.split()):
            raise InputError("expected a token of printable ASCII characters")
        if batch < 1 or spread < 0 or timeout <= 0:
            raise InputError(
                "expected batch of 1 or more, spread of 0 or more, timeout above 0; "
                f"got {batch}, {spread}, {timeout}"
            )
        self.outbox = outbox
        self.url = url.rstrip("/") + ROUTE
        self.batch = batch
        self.spread = spread
        self.timeout = timeout
        self._token = token
        self._tls = tls

    def send(self, *, now: bool = False) -> Sent:
        """Send what is due, until nothing waits or a try settles nothing.

        `now` makes the first try whenever it is due. Being offline is no error: see `problem`.
        """
        accepted = refused = 0
        problem = None
        while (now or self.outbox.wait() == 0) and (upload := self.outbox.next(self.batch)):
            now = False
            try:
                reply = self._try(upload)
            except TransferError as error:
                problem = str(error)
                self._hold()
                break
            if reply.status == 202:
                accepted += upload.reports
                self.outbox.accept(upload, self.spread * fraction())
            elif reply.status in ABOUT_THE_UPLOAD and reply.problem:
                refused += upload.reports
                problem = f"refused for good: {reply}"
                self.outbox.refuse(upload, str(reply))
            else:
                problem = _temporary(reply)
                self._hold(reply.retry_after or 0.0)
                break
        counts, wait = self.outbox.counts(), self.outbox.wait()
        return Sent(accepted, refused, counts.waiting, counts.dropped, wait, problem)

    def run(self, stop: threading.Event, *, every: float = 60.0) -> None:
        """Send until `stop` is set, looking for new reports every so many seconds."""
        while not stop.is_set():
            sent = self.send()
            stop.wait(max(sent.wait, 0.05) if sent.waiting else every)

    def _hold(self, least: float = 0.0) -> None:
        self.outbox.hold(lambda failures: least + backoff(failures))

    def _try(self, upload: QueuedUpload) -> Reply:
        headers = {
            "Content-Type": "application/octet-stream",
            "Idempotency-Key": upload.key.hex(),
        }
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        return exchange(
            "POST",
            self.url,
            headers=headers,
            body=upload.body,
            timeout=self.timeout,
            tls=self._tls,
            connected=lambda: self.outbox.mark_tried(upload),
        )


def _temporary(reply: Reply) -> str:
    if reply.status in ABOUT_THE_SENDER:
        return f"the collector does not take this sender's token: {reply}"
    if 300 <= reply.status < 400:
        where = shown(reply.headers.get("Location", "nowhere"))
        return f"{reply}: expected a collector, was sent on to {where:.200}; give its own address"
    if not reply.problem and reply.status < 500:
        return f"{reply}: this answer is not a collector's; is the address right?"
    return str(reply)


def backoff(failures: int) -> float:
    """Seconds to wait after one more failure: anything up to a bound that doubles (full jitter)."""
    return fraction() * min(WAIT_CAP, FIRST_WAIT * 2.0 ** min(failures, 60))


def fraction() -> float:
    """A random number, at least 0 and below 1, from the operating system."""
    return int.from_bytes(os.urandom(7), "big") / 2**56
