"""Metrics in Prometheus' text format, without labels that identify clients or surveys."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import Any

from deniable.collector.api.problems import UPLOAD_REFUSALS
from deniable.collector.logs import log_event
from deniable.collector.process_metrics import process_metrics
from deniable.formatting import counted
from deniable.version import __version__

COMMIT_SECONDS_BOUNDS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
COUNTERS = {
    "reports": "Reports stored.",
    "repeated_uploads": "Uploads that were stored before.",
    "upload_bytes": "Bytes of upload bodies read.",
    "store_errors": "Failed commits.",
    "compacted_reports": "Reports moved from staging to segments.",
    "deleted_reports": "Reports deleted after keep_days.",
}
ENDED_JOBS = ("done", "failed", "cancelled")
"""States of jobs that have ended."""

Gauges = Mapping[str, tuple[str, float]]
"""Gauges: help and value, by name without the prefix."""


class Metrics:
    """Counters since the start of the collector.

    The event loop counts answers; the writer's thread counts commits.

    totals : counters by name, see `COUNTERS`; answers : number of uploads by HTTP status;
    refusals : number of refused uploads by kind of problem; failed_tasks : failures by task;
    jobs : number of ended jobs by state. Values that may occur start at 0, so that rates count the
    first occurrence.
    """

    def __init__(self) -> None:
        self.totals = Counter[str]()
        self.answers = Counter[int]()
        self.refusals = Counter({kind.name: 0 for kind in UPLOAD_REFUSALS})
        self.failed_tasks = Counter[str]()
        self.jobs = Counter(dict.fromkeys(ENDED_JOBS, 0))
        self._commit_seconds = 0.0
        self._buckets = [0] * (len(COMMIT_SECONDS_BOUNDS) + 1)

    def count_commit(self, seconds: float) -> None:
        """Count one commit and its duration."""
        self._commit_seconds += seconds
        self._buckets[bisect_left(COMMIT_SECONDS_BOUNDS, seconds)] += 1

    def log_totals(self, event: str = "totals", prefix: str = "") -> None:
        """Log the totals since the start."""
        statuses = {str(status): count for status, count in sorted(self.answers.items())}
        listed = ", ".join(f"{status}: {count}" for status, count in statuses.items())
        reports, commits = self.totals["reports"], sum(self._buckets)
        stored = f"{counted(reports, 'report')} stored in {counted(commits, 'commit')}"
        message = f"{prefix}{stored}; uploads by HTTP status: {listed or 'none'}"
        log_event(event, message, reports=reports, commits=commits, uploads=statuses)

    def text(self, gauges: Gauges) -> str:
        """Return all metrics."""
        return "\n".join(self._lines(gauges)) + "\n"

    def _lines(self, gauges: Gauges) -> Iterator[str]:
        yield from _family("deniable_build_info", "gauge", "Version of the collector; always 1.")
        yield f'deniable_build_info{{version="{__version__}"}} 1'
        yield from _labelled("uploads", "Uploads by HTTP status.", "status", self.answers)
        yield from _labelled("refused_uploads", "Refused uploads.", "reason", self.refusals)
        yield from _labelled("failed_maintenance", "Failed tasks.", "task", self.failed_tasks)
        yield from _labelled("jobs", "Analyses that have ended.", "state", self.jobs)
        for name, help in COUNTERS.items():
            yield from _family(f"deniable_{name}_total", "counter", help)
            yield f"deniable_{name}_total {self.totals[name]}"
        yield from self._histogram()
        for name, (help, number) in gauges.items():
            yield from _family(f"deniable_{name}", "gauge", help)
            yield f"deniable_{name} {_number(number)}"
        for name, (kind, help, number) in process_metrics().items():
            yield from _family(name, kind, help)
            yield f"{name} {_number(number)}"

    def _histogram(self) -> Iterator[str]:
        """Yield the lines of the histogram of commit durations."""
        name = "deniable_commit_seconds"
        yield from _family(name, "histogram", "Duration of a commit.")
        bounds = (*COMMIT_SECONDS_BOUNDS, "+Inf")
        for bound, total in zip(bounds, accumulate(self._buckets), strict=True):
            yield f'{name}_bucket{{le="{bound}"}} {total}'
        yield f"{name}_sum {self._commit_seconds:.6f}"
        yield f"{name}_count {total}"


def _family(name: str, kind: str, help: str) -> Iterator[str]:
    """Yield the lines that introduce a metric."""
    yield f"# HELP {name} {help}"
    yield f"# TYPE {name} {kind}"


def _labelled(name: str, help: str, label: str, counts: Mapping[Any, int]) -> Iterator[str]:
    """Yield the lines of a counter with one label."""
    yield from _family(f"deniable_{name}_total", "counter", help)
    for value, count in sorted(dict(counts).items()):
        yield f'deniable_{name}_total{{{label}="{value}"}} {count}'


def _number(value: float) -> str:
    """Return a number with all its digits: bytes and times need more than six."""
    return f"{value:.15g}"
