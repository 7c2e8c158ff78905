"""Run kernels on ranges of rows, on several threads.

Kernels are compiled functions that do not hold the interpreter lock, so plain threads suffice.
Results never depend on the number of threads, because the ranges only divide the work. Kernels that
draw random numbers seed them per chunk, a fixed number of rows (see `deniable.kernels.noise`).
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TypeVar

from deniable.errors import InputError

Result = TypeVar("Result")

RANGES_PER_THREAD = 4
"""Ranges per thread: with several, threads finish at about the same time on a busy machine."""


def thread_count(threads: int | None) -> int:
    """Return `threads`, by default the number of processors that this process may use."""
    if threads is None:
        if hasattr(os, "sched_getaffinity"):
            return len(os.sched_getaffinity(0))
        return os.cpu_count() or 1
    if threads < 1:
        raise InputError(f"the number of threads must be at least 1, got {threads}")
    return threads


def split_range(count: int, parts: int) -> list[tuple[int, int]]:
    """Split range(count) into at most `parts` non-empty (start, stop) of nearly equal size."""
    parts = max(1, min(parts, count))
    edges = [count * part // parts for part in range(parts + 1)]
    return [(start, stop) for start, stop in pairwise(edges) if start < stop]


def over_threads(
    work: Callable[[int, int], Result], ranges: list[tuple[int, int]], threads: int
) -> list[Result]:
    """Call work(start, stop) for every range on up to `threads` threads; results are in order."""
    if threads == 1 or len(ranges) <= 1:
        return [work(start, stop) for start, stop in ranges]
    with ThreadPoolExecutor(min(threads, len(ranges))) as pool:
        return list(pool.map(lambda each: work(*each), ranges))
