"""Where shards run: one small protocol, and threads as its default.

A shard is a plain tuple of arrays, the function is a module-level function or a `partial` of one,
and results come back in the order of the shards, so that sums over shards are reproducible and any
cluster that can map can stand in.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import cache
from typing import Protocol, TypeVar

from threadpoolctl import ThreadpoolController

from deniable.errors import InputError

Shard = TypeVar("Shard")
Result = TypeVar("Result")


AHEAD = 4
"""Shards of each worker that wait for their turn."""


class Executor(Protocol):
    """Maps a function over shards."""

    def map(
        self, function: Callable[[Shard], Result], shards: Iterable[Shard], /
    ) -> Iterator[Result]:
        """Yield function(shard) for every shard, in order."""
        ...


class Threads:
    """Threads of this process; BLAS is held to one thread while they run.

    Left alone, each worker's matrix products would start as many threads again, and the same work
    takes ten times as long.

    >>> list(Threads(2).map(sum, [(1, 2), (3, 4)]))
    [3, 7]
    """

    def __init__(self, workers: int | None = None) -> None:
        if workers is not None and workers < 1:
            raise InputError(f"workers must be at least 1, got {workers}")
        self.workers = workers or os.cpu_count() or 1
        self._pool = ThreadPoolExecutor(self.workers, thread_name_prefix="deniable")

    def map(
        self, function: Callable[[Shard], Result], shards: Iterable[Shard], /
    ) -> Iterator[Result]:
        """Yield function(shard) for every shard, in order.

        Shards are taken from a stream only a little ahead of the results, so that files larger
        than memory pass through.
        """
        waiting: deque[Future[Result]] = deque()
        try:
            with one_blas_thread():
                for shard in shards:
                    waiting.append(self._pool.submit(function, shard))
                    if len(waiting) > AHEAD * self.workers:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


@cache
def _blas() -> ThreadpoolController:
    # Made at first use, since it sees only the libraries that are loaded by then.
    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[object]:
    """Hold matrix products and factorisations to one thread, here and in workers.

    Beside busy workers, factorising 400 cells took 500 ms on two BLAS threads and 1 ms on one.
    """
    context: AbstractContextManager[object] = _blas().limit(limits=1, user_api="blas")
    return context


@cache
def default_executor() -> Threads:
    """Return the process's shared threads, one per processor."""
    return Threads()
