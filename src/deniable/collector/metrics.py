"""Counters in Prometheus' text format, without labels that identify clients or surveys."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping
from itertools import accumulate

from deniable.formatting import counted

COMMIT_SECONDS_BOUNDS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
COUNTERS = {
    "reports": "Reports stored.",
    "repeated_uploads": "Uploads that were stored before.",
    "upload_bytes": "Bytes of upload bodies read.",
    "store_errors": "Failed commits.",
    "compacted_reports": "Reports moved from staging to segments.",
    "deleted_reports": "Reports deleted after keep_days.",
    "closed_connections": "Connections closed to leave room for other clients.",
}


class Metrics:
    """Counters since the start of the collector.

    The event loop counts answers; the writer's thread counts commits.

    totals : counters by name, see `COUNTERS`; answers : number of uploads by HTTP status
    """

    def __init__(self) -> None:
        self.totals = Counter[str]()
        self.answers = Counter[int]()
        self._commit_seconds = 0.0
        self._buckets = [0] * (len(COMMIT_SECONDS_BOUNDS) + 1)

    def count_commit(self, seconds: float) -> None:
        """Count one commit and its duration."""
        self._commit_seconds += seconds
        self._buckets[bisect_left(COMMIT_SECONDS_BOUNDS, seconds)] += 1

    def log_line(self) -> str:
        """Return the totals since the start as one line for the log."""
        statuses = ", ".join(f"{status}: {n}" for status, n in sorted(self.answers.items()))
        reports = counted(self.totals["reports"], "report")
        stored = f"{reports} stored in {counted(sum(self._buckets), 'commit')}"
        return f"{stored}; uploads by HTTP status: {statuses or 'none'}"

    def text(self, gauges: Mapping[str, tuple[str, float]]) -> str:
        """Return all counters, and gauges given as name → (help, value)."""
        lines = _family("deniable_uploads_total", "counter", "Uploads by HTTP status.")
        for status, count in sorted(self.answers.items()):
            lines.append(f'deniable_uploads_total{{status="{status}"}} {count}')
        for name, help in COUNTERS.items():
            lines += _family(f"deniable_{name}_total", "counter", help)
            lines.append(f"deniable_{name}_total {self.totals[name]}")
        lines += self._histogram()
        for name, (help, number) in gauges.items():
            lines += _family(f"deniable_{name}", "gauge", help)
            lines.append(f"deniable_{name} {number:g}")
        return "\n".join(lines) + "\n"

    def _histogram(self) -> list[str]:
        """Return the lines of the histogram of commit durations."""
        name = "deniable_commit_seconds"
        lines = _family(name, "histogram", "Duration of a commit.")
        bounds = (*COMMIT_SECONDS_BOUNDS, "+Inf")
        for bound, total in zip(bounds, accumulate(self._buckets), strict=True):
            lines.append(f'{name}_bucket{{le="{bound}"}} {total}')
        return [*lines, f"{name}_sum {self._commit_seconds:.6f}", f"{name}_count {total}"]


def _family(name: str, kind: str, help: str) -> list[str]:
    """Return the lines that introduce a metric."""
    return [f"# HELP {name} {help}", f"# TYPE {name} {kind}"]
