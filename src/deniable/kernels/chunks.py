"""Row ranges over threads.

Kernels hold no interpreter lock, so plain threads suffice. What a range computes never depends on
how many threads there are: randomness belongs to fixed chunks of rows (see `noise`).
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TypeVar

from deniable.errors import InputError

Part = TypeVar("Part")

PIECES_PER_THREAD = 4  # uneven pieces still finish together on a busy machine


def thread_count(threads: int | None) -> int:
    """Return `threads`, or the number of processors this process may use."""
    if threads is None:
        if hasattr(os, "sched_getaffinity"):
            return len(os.sched_getaffinity(0))
        return os.cpu_count() or 1
    if threads < 1:
        raise InputError(f"expected at least 1 thread, got {threads}")
    return threads


def spans(count: int, pieces: int) -> list[tuple[int, int]]:
    """Cut range(count) into at most `pieces` non-empty (start, stop) of nearly equal size."""
    pieces = max(1, min(pieces, count))
    edges = [count * piece // pieces for piece in range(pieces + 1)]
    return [(start, stop) for start, stop in pairwise(edges) if start < stop]


def over_threads(
    work: Callable[[int, int], Part], pieces: list[tuple[int, int]], threads: int
) -> list[Part]:
    """Call work(start, stop) for every piece on up to `threads` threads; results in order."""
    if threads == 1 or len(pieces) <= 1:
        return [work(start, stop) for start, stop in pieces]
    with ThreadPoolExecutor(min(threads, len(pieces))) as pool:
        return list(pool.map(lambda piece: work(*piece), pieces))
