"""The sender: deliver the reports of an outbox to the collector, each exactly once.

A device sends each report separately: with its own upload, key and connection, in random order.
Only a gateway that mixes the reports of many people puts several in one upload (`batch`), for which
it needs a gateway key.
docs/how-to/send.md describes what this hides and what it does not.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deniable.client.exchange import Reply, exchange, parse_url, printable
from deniable.client.outbox import Outbox, QueuedUpload
from deniable.errors import InputError, TransferError

if TYPE_CHECKING:
    import ssl

ROUTE = "/v1/reports"
FIRST_BACKOFF = 1.0
MAX_BACKOFF = 3600.0
"""Bounds of the seconds between attempts: the first, and the largest."""
PERMANENT_FAILURES = frozenset({400, 404, 409, 410, 413, 415, 422})
"""Statuses of a collector that will never accept an upload. All others may be temporary."""
AUTHORISATION_FAILURES = frozenset({401, 403})
TOO_LARGE = 413


@dataclass(frozen=True)
class Sent:
    """Result of one call of `send`, in numbers of reports.

    Parameters
    ----------
    accepted : int
        Accepted in this call.
    refused : int
        Refused permanently in this call.
    waiting : int
        Still waiting in the outbox.
    dropped : int
        Dropped since the outbox was created, because it was full.
    wait : float
        Seconds until the next attempt is due.
    problem : str or None
        Why sending stopped before the outbox was empty, or what was refused; None if all went well.

    Examples
    --------
    >>> print(Sent(accepted=3, refused=0, waiting=0, dropped=0, wait=0.0, problem=None))
    3 accepted, 0 waiting
    """

    accepted: int
    refused: int
    waiting: int
    dropped: int
    wait: float
    problem: str | None

    def __str__(self) -> str:
        text = f"{self.accepted} accepted, {self.waiting} waiting"
        text += f", {self.refused} refused" if self.refused else ""
        text += f", {self.dropped} dropped because the outbox was full" if self.dropped else ""
        text += f", next attempt in {self.wait:.0f} s" if self.waiting else ""
        return f"{text}\n  {self.problem}" if self.problem else text


class Sender:
    """Sends the reports of an outbox to a collector.

    Parameters
    ----------
    outbox : Outbox
        Queue of reports.
    url : str
        Address of the collector, such as https://collector.example.
    token : str or None, default None
        Ingest key of the collector, if it requires one; the same for all clients. With `batch`, a
        gateway key.
    batch : int, default 1
        Maximum number of reports per upload. Use more than 1 only if the outbox mixes the reports
        of many people. If the collector allows fewer, the sender makes smaller batches.
    spread : float, default 0.0
        Maximum random pause after each accepted upload, in seconds.
    timeout : float, default 30.0
        Maximum duration of one request, in seconds.
    tls : ssl.SSLContext or None, default None
        Which certificates to trust; None means those of the system.

    Raises
    ------
    InputError
        If an argument is invalid.

    Examples
    --------
    >>> import tempfile
    >>> from deniable.client import Outbox
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Sender(Outbox(folder + "/outbox.db"), "https://collector.example").send().waiting
    0
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
        parts = parse_url(url)
        if parts.query or parts.fragment or parts.path.rstrip("/").endswith(ROUTE):
            raise InputError(
                f"the address must be the collector's, without {ROUTE}, unlike {url!r:.200}"
            )
        if token is not None and not (token.isascii() and token.isprintable() and token.split()):
            raise InputError("the token must consist of printable ASCII characters")
        if batch < 1 or spread < 0 or timeout <= 0:
            raise InputError(
                "batch must be at least 1, spread at least 0, and timeout above 0, not "
                f"{batch}, {spread} and {timeout}"
            )
        if batch > 1 and token is None:
            raise InputError(
                "batches need a gateway key, which the collector's operator makes with `deniable "
                "keys add --role gateway`: pass it as the token, or send each report separately"
            )
        self.outbox = outbox
        self.url = url.rstrip("/") + ROUTE
        self.batch = batch
        self.spread = spread
        self.timeout = timeout
        self._token = token
        self._tls = tls

    def __repr__(self) -> str:
        return f"<Sender to {self.url}, {self.outbox!r}>"

    def send(self, *, now: bool = False) -> Sent:
        """Send until nothing is waiting, or until an attempt is inconclusive.

        Being offline is not an error: see `Sent.problem`.

        Parameters
        ----------
        now : bool, default False
            Make the first attempt even if it is not due yet.

        Returns
        -------
        Sent
            Numbers of accepted, refused and waiting reports.

        Raises
        ------
        OutboxError
            If the outbox cannot be read or written.
        """
        accepted = refused = 0
        problem = None
        while (now or self.outbox.wait() == 0) and (upload := self.outbox.next(self.batch)):
            now = False
            try:
                reply = self._upload(upload)
            except TransferError as error:
                problem = str(error)
                self._hold()
                break
            if reply.status == 202:
                accepted += upload.reports
                self.outbox.accept(upload, self.spread * random_fraction())
            elif _can_split(upload, reply):
                self.batch = upload.reports // 2
                self.outbox.split(upload)
            elif reply.status in PERMANENT_FAILURES and reply.problem:
                refused += upload.reports
                problem = f"refused permanently: {reply}"
                self.outbox.refuse(upload, str(reply))
            else:
                problem = _explain(reply)
                self._hold(reply.retry_after or 0.0)
                break
        counts, wait = self.outbox.counts(), self.outbox.wait()
        return Sent(accepted, refused, counts.waiting, counts.dropped, wait, problem)

    def run(self, stop: threading.Event, *, every: float = 60.0) -> None:
        """Keep sending until `stop` is set.

        Parameters
        ----------
        stop : threading.Event
            Ends the loop.
        every : float, default 60.0
            Seconds between checks for new reports while the outbox is empty.
        """
        while not stop.is_set():
            sent = self.send()
            stop.wait(max(sent.wait, 0.05) if sent.waiting else every)

    def _hold(self, least: float = 0.0) -> None:
        """Postpone the next attempt by at least `least` seconds."""
        self.outbox.hold(lambda failures: least + backoff(failures))

    def _upload(self, upload: QueuedUpload) -> Reply:
        """Send one upload, and return the response."""
        headers = {"Content-Type": "application/octet-stream", "Idempotency-Key": upload.key.hex()}
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


def _can_split(upload: QueuedUpload, reply: Reply) -> bool:
    """Return whether the reports of a refused batch may be sent under other keys.

    If the batch was sent before, it may have been stored then, when larger ones were allowed.
    """
    return reply.status == TOO_LARGE and reply.problem and upload.reports > 1 and not upload.tried


def _explain(reply: Reply) -> str:
    """Return why a response did not settle an upload."""
    if reply.status in AUTHORISATION_FAILURES:
        return f"the collector does not accept the token: {reply}"
    if 300 <= reply.status < 400:
        where = printable(reply.headers.get("Location", "nowhere"))
        return (
            f"{reply}: this is not a collector but redirects to {where:.200}; use its own address"
        )
    if not reply.problem and reply.status < 500:
        return f"{reply}: this response is not from a collector; is the address right?"
    return str(reply)


def backoff(failures: int) -> float:
    """Return a random wait in seconds; its bound doubles with every failure (full jitter)."""
    return random_fraction() * min(MAX_BACKOFF, FIRST_BACKOFF * 2.0 ** min(failures, 60))


def random_fraction() -> float:
    """Return a random number from 0 to below 1, from the operating system."""
    return int.from_bytes(os.urandom(7), "big") / 2**56
