"""Refused requests as RFC 9457 problem details: what is wrong, and what to do next."""

from __future__ import annotations

import json
import logging
import random
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

from starlette.exceptions import HTTPException

from deniable.collector.logs import log_event
from deniable.errors import StoreError, StoreFull, StoreUnavailable

RETRY_SOON = range(1, 9)
"""Seconds before a retry, drawn at random so that clients do not all return at once."""
RETRY_WHEN_DISK_FULL = range(60, 61)
"""Seconds before a retry while the disk is full."""


@dataclass(frozen=True)
class ProblemKind:
    """One kind of refusal.

    name : last part of the URN in `type`; status : HTTP status; title : summary for people;
    wait : range of seconds for `Retry-After`, if a retry may succeed
    """

    name: str
    status: int
    title: str
    wait: range | None = None


MALFORMED = ProblemKind("malformed", 400, "The body is not a report or a batch of reports")
BAD_KEY = ProblemKind("idempotency-key", 400, "The idempotency key is missing or malformed")
BAD_QUERY = ProblemKind("query", 400, "The query string is not valid")
BAD_JOB = ProblemKind("order", 400, "The request for a job is not valid")
UNAUTHORISED = ProblemKind("unauthorised", 401, "A valid access key is required")
FORBIDDEN = ProblemKind("forbidden", 403, "The access key does not allow this request")
UNKNOWN_SURVEY = ProblemKind("unknown-survey", 404, "There is no such survey")
UNKNOWN_JOB = ProblemKind("unknown-job", 404, "There is no such job")
NOT_FOUND = ProblemKind("not-found", 404, "There is no such page or file")
NOT_ALLOWED = ProblemKind("method", 405, "The method is not allowed")
TOO_SLOW = ProblemKind("too-slow", 408, "The body took too long to arrive", RETRY_SOON)
INCOMPLETE = ProblemKind("incomplete", 408, "The body did not arrive completely", RETRY_SOON)
CONFLICT = ProblemKind("key-reused", 409, "The idempotency key belongs to another upload")
NO_RESULT = ProblemKind("no-result", 409, "The job has no result")
EXPIRED = ProblemKind("survey-expired", 410, "The survey has ended")
TOO_LARGE = ProblemKind("too-large", 413, "The body is too large")
WRONG_TYPE = ProblemKind("content-type", 415, "The content type or encoding is not supported")
QUOTA = ProblemKind("quota", 429, "The key has used up its quota")
FAILED = ProblemKind("failed", 500, "The collector failed", RETRY_SOON)
BUSY = ProblemKind("busy", 503, "The collector is busy", RETRY_SOON)
UNAVAILABLE = ProblemKind("store-unavailable", 503, "The store is not available", RETRY_SOON)
DISK = ProblemKind("disk-full", 507, "The collector's disk is nearly full", RETRY_WHEN_DISK_FULL)

NO_ROUTE = "there is nothing here: POST reports to /v1/reports; /openapi.json lists every route"

UPLOAD_REFUSALS = (
    MALFORMED,
    BAD_KEY,
    BAD_QUERY,
    UNAUTHORISED,
    FORBIDDEN,
    UNKNOWN_SURVEY,
    NOT_ALLOWED,
    TOO_SLOW,
    INCOMPLETE,
    CONFLICT,
    EXPIRED,
    TOO_LARGE,
    WRONG_TYPE,
    QUOTA,
    FAILED,
    BUSY,
    UNAVAILABLE,
    DISK,
)
"""Kinds of problems for which an upload may be refused."""


class Problem(Exception):
    """A refused request, raised anywhere below a route and answered in one place.

    detail : what is wrong with this request and what to do next
    headers : HTTP headers in addition to those of every refusal
    """

    def __init__(
        self, kind: ProblemKind, detail: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.kind, self.detail = kind, detail
        self.headers = {"content-type": "application/problem+json", "cache-control": "no-store"}
        if kind.wait:
            # This number is no secret: it only spreads load.
            self.headers["retry-after"] = str(random.choice(kind.wait))  # noqa: S311
        if kind is UNAUTHORISED:
            self.headers["www-authenticate"] = "Bearer"
        self.headers.update(headers or {})

    @property
    def status(self) -> int:
        """HTTP status."""
        return self.kind.status

    def body(self) -> bytes:
        """Return the problem as JSON."""
        kind = self.kind
        content = {"type": f"urn:deniable:problem:{kind.name}", "title": kind.title}
        return json.dumps({**content, "status": kind.status, "detail": self.detail}).encode()


def to_problem(error: Exception) -> Problem:
    """Return the refusal for an exception of any kind."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, HTTPException):
        kind = _kind_of(error.status_code)
        detail = NO_ROUTE if kind is NOT_FOUND else str(error.detail)
        return Problem(kind, detail, error.headers)
    if isinstance(error, StoreFull):
        return Problem(DISK, "the disk is full: try again later")
    if isinstance(error, StoreUnavailable):
        return Problem(UNAVAILABLE, "the store is not available: try again later")
    if isinstance(error, StoreError):
        detail = "the store has a problem: the operator finds it with `deniable store check STORE`"
        return Problem(UNAVAILABLE, detail)
    # The message of an unexpected exception may quote the request, so only its type is logged.
    name = type(error).__name__
    log_event("request-failed", f"a request failed: {name}", logging.ERROR, error=name)
    return Problem(FAILED, "the collector failed because of an internal error: try again later")


def _kind_of(status: int) -> ProblemKind:
    """Return the kind of refusal for an HTTP status that Starlette chose."""
    known = {404: NOT_FOUND, 405: NOT_ALLOWED}
    return known.get(status) or ProblemKind("http", status, HTTPStatus(status).phrase)
