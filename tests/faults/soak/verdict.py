"""The verdict about a run: whether memory and open files of the process grow."""

from __future__ import annotations

from itertools import groupby

from tests.faults.soak.collector import MAX_MEMORY, SoakedCollector
from tests.faults.soak.observed import Observations, Sample
from tests.faults.soak.trend import Series, Trend, trend

MIB = 1 << 20
MEMORY_MIB = 100 + MAX_MEMORY / MIB
"""Most memory that the collector may use: docs/how-to/collector.md says 100 MiB + max_memory."""
MEMORY_LIMIT, FILES_LIMIT = 16.0, 10.0
"""Largest growth per hour, in MiB and in open files. 180 requests per second make 648,000 per hour,
so that a leak of 30 bytes per request is more."""


def lives(samples: list[Sample], quantity: str) -> list[Series]:
    """Return the series of one quantity, one per life of the process."""
    series: list[Series] = []
    for _, group in groupby(samples, key=lambda sample: sample.life):
        life = list(group)
        series.append(([s.seconds for s in life], [getattr(s, quantity) for s in life]))
    return series


def trends(seen: Observations) -> tuple[Trend, Trend]:
    """Return the trends of memory in MiB and of open files."""
    memory = [(t, [v / MIB for v in values]) for t, values in lives(seen.samples, "memory")]
    return trend(memory), trend(lives(seen.samples, "files"))


def judge(run: SoakedCollector) -> None:
    """Add what the samples say to the faults."""
    seen = run.seen
    memory, files = trends(seen)
    if memory.grows(MEMORY_LIMIT):
        seen.fault(f"memory grows by {memory.per_hour:.1f} MiB per hour (p = {memory.p_value:.2g})")
    if files.grows(FILES_LIMIT):
        seen.fault(f"{files.per_hour:.1f} more files are open per hour (p = {files.p_value:.2g})")
    largest = max((sample.memory for sample in seen.samples), default=0) / MIB
    if largest > MEMORY_MIB:
        seen.fault(f"the collector used {largest:.0f} MiB, more than {MEMORY_MIB:.0f} MiB")
