"""Refusals as RFC 9457 problem details: what was expected, what came, what to do."""

from __future__ import annotations

import json
from dataclasses import dataclass
from http import HTTPStatus

CONTENT_TYPE = b"application/problem+json"


@dataclass(frozen=True)
class Kind:
    """One sort of refusal: its name in `type`, its status and its title."""

    name: str
    status: int
    title: str


MALFORMED = Kind("malformed", 400, "The body is not a report or a batch of reports")
BAD_KEY = Kind("idempotency-key", 400, "The idempotency key is missing or malformed")
BAD_QUERY = Kind("query", 400, "The query cannot be understood")
BAD_ORDER = Kind("order", 400, "The job cannot be understood")
UNAUTHORISED = Kind("unauthorised", 401, "A valid token is needed")
FORBIDDEN = Kind("forbidden", 403, "The token is for something else")
UNKNOWN_SURVEY = Kind("unknown-survey", 404, "No such survey is collected here")
UNKNOWN_JOB = Kind("unknown-job", 404, "There is no such job, or no longer")
NOT_FOUND = Kind("not-found", 404, "There is nothing here")
NOT_ALLOWED = Kind("method", 405, "This is not done here")
TOO_SLOW = Kind("too-slow", 408, "The body took too long to arrive")
CONFLICT = Kind("key-reused", 409, "The idempotency key belongs to another upload")
NO_RESULT = Kind("no-result", 409, "The job has no result")
EXPIRED = Kind("survey-expired", 410, "The survey has ended")
TOO_LARGE = Kind("too-large", 413, "The body is too large")
WRONG_TYPE = Kind("content-type", 415, "The body's type or encoding is not taken")
QUOTA = Kind("quota", 429, "The key has used up its quota")
FAILED = Kind("failed", 500, "The collector failed")
BUSY = Kind("busy", 503, "The collector is busy")
UNAVAILABLE = Kind("store-unavailable", 503, "The store cannot be reached")
DISK = Kind("disk-full", 507, "The collector's disk is nearly full")


class Problem(Exception):
    """A request that is refused; raised anywhere below a route, answered in one place."""

    def __init__(
        self, kind: Kind, detail: str, retry_after: int | None = None, allow: bytes = b""
    ) -> None:
        super().__init__(detail)
        self.kind, self.detail, self.retry_after, self.allow = kind, detail, retry_after, allow

    @property
    def status(self) -> int:
        return self.kind.status

    def body(self) -> bytes:
        """The problem as JSON."""
        kind = self.kind
        content = {
            "type": f"urn:deniable:problem:{kind.name}", "title": kind.title,
            "status": kind.status, "detail": self.detail,
        }  # fmt: skip
        return json.dumps(content).encode()

    def headers(self) -> list[tuple[bytes, bytes]]:
        """Headers that belong to the refusal."""
        found = [(b"content-type", CONTENT_TYPE), (b"cache-control", b"no-store")]
        if self.retry_after is not None:
            found.append((b"retry-after", b"%d" % self.retry_after))
        if self.allow:
            found.append((b"allow", self.allow))
        if self.kind is UNAUTHORISED:
            found.append((b"www-authenticate", b"Bearer"))
        return found


def of_status(status: int) -> Kind:
    """The kind for a status that the framework chose."""
    known = {404: NOT_FOUND, 405: NOT_ALLOWED}
    return known.get(status) or Kind("http", status, HTTPStatus(status).phrase)
