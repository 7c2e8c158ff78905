"""`POST /v1/reports`, as plain ASGI: nothing stands between the server and the queue.

Everything is checked before it is queued, cheapest first, and nothing is acknowledged before it is
durable. Of a request only its body, its idempotency key and its ingest key are ever looked at.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import parse_qs

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from deniable.collector.api import problems
from deniable.collector.api.problems import Problem, problem_of
from deniable.collector.ingest.body import Disconnected, Incoming, gunzip
from deniable.collector.ingest.catalogue import today
from deniable.collector.keyring import Bucket
from deniable.store import Outcome, Upload

if TYPE_CHECKING:
    from deniable.collector.app import Collector

T = TypeVar("T")
Headers = dict[str, str]

PATH = "/v1/reports"
METHODS = "POST, OPTIONS"
ROLE = "ingest"
CONTENT_TYPE = b"application/octet-stream"
KEY = re.compile(r"[0-9a-f]{32}")
LENGTH = re.compile(rb"[0-9]{1,19}")
MAX_FIELDS = 16
INLINE = 1 << 17
"""Bodies above this are decompressed and checked in a thread, so that others need not wait."""


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
        if headers.get(b"content-type", b"").split(b";")[0].strip().lower() != CONTENT_TYPE:
            raise Problem(problems.WRONG_TYPE, f"expected Content-Type {CONTENT_TYPE.decode()}")
        encoding = headers.get(b"content-encoding", b"identity").strip().lower()
        if encoding not in (b"identity", b"gzip"):
            raise Problem(problems.WRONG_TYPE, "expected Content-Encoding gzip, or none")
        query = _query(scope["query_string"])
        key = headers.get(b"idempotency-key", b"").decode("latin-1") or query.get("key", [""])[0]
        if not KEY.fullmatch(key):
            raise Problem(
                problems.BAD_KEY,
                "expected Idempotency-Key (or ?key=) of 32 lower-case hexadecimal digits, random, "
                "new for each upload and the same when it is tried again",
            )
        authorization = headers.get(b"authorization", b"").decode("latin-1")
        token = bearer(authorization) or query.get("token", [None])[0]
        length = LENGTH.fullmatch(headers.get(b"content-length", b""))
        return cls(bytes.fromhex(key), token, encoding == b"gzip", int(length[0]) if length else 0)


def _query(text: bytes) -> dict[str, list[str]]:
    if not text:
        return {}
    try:
        return parse_qs(text.decode("latin-1"), max_num_fields=MAX_FIELDS)
    except ValueError:
        wanted = f"expected at most {MAX_FIELDS} fields in the query"
        raise Problem(problems.BAD_QUERY, wanted) from None


def bearer(header: str) -> str | None:
    """Return the token in an Authorization header."""
    scheme, _, token = header.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


class Ingest:
    """The route that takes uploads."""

    def __init__(self, collector: Collector) -> None:
        self.collector = collector
        self._limit = collector.settings.max_body
        self._headers: Headers = {}
        if origin := collector.settings.cors:
            self._headers["access-control-allow-origin"] = origin
            self._headers["access-control-expose-headers"] = "retry-after"
        accepted = self._headers | {"content-type": "application/json"}
        self._accepted = [(k.encode("latin-1"), v.encode("latin-1")) for k, v in accepted.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "OPTIONS":
            allowed = preflight(self.collector.settings.cors, METHODS)
            await Response(status_code=204, headers=allowed)(scope, receive, send)
            return
        incoming = self.collector.incoming(receive)
        try:
            accepted = await self._accept(scope, incoming)
        except Disconnected:
            return
        except Exception as error:
            await incoming.discard()
            await self._refusal(error)(scope, receive, send)
            return
        self.collector.metrics.answers[202] += 1
        body = b'{"accepted": %d}' % accepted
        headers = [*self._accepted, (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 202, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    def _refusal(self, error: Exception) -> Response:
        # The error must not become a local variable of a frame in its own traceback: such a cycle
        # would keep the unread body, and the server its connection, until garbage is collected.
        problem = problem_of(error)
        self.collector.metrics.answers[problem.status] += 1
        return Response(problem.body(), problem.status, self._headers | problem.headers)

    async def _accept(self, scope: Scope, incoming: Incoming) -> int:
        """Take the upload and wait until it is durable; returns its number of reports."""
        if scope["method"] != "POST":
            raise Problem(problems.NOT_ALLOWED, f"expected {METHODS}", {"allow": METHODS})
        envelope = Envelope.of(scope)
        bucket = self._admit(envelope)
        with incoming:
            data = await incoming.read()
            self.collector.metrics.totals["upload_bytes"] += len(data)
            if envelope.gzipped:
                # Held before it is known how much comes out: so many bytes may exist at once.
                incoming.hold(self._limit)
                data = await _aside(data, lambda data: gunzip(data, self._limit))
                incoming.hold(len(data) - self._limit)
            check = self.collector.catalogue.upload
            upload = await _aside(data, lambda data: check(data, envelope.key, today()))
            return await self._store(upload, bucket)

    def _admit(self, envelope: Envelope) -> Bucket | None:
        """Refuse what can be refused before the body is read; returns the quota to count it on."""
        bucket = None
        if envelope.token is not None or self.collector.settings.require_key:
            keyring = self.collector.keyring
            bucket = keyring.bucket(keyring.demand(envelope.token, ROLE))
            bucket.check()
        if envelope.length > self._limit:
            wanted = f"expected at most {self._limit} bytes, got {envelope.length}"
            raise Problem(problems.TOO_LARGE, wanted)
        if self.collector.disk_low:
            raise Problem(problems.DISK, "the disk is nearly full: try again later")
        self.collector.writer.check_room()
        return bucket

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
            wanted = "another body was stored under this key: draw a new key for each upload"
            raise Problem(problems.CONFLICT, wanted)
        if outcome is Outcome.REPEATED:
            self.collector.metrics.totals["repeated_uploads"] += 1
        else:
            self.collector.metrics.totals["reports"] += upload.reports
        return upload.reports


async def _aside(data: bytes, work: Callable[[bytes], T]) -> T:
    """Return work(data), done in a thread if there is much data."""
    return work(data) if len(data) <= INLINE else await asyncio.to_thread(work, data)


def preflight(origin: str, methods: str) -> Headers:
    """Return what a browser asks before it lets a page of another origin send something."""
    headers = {"allow": methods}
    if origin:
        sent = "authorization, content-encoding, content-type, idempotency-key, if-none-match"
        headers |= {
            "access-control-allow-origin": origin,
            "access-control-allow-methods": methods,
            "access-control-allow-headers": sent,
            "access-control-max-age": "86400",
        }
    return headers
