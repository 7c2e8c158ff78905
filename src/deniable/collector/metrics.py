"""Counts of what the collector does, as Prometheus text. No label says who or which survey."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping

COMMIT_SECONDS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
COUNTERS = {
    "reports": "Reports stored.",
    "repeated_uploads": "Uploads that had been stored before.",
    "upload_bytes": "Bytes of bodies read.",
    "store_errors": "Commits that failed.",
    "compacted_reports": "Reports moved from staging to segments.",
    "deleted_reports": "Reports deleted because of their age.",
}


class Metrics:
    """Counters since the start. The event loop counts answers, the writer's thread commits.

    totals : by the names of `COUNTERS`; answers : uploads by the status of their answer
    """

    def __init__(self) -> None:
        self.totals = Counter[str]()
        self.answers = Counter[int]()
        self._commit_seconds = 0.0
        self._buckets = [0] * (len(COMMIT_SECONDS) + 1)

    def committed(self, seconds: float) -> None:
        """Count one commit, which took so long."""
        self._commit_seconds += seconds
        self._buckets[bisect_left(COMMIT_SECONDS, seconds)] += 1

    def line(self) -> str:
        """Return a line for the log: totals since the start."""
        statuses = ", ".join(f"{status}: {n}" for status, n in sorted(self.answers.items()))
        done = f"{self.totals['reports']} reports in {sum(self._buckets)} commits"
        return f"{done}; uploads by answer: {statuses or 'none'}"

    def text(self, gauges: Mapping[str, tuple[str, float]]) -> str:
        """Return all counters, then gauges (name → help and value) read now, for Prometheus."""
        lines = _family("deniable_uploads_total", "counter", "Uploads by the answer given.")
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
        name = "deniable_commit_seconds"
        lines = _family(name, "histogram", "How long one commit of waiting uploads took.")
        total = 0
        for bound, count in zip((*COMMIT_SECONDS, "+Inf"), self._buckets, strict=True):
            total += count
            lines.append(f'{name}_bucket{{le="{bound}"}} {total}')
        return [*lines, f"{name}_sum {self._commit_seconds:.6f}", f"{name}_count {total}"]


def _family(name: str, kind: str, help: str) -> list[str]:
    return [f"# HELP {name} {help}", f"# TYPE {name} {kind}"]
