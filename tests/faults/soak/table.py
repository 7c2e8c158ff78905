"""The table of a run, for the documentation."""

from __future__ import annotations

from collections import Counter

import numpy as np

from deniable.formatting import counted
from tests.faults.soak.collector import SoakedCollector
from tests.faults.soak.observed import Observations
from tests.faults.soak.trend import Trend
from tests.faults.soak.verdict import MIB, trends

Row = tuple[str, str]


def rows(run: SoakedCollector) -> dict[str, Row]:
    """Return the rows of the table, by name."""
    return {**clients(run), **operations(run.seen), **outcome(run.seen)}


def clients(run: SoakedCollector) -> dict[str, Row]:
    """Return what clients did."""
    seen, uploads = run.seen, run.uploads
    reports = uploads.reports(acknowledged=True)
    refused = Counter[int]()
    for (_, status), count in seen.answers.items():
        if status >= 400:
            refused[status] += count
    return {
        "uploads": ("uploads acknowledged", f"{len(uploads):,}, with {reports:,} reports"),
        "again": ("uploads sent again", f"{seen.counts['sent again']:,}"),
        "cut": ("connections cut by clients", f"{seen.counts['connections cut']:,}"),
        "broken": ("requests interrupted by restarts", f"{len(seen.broken):,}"),
        "slow": ("slow clients that were disconnected", f"{seen.counts['slow clients']:,}"),
        "refused": (
            "requests refused, by status; each status is documented",
            ", ".join(f"{status}: {count:,}" for status, count in sorted(refused.items())),
        ),
    }


def operations(seen: Observations) -> dict[str, Row]:
    """Return what was done to the collector and its store."""
    kinds = Counter(event.kind for event in seen.events if event.detail != "interrupted")
    interrupted = sum(event.detail == "interrupted" for event in seen.events)
    jumps = [int(e.detail.split()[0]) for e in seen.events if e.kind == "jump" and e.detail]
    spread = f", by {min(jumps):+d} to {max(jumps):+d} days" if jumps else ""
    return {
        "restarts": ("collector killed; stopped", f"{kinds['kill']:,}; {kinds['stop']:,}"),
        "jumps": ("jumps of the collector's clock", f"{len(jumps):,}{spread}"),
        "compactions": (
            "compactions by the collector; by a command, of which some were killed",
            f"{kinds['compaction']:,}; {kinds['compact']:,}",
        ),
        "analyses": (
            "analyses over HTTP; by a command",
            f"{kinds['job']:,}; {kinds['decode']:,}",
        ),
        "exports": (
            "exports over HTTP; by a command",
            f"{kinds['export over HTTP']:,}; {kinds['export']:,}",
        ),
        "interrupted": ("analyses and exports interrupted by restarts", f"{interrupted:,}"),
        "backups": (
            "backups restored and compared; checks of the store",
            f"{kinds['backup']:,}; {kinds['check']:,}",
        ),
        "retention": (
            "reports imported that were too old, all deleted",
            f"{seen.counts['aged reports']:,}",
        ),
    }


def outcome(seen: Observations) -> dict[str, Row]:
    """Return latency, memory, open files, and broken promises."""
    memory, files = trends(seen)
    faults = counted(len(seen.faults), "fault") if seen.faults else "none"
    return {
        "latency": ("latency of uploads: median; 99th percentile", _latency(seen)),
        "memory": ("memory of the collector", _level(seen, "memory", memory, MIB, " MiB")),
        "files": ("open files of the collector", _level(seen, "files", files, 1, "")),
        "faults": ("reports lost or counted twice, or other broken promises", faults),
    }


def _latency(seen: Observations) -> str:
    if not seen.latency:
        return "none"
    median, p99 = 1000 * np.quantile(np.asarray(seen.latency), [0.5, 0.99])
    return f"{median:.0f} ms; {p99:.0f} ms"


def _level(seen: Observations, quantity: str, found: Trend, unit: int, name: str) -> str:
    """Return range and trend of a quantity of the process."""
    values = [getattr(sample, quantity) / unit for sample in seen.samples]
    if not values:
        return "not sampled"
    level = f"{min(values):.0f} to {max(values):.0f}{name}"
    if not found.lives:
        return f"{level}; the run is too short for a trend"
    lives = "one long life" if found.lives == 1 else f"{found.lives} long lives"
    trend = f"{found.per_hour:+.1f}{name} per hour in {lives} of the process"
    return f"{level}; trend {trend} (p = {found.p_value:.2g})"
