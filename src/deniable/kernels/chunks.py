"""Run kernels on ranges of rows, on several threads.

Kernels are compiled functions that do not hold the interpreter lock, so plain threads suffice.
Results never depend on the number of threads, because the ranges only divide the work. Kernels that
draw random numbers seed them per chunk, a fixed number of rows (see `deniable.kernels.noise`).
"""

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
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
    """Call work(start, stop) for every range on up to `threads` threads; results are in order.

    Work that calls this function again does the inner part on its own thread.
    """
    if threads == 1 or len(ranges) <= 1 or hasattr(_current, "pool"):
        return [work(start, stop) for start, stop in ranges]
    return list(_pool(threads).map(lambda each: work(*each), ranges))


_current = threading.local()
"""Marks the threads of a pool. If they waited for other work of it, none might be left to do it."""


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    """Return the pool that all kernels share: starting threads takes longer than many kernels."""
    return ThreadPoolExecutor(
        threads, "kernel", initializer=setattr, initargs=(_current, "pool", 1)
    )


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # a new process has none of the threads
