"""Threads of this process: the default backend."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import cache

from threadpoolctl import ThreadpoolController

from deniable.compute.arrays import ArrayKernels
from deniable.compute.backend import Held, Kept, Result, Shard
from deniable.compute.cpu.array_kernels import CPU_KERNELS
from deniable.errors import InputError

SHARDS_AHEAD = 4
"""Number of shards per worker that are submitted in advance."""


class Threads:
    """Threads of this process; BLAS is limited to one thread while they run.

    Otherwise the matrix products of each worker would start as many threads again, and the same
    work would take ten times as long.

    >>> list(Threads(2).map(sum, [(1, 2), (3, 4)]))
    [3, 7]
    >>> list(Threads(2).hold(sum, [(1, 2), (3, 4)]).map(pow, [2, 3]))
    [9, 343]
    """

    arrays: ArrayKernels = CPU_KERNELS

    def __init__(self, workers: int | None = None) -> None:
        if workers is not None and workers < 1:
            raise InputError(f"the number of workers must be at least 1, got {workers}")
        self.workers = workers or os.cpu_count() or 1
        self._pool = ThreadPoolExecutor(self.workers, thread_name_prefix="deniable")

    def map(
        self, function: Callable[[Shard], Result], shards: Iterable[Shard], /
    ) -> Iterator[Result]:
        """Yield function(shard) for every shard, in order."""
        return self.starmap(function, ((shard,) for shard in shards))

    def starmap(
        self, function: Callable[..., Result], arguments: Iterable[tuple[object, ...]], /
    ) -> Iterator[Result]:
        """Yield function(*each) for every tuple of arguments, in order.

        Arguments are read only a little ahead of the results, so that files larger than memory can
        be processed.
        """
        waiting: deque[Future[Result]] = deque()
        try:
            with one_blas_thread():
                for each in arguments:
                    waiting.append(self._pool.submit(function, *each))
                    if len(waiting) > SHARDS_AHEAD * self.workers:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()

    def hold(self, function: Callable[[Shard], Result], shards: Iterable[Shard], /) -> Held[Result]:
        """Hold function(shard) for every shard in the memory of this process."""
        return HeldInMemory(self, self.map(function, shards))


class HeldInMemory(Held[Kept]):
    """Results in the memory of this process, which all threads share."""

    def __init__(self, threads: Threads, results: Iterable[Kept]) -> None:
        self._threads, self._results = threads, tuple(results)

    def map(self, function: Callable[..., Result], /, *each: Sequence[object]) -> Iterator[Result]:
        """Yield function(result, …) for every result, in order."""
        return self._threads.starmap(function, zip(self._results, *each, strict=True))

    def hold(self, function: Callable[..., Result], /, *each: Sequence[object]) -> Held[Result]:
        """Hold function(result, …) for every result."""
        return HeldInMemory(self._threads, self.map(function, *each))

    def __len__(self) -> int:
        return len(self._results)


@cache
def _blas() -> ThreadpoolController:
    """Return the controller of BLAS threads."""
    # Created at first use, because it sees only libraries that are already loaded.
    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[object]:
    """Limit matrix products and factorisations to one thread.

    While workers were busy, factorising a 400 × 400 matrix took 500 ms on two BLAS threads and 1 ms
    on one.
    """
    context: AbstractContextManager[object] = _blas().limit(limits=1, user_api="blas")
    return context
