"""What a run observes: answers and their latency, events, samples of the process, and faults."""

from __future__ import annotations

import json
import time
from array import array
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.resources import files

from deniable.collector.api import problems

MARGIN_SECONDS = 0.5
"""Connections may break this long before and after a restart."""


def _documented() -> dict[str, set[int]]:
    """Return the statuses that the OpenAPI description lists, by method and route."""
    text = files("deniable.collector").joinpath("openapi.json").read_text()
    return {
        f"{method.upper()} {route}": {int(status) for status in operation["responses"]}
        for route, operations in json.loads(text)["paths"].items()
        for method, operation in operations.items()
        if method in ("get", "post", "delete")
    }


DOCUMENTED = _documented()
PROBLEMS = {
    (f"urn:deniable:problem:{kind.name}", kind.status)
    for kind in vars(problems).values()
    if isinstance(kind, problems.ProblemKind)
}


def undocumented(route: str, status: int, body: bytes) -> str | None:
    """Return what is wrong with an answer to a method and route, or None."""
    if status not in DOCUMENTED[route]:
        return f"{route} was answered {status}, which is not documented: {body[:200]!r}"
    if status < 400:
        return None
    try:
        problem = json.loads(body)
        known = (problem["type"], status) in PROBLEMS and problem["status"] == status
    except (ValueError, TypeError, KeyError):
        known = False
    return None if known else f"{route} was answered {status} without a problem: {body[:200]!r}"


@dataclass
class Event:
    """Something that was done to the collector or its store; times in seconds since the start."""

    kind: str
    start: float
    end: float = -1.0
    detail: str = ""


@dataclass(frozen=True)
class Sample:
    """The collector's process at one time.

    life : number of restarts before; memory : resident bytes; files : open file descriptors
    """

    seconds: float
    life: int
    memory: int
    files: int


@dataclass
class Observations:
    """Everything that a run observes."""

    begun: float = 0.0
    answers: Counter[tuple[str, int]] = field(default_factory=Counter)
    at: array[float] = field(default_factory=lambda: array("d"))
    """When uploads were acknowledged."""
    latency: array[float] = field(default_factory=lambda: array("d"))
    """How long each of them took, in seconds."""
    broken: list[tuple[float, float]] = field(default_factory=list)
    """When requests began that were never answered, and when their connections broke."""
    counts: Counter[str] = field(default_factory=Counter)
    events: list[Event] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    """What must not happen, one sentence each."""

    def begin(self) -> None:
        """Start the clock of the run."""
        self.begun = time.monotonic()

    def now(self) -> float:
        """Return the seconds since the start."""
        return time.monotonic() - self.begun

    @contextmanager
    def event(self, kind: str) -> Iterator[Event]:
        """Record an event; an exception within it is a fault."""
        event = Event(kind, self.now())
        self.events.append(event)
        try:
            yield event
        except Exception as error:
            event.detail = "failed"
            self.fault(f"{kind}: {type(error).__name__}: {error}")
        finally:
            event.end = self.now()

    def fault(self, sentence: str) -> None:
        self.faults.append(f"at {self.now():.0f} s: {sentence}")

    def answer(self, route: str, status: int, body: bytes, expected: int | None = None) -> None:
        """Count an answer, which must be documented, and as expected if given."""
        self.answers[route, status] += 1
        if wrong := undocumented(route, status, body):
            self.fault(wrong)
        elif status == 500 or status not in (expected or status, 503):
            self.fault(f"{route}: expected {expected or 'success'}, got {status}: {body[:200]!r}")

    def acknowledged(self, start: float) -> None:
        """Record the latency of an upload that was sent at `start`."""
        now = self.now()
        self.at.append(now)
        self.latency.append(now - start)

    def restarts(self) -> list[Event]:
        return [event for event in self.events if event.kind in ("kill", "stop")]

    def unexplained(self) -> int:
        """Return how many connections broke while the collector was not being restarted."""
        down = [(e.start - MARGIN_SECONDS, e.end + MARGIN_SECONDS) for e in self.restarts()]
        return sum(
            not any(begun < up and broke > stopped for stopped, up in down)
            for begun, broke in self.broken
        )
