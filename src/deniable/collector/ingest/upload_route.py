"""`POST /v1/reports`, as plain ASGI, so that nothing slows down the way to the queue.

An upload is checked before it is queued, with the cheapest checks first, and acknowledged after it
is durable. Nothing but the body, the idempotency key and the access key of a request is used.

An upload has one report, so that nobody outvotes a crowd with one request. Only the holder of a
gateway key may send batches.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar
from urllib.parse import parse_qs

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from deniable.collector.api import problems
from deniable.collector.api.problems import Problem, to_problem
from deniable.collector.ingest.body import IncomingBody, gunzip
from deniable.collector.ingest.catalogue import claimed_reports
from deniable.collector.keyring import Bucket
from deniable.collector.keys import GATEWAY, INGEST, Key
from deniable.store import Outcome, Upload

if TYPE_CHECKING:
    from deniable.collector.app import Collector

P = ParamSpec("P")
T = TypeVar("T")
Headers = dict[str, str]

UPLOAD_PATH = "/v1/reports"
METHODS = "POST, OPTIONS"
ROLES = (INGEST, GATEWAY)
CONTENT_TYPE = b"application/octet-stream"
KEY_PATTERN = re.compile(r"[0-9a-f]{32}")
LENGTH_PATTERN = re.compile(rb"[0-9]{1,19}")
MAX_QUERY_FIELDS = 16
QUERY_FIELDS = {"key", "token"}
MAX_INLINE_BYTES = 1 << 17
"""Larger bodies are decompressed and checked in a thread, so that other requests do not wait."""


@dataclass(frozen=True)
class UploadHeaders:
    """The headers and query fields of an upload that the collector uses.

    key : idempotency key; token : access token, if any; gzipped : whether the body is compressed;
    length : length of the body according to its header, or 0
    """

    key: bytes
    token: str | None
    gzipped: bool
    length: int

    @classmethod
    def of(cls, scope: Scope) -> UploadHeaders:
        """Read the headers and query fields of a request, or raise Problem."""
        headers = dict(scope["headers"])
        content_type = headers.get(b"content-type", b"").split(b";")[0].strip().lower()
        if content_type != CONTENT_TYPE:
            got = content_type.decode("latin-1")[:80] or "none"
            wanted = f"the header Content-Type: {CONTENT_TYPE.decode()}"
            raise Problem(problems.WRONG_TYPE, f"a report needs {wanted}; got {got}")
        encoding = headers.get(b"content-encoding", b"identity").strip().lower()
        if encoding not in (b"identity", b"gzip"):
            detail = "expected Content-Encoding gzip or identity, or no such header"
            raise Problem(problems.WRONG_TYPE, detail)
        query = _query(scope["query_string"])
        key = headers.get(b"idempotency-key", b"").decode("latin-1") or query.get("key", [""])[0]
        if not KEY_PATTERN.fullmatch(key):
            raise Problem(
                problems.BAD_KEY,
                "expected Idempotency-Key (or ?key=) with 32 lower-case hexadecimal digits: "
                "draw a random key for each upload, and repeat it when you retry",
            )
        authorization = headers.get(b"authorization", b"").decode("latin-1")
        token = bearer(authorization) or query.get("token", [None])[0]
        length = LENGTH_PATTERN.fullmatch(headers.get(b"content-length", b""))
        return cls(bytes.fromhex(key), token, encoding == b"gzip", int(length[0]) if length else 0)


def _query(text: bytes) -> dict[str, list[str]]:
    """Return the fields of a query string, or raise Problem if there are others than expected."""
    if not text:
        return {}
    try:
        fields = parse_qs(text.decode("latin-1"), max_num_fields=MAX_QUERY_FIELDS)
    except ValueError:
        detail = f"expected at most {MAX_QUERY_FIELDS} fields in the query string"
        raise Problem(problems.BAD_QUERY, detail) from None
    if fields.keys() - QUERY_FIELDS:
        detail = "expected only the fields key and token in the query string: check their names"
        raise Problem(problems.BAD_QUERY, detail)
    return fields


def bearer(header: str) -> str | None:
    """Return the token of an Authorization header, or None."""
    scheme, _, token = header.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


class UploadRoute:
    """The ASGI application for uploads."""

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
        """Answer one request (ASGI)."""
        if scope["method"] == "OPTIONS":
            allowed = preflight(self.collector.settings.cors, METHODS)
            await Response(status_code=204, headers=allowed)(scope, receive, send)
            return
        incoming = IncomingBody(receive, self.collector.limits)
        try:
            accepted = await self._accept(scope, incoming)
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
        """Return the answer to a refused upload."""
        # The error must not become a local variable of a frame in its own traceback: that cycle
        # would keep the body and the connection in memory until the next garbage collection.
        problem = to_problem(error)
        self.collector.metrics.answers[problem.status] += 1
        self.collector.metrics.refusals[problem.kind.name] += 1
        return Response(problem.body(), problem.status, self._headers | problem.headers)

    async def _accept(self, scope: Scope, incoming: IncomingBody) -> int:
        """Store the upload, wait until it is durable, and return its number of reports."""
        if scope["method"] != "POST":
            raise Problem(problems.NOT_ALLOWED, f"expected one of {METHODS}", {"allow": METHODS})
        headers = UploadHeaders.of(scope)
        key, bucket = self._admit(headers)
        with incoming:
            data = await incoming.read()
            self.collector.metrics.totals["upload_bytes"] += len(data)
            if headers.gzipped:
                data = await self._unzipped(data, incoming)
            _check_batch(claimed_reports(data), key)
            check, today = self.collector.catalogue.upload, self.collector.today()
            upload = await _in_thread_if_large(check, data, headers.key, today)
            return await self._store(upload, bucket)

    async def _unzipped(self, data: bytes, incoming: IncomingBody) -> bytes:
        """Decompress a body."""
        # The decompressed size is unknown yet, so reserve the largest possible one.
        incoming.hold(self._limit)
        data = await _in_thread_if_large(gunzip, data, self._limit)
        incoming.hold(len(data) - self._limit)
        return data

    def _admit(self, headers: UploadHeaders) -> tuple[Key | None, Bucket]:
        """Refuse an upload before its body is read, or return its access key and quota."""
        key, bucket = None, Bucket(0)
        if headers.token is not None or self.collector.settings.require_key:
            key = self.collector.keyring.authorise(headers.token, *ROLES)
            bucket = self.collector.keyring.bucket(key)
            if key.max_batch == 1:  # otherwise the number of reports decides how long to wait
                bucket.check()
        if headers.length > self._limit:
            detail = f"expected a body of at most {self._limit} bytes, got {headers.length}"
            raise Problem(problems.TOO_LARGE, detail)
        if self.collector.disk_low:
            raise Problem(problems.DISK, "the disk is nearly full: try again later")
        self.collector.writer.check_capacity()
        return key, bucket

    async def _store(self, upload: Upload, bucket: Bucket) -> int:
        """Queue the upload and wait until it is durable; return its number of reports."""
        bucket.take(upload.reports)
        outcome = None
        try:
            outcome = await self.collector.writer.submit(upload)
        finally:
            if outcome is not Outcome.STORED:
                bucket.refund(upload.reports)
        if outcome is Outcome.CONFLICT:
            detail = "a different body was stored under this key: draw a new key for each upload"
            raise Problem(problems.CONFLICT, detail)
        if outcome is Outcome.REPEATED:
            self.collector.metrics.totals["repeated_uploads"] += 1
        else:
            self.collector.metrics.totals["reports"] += upload.reports
        return upload.reports


def _check_batch(reports: int, key: Key | None) -> None:
    """Raise Problem if an upload has more reports than its access key allows."""
    if reports <= (key.max_batch if key else 1):
        return
    if key is not None and key.role == GATEWAY:
        detail = f"this {GATEWAY} key may send {key.max_batch} reports per upload, and this upload "
        raise Problem(problems.TOO_LARGE, f"{detail}has {reports}: send smaller batches")
    kind, got = problems.UNAUTHORISED, "no key"
    if key is not None:
        kind, got = problems.FORBIDDEN, f"an {key.role} key"
    raise Problem(
        kind,
        f"a batch of {reports} reports needs a {GATEWAY} key, and this request has {got}: send one "
        f"report per upload, or get a key that was made with `deniable keys add --role {GATEWAY}`",
    )


async def _in_thread_if_large(
    work: Callable[Concatenate[bytes, P], T], data: bytes, *args: P.args, **kwargs: P.kwargs
) -> T:
    """Return work(data, …), computed in a thread if there is much data."""
    if len(data) <= MAX_INLINE_BYTES:
        return work(data, *args, **kwargs)
    return await asyncio.to_thread(work, data, *args, **kwargs)


def preflight(origin: str, methods: str) -> Headers:
    """Return the headers that answer a CORS preflight request.

    origin : allowed origin, or "" for none; methods : allowed methods, such as "POST, OPTIONS"
    """
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
