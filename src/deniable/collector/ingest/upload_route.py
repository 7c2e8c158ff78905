"""`POST /v1/reports`, as plain ASGI: nothing stands between the server and the queue.

Everything is checked before it is queued, cheapest first, and nothing is acknowledged before it is
durable. Of a request only its body, its idempotency key and its ingest key are ever looked at.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qs

from deniable.collector.api.problems import (
    BAD_KEY,
    BAD_QUERY,
    BUSY,
    CONFLICT,
    DISK,
    FAILED,
    NOT_ALLOWED,
    TOO_LARGE,
    WRONG_TYPE,
    Problem,
)
from deniable.collector.ingest.body import (
    Disconnected,
    Incoming,
    Message,
    Receive,
    Share,
    gunzip,
    soon,
)
from deniable.collector.ingest.catalogue import today
from deniable.collector.ingest.writer import FULL_WAIT
from deniable.collector.keyring import Bucket
from deniable.store import Outcome, Upload

if TYPE_CHECKING:
    from deniable.collector.app import Collector

T = TypeVar("T")
Scope = dict[str, Any]
Send = Callable[[Message], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

PATH = "/v1/reports"
METHODS = b"POST, OPTIONS"
ROLE = "ingest"
CONTENT_TYPE = b"application/octet-stream"
KEY = re.compile(r"[0-9a-f]{32}")
MOST_FIELDS = 16
MOST_DIGITS = 20
INLINE = 1 << 17
"""Bodies above this are decompressed and checked in a thread, so that others need not wait."""

log = logging.getLogger("deniable.collector")


@dataclass(frozen=True)
class Envelope:
    """What is looked at of an upload's headers and query."""

    key: bytes
    token: str | None
    gzipped: bool
    length: int

    @classmethod
    def of(cls, scope: Scope) -> Envelope:
        """Read and check the headers, or raise Problem."""
        headers = dict(scope["headers"])
        kind = headers.get(b"content-type", b"").split(b";")[0].strip().lower()
        if kind != CONTENT_TYPE:
            raise Problem(WRONG_TYPE, f"expected Content-Type {CONTENT_TYPE.decode()}")
        encoding = headers.get(b"content-encoding", b"identity").strip().lower()
        if encoding not in (b"identity", b"gzip"):
            raise Problem(WRONG_TYPE, "expected Content-Encoding gzip, or none")
        query = _query(scope["query_string"])
        key = headers.get(b"idempotency-key", b"").decode("latin-1") or query.get("key", [""])[0]
        if not KEY.fullmatch(key):
            raise Problem(
                BAD_KEY,
                "expected Idempotency-Key (or ?key=) of 32 lower-case hexadecimal digits, random, "
                "new for each upload and the same when it is tried again",
            )
        token = bearer(headers.get(b"authorization")) or query.get("token", [None])[0]
        length = headers.get(b"content-length", b"")
        known = int(length) if length.isdigit() and len(length) < MOST_DIGITS else 0
        return cls(bytes.fromhex(key), token, encoding == b"gzip", known)


def _query(text: bytes) -> dict[str, list[str]]:
    if not text:
        return {}
    try:
        return parse_qs(text.decode("latin-1"), max_num_fields=MOST_FIELDS)
    except ValueError:
        raise Problem(BAD_QUERY, f"expected at most {MOST_FIELDS} fields in the query") from None


def bearer(header: bytes | None) -> str | None:
    """The token in an Authorization header."""
    scheme, _, token = (header or b"").decode("latin-1").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


class Ingest:
    """The route that takes uploads."""

    def __init__(self, collector: Collector) -> None:
        self.collector = collector
        self._limit = collector.settings.max_body
        self._headers: Headers = []
        if origin := collector.settings.cors.encode():
            self._headers += [
                (b"access-control-allow-origin", origin),
                (b"access-control-expose-headers", b"retry-after"),
            ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "OPTIONS":
            await answer(send, 204, preflight(self.collector.settings.cors, METHODS), b"")
            return
        incoming = Incoming(receive, self.collector.deadlines, self._limit)
        try:
            accepted = await self._accept(scope, incoming)
        except Disconnected:
            return
        except Exception as error:
            await incoming.discard()
            await self._refuse(send, error)
            return
        self.collector.metrics.answers[202] += 1
        headers = [*self._headers, (b"content-type", b"application/json")]
        await answer(send, 202, headers, b'{"accepted": %d}' % accepted)

    async def _refuse(self, send: Send, error: Exception) -> None:
        # The error must not become a local variable of a frame in its own traceback: such a cycle
        # would keep the unread body, and the server its connection, until garbage is collected.
        problem = error if isinstance(error, Problem) else _failure(error)
        self.collector.metrics.answers[problem.status] += 1
        await answer(send, problem.status, self._headers + problem.headers(), problem.body())

    async def _accept(self, scope: Scope, incoming: Incoming) -> int:
        """Take the upload and wait until it is durable; returns its number of reports."""
        if scope["method"] != "POST":
            raise Problem(NOT_ALLOWED, f"expected {METHODS.decode()}", allow=METHODS)
        envelope = Envelope.of(scope)
        bucket = self._admit(envelope)
        with self.collector.budget.share() as share:
            data = await incoming.read(share)
            self.collector.metrics.bytes += len(data)
            if envelope.gzipped:
                data = await self._decompressed(data, share)
            upload = await _aside(data, self.collector.catalogue.upload, envelope.key, today())
            return await self._store(upload, bucket)

    def _admit(self, envelope: Envelope) -> Bucket | None:
        """What can be refused before the body is read. Returns the quota to count it on."""
        bucket = None
        if envelope.token is not None or self.collector.settings.require_key:
            keyring = self.collector.keyring
            bucket = keyring.bucket(keyring.demand(envelope.token, ROLE))
            bucket.check()
        if envelope.length > self._limit:
            raise Problem(TOO_LARGE, f"expected at most {self._limit} bytes, got {envelope.length}")
        if self.collector.disk_low:
            raise Problem(DISK, "the disk is nearly full: try again later", FULL_WAIT)
        if self.collector.writer.full:
            raise Problem(BUSY, "too many uploads wait for the store: try again later", soon())
        return bucket

    async def _decompressed(self, data: bytes, share: Share) -> bytes:
        # Taken before it is known how much will come out: so many bytes may exist at once.
        share.take(self._limit)
        plain = await _aside(data, gunzip, self._limit)
        share.give(self._limit - len(plain))
        return plain

    async def _store(self, upload: Upload, bucket: Bucket | None) -> int:
        if bucket is not None:
            bucket.take(upload.reports)
        outcome = None
        try:
            outcome = await self.collector.writer.submit(upload)
        finally:
            if bucket is not None and outcome is not Outcome.STORED:
                bucket.give_back(upload.reports)
        if outcome is Outcome.CONFLICT:
            raise Problem(
                CONFLICT, "another body was stored under this key: draw a new key for each upload"
            )
        if outcome is Outcome.REPEATED:
            self.collector.metrics.repeated += 1
        else:
            self.collector.metrics.reports += upload.reports
        return upload.reports


async def _aside(data: bytes, work: Callable[..., T], *args: Any) -> T:
    """work(data, *args), in a thread if there is much data."""
    if len(data) <= INLINE:
        return work(data, *args)
    return await asyncio.to_thread(work, data, *args)


def _failure(error: Exception) -> Problem:
    # The text of an unforeseen error may quote the request, so only its kind is logged.
    log.error("an upload failed: %s", type(error).__name__)
    return Problem(FAILED, "the upload was not stored: try again later", soon())


def preflight(origin: str, methods: bytes) -> Headers:
    """What a browser asks before it lets a page of another origin send something."""
    if not origin:
        return [(b"allow", methods)]
    return [
        (b"allow", methods),
        (b"access-control-allow-origin", origin.encode()),
        (b"access-control-allow-methods", methods),
        (
            b"access-control-allow-headers",
            b"authorization, content-encoding, content-type, idempotency-key, if-none-match",
        ),
        (b"access-control-max-age", b"86400"),
    ]


async def answer(send: Send, status: int, headers: Headers, body: bytes) -> None:
    """One whole response."""
    if body:
        headers = [*headers, (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
