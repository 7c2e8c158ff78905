"""Refusals as RFC 9457 problem details: what was expected, what came, what to do."""

from __future__ import annotations

import json
import logging
import random
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

from starlette.exceptions import HTTPException

from deniable.errors import StoreError, StoreFull

SOON = range(1, 9)
"""Seconds to wait before trying again, drawn at random so that clients do not return together."""
FULL_WAIT = range(60, 61)

log = logging.getLogger("deniable.collector")


@dataclass(frozen=True)
class Kind:
    """One sort of refusal: its name in `type`, its status, its title, and when to try again."""

    name: str
    status: int
    title: str
    wait: range | None = None


MALFORMED = Kind("malformed", 400, "The body is not a report or a batch of reports")
BAD_KEY = Kind("idempotency-key", 400, "The idempotency key is missing or malformed")
BAD_QUERY = Kind("query", 400, "The query cannot be understood")
BAD_JOB = Kind("order", 400, "The job cannot be understood")
UNAUTHORISED = Kind("unauthorised", 401, "A valid token is needed")
FORBIDDEN = Kind("forbidden", 403, "The token is for something else")
UNKNOWN_SURVEY = Kind("unknown-survey", 404, "No such survey is collected here")
UNKNOWN_JOB = Kind("unknown-job", 404, "There is no such job, or no longer")
NOT_FOUND = Kind("not-found", 404, "There is nothing here")
NOT_ALLOWED = Kind("method", 405, "This is not done here")
TOO_SLOW = Kind("too-slow", 408, "The body took too long to arrive", SOON)
CONFLICT = Kind("key-reused", 409, "The idempotency key belongs to another upload")
NO_RESULT = Kind("no-result", 409, "The job has no result")
EXPIRED = Kind("survey-expired", 410, "The survey has ended")
TOO_LARGE = Kind("too-large", 413, "The body is too large")
WRONG_TYPE = Kind("content-type", 415, "The body's type or encoding is not taken")
QUOTA = Kind("quota", 429, "The key has used up its quota")
FAILED = Kind("failed", 500, "The collector failed", SOON)
BUSY = Kind("busy", 503, "The collector is busy", SOON)
UNAVAILABLE = Kind("store-unavailable", 503, "The store cannot be reached", SOON)
DISK = Kind("disk-full", 507, "The collector's disk is nearly full", FULL_WAIT)


class Problem(Exception):
    """A request that is refused; raised anywhere below a route, answered in one place.

    headers : what belongs to this refusal beside what all have
    """

    def __init__(self, kind: Kind, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.kind, self.detail = kind, detail
        self.headers = {"content-type": "application/problem+json", "cache-control": "no-store"}
        if kind.wait:
            # Not for secrets: it only spreads load.
            self.headers["retry-after"] = str(random.choice(kind.wait))  # noqa: S311
        if kind is UNAUTHORISED:
            self.headers["www-authenticate"] = "Bearer"
        self.headers.update(headers or {})

    @property
    def status(self) -> int:
        return self.kind.status

    def body(self) -> bytes:
        """Return the problem as JSON."""
        kind = self.kind
        content = {"type": f"urn:deniable:problem:{kind.name}", "title": kind.title}
        return json.dumps({**content, "status": kind.status, "detail": self.detail}).encode()


def problem_of(error: Exception) -> Problem:
    """Return the refusal that an error of any kind becomes."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, HTTPException):
        return Problem(_kind_of(error.status_code), str(error.detail), error.headers)
    if isinstance(error, StoreFull):
        return Problem(DISK, "no room is left: try again later")
    if isinstance(error, StoreError):
        return Problem(UNAVAILABLE, "the store cannot be reached: try again later")
    # The text of an unforeseen error may quote the request, so only its kind is logged.
    log.error("a request failed: %s", type(error).__name__)
    return Problem(FAILED, "this is our mistake: try again later")


def _kind_of(status: int) -> Kind:
    """Return the kind for a status that the framework chose."""
    known = {404: NOT_FOUND, 405: NOT_ALLOWED}
    return known.get(status) or Kind("http", status, HTTPStatus(status).phrase)
