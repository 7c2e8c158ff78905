"""Time work, and print figures beside their targets, peers and physical limits.

The limit of a row is the time of something that the work cannot do without, measured in the same
run: importing the packages, reading the bytes, or the arithmetic at the rate of matrix products.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from deniable.formatting import aligned


@dataclass(frozen=True)
class Timing:
    """Seconds by the clock, and of processor time."""

    clock: float
    processor: float

    def __str__(self) -> str:
        return f"{seconds(self.clock)} ({seconds(self.processor)})"


Figure = Timing | float | str


@dataclass(frozen=True)
class Row:
    """One figure; target, peer and limit are times or text, which may be empty."""

    work: str
    figure: Timing
    target: Figure = ""
    peer: Figure = ""
    limit: Figure = ""


def seconds(value: Figure) -> str:
    """Return a time with two significant digits or more; text and timings as they are.

    >>> seconds(1.234), seconds(0.0123), seconds(2.5e-9)
    ('1.23 s', '12.3 ms', '2.5 ns')
    """
    if not isinstance(value, float):
        return str(value)
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value * 1e9:.3g} ns"


def best_of(work: Callable[[], object], runs: int = 5, *, per: int = 1) -> Timing:
    """Return the shortest times of several runs in this process, divided by `per`."""
    times = []
    for _ in range(runs):
        start, used = time.perf_counter(), time.process_time()
        work()
        times.append((time.perf_counter() - start, time.process_time() - used))
    clock, processor = (min(column) / per for column in zip(*times, strict=True))
    return Timing(clock, processor)


def of_process(
    command: Sequence[str], runs: int = 5, environment: Mapping[str, str] | None = None
) -> Timing:
    """Return the median times of a command, each in a new process."""
    times = []
    for _ in range(runs):
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run(
            command,
            check=True,
            env={**os.environ, **(environment or {})},
            stdout=subprocess.DEVNULL,
        )
        clock, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        times.append((clock, used))
    clock, processor = (statistics.median(column) for column in zip(*times, strict=True))
    return Timing(clock, processor)


def show(rows: Sequence[Row]) -> None:
    """Print the rows as a table, with the conditions of the run."""
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    names = ("work", "clock (processor)", "target", "peer", "limit")
    lines = [
        (row.work, str(row.figure), seconds(row.target), seconds(row.peer), seconds(row.limit))
        for row in rows
    ]
    print("\n".join(aligned([names, *lines], [False, True, True, True, True])), flush=True)
