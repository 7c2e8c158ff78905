"""Threads of this process, the default backend."""

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
"""Shards of each worker that wait for their turn."""


class Threads:
    """Threads of this process; BLAS is held to one thread while they run.

    Left alone, each worker's matrix products would start as many threads again, and the same work
    takes ten times as long.

    >>> list(Threads(2).map(sum, [(1, 2), (3, 4)]))
    [3, 7]
    >>> list(Threads(2).hold(sum, [(1, 2), (3, 4)]).map(pow, [2, 3]))
    [9, 343]
    """

    arrays: ArrayKernels = CPU_KERNELS

    def __init__(self, workers: int | None = None) -> None:
        if workers is not None and workers < 1:
            raise InputError(f"workers must be at least 1, got {workers}")
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

        Arguments are taken from a stream only a little ahead of the results, so that files larger
        than memory pass through.
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
        """Keep function(shard) of every shard in this process's memory."""
        return HeldInMemory(self, self.map(function, shards))


class HeldInMemory(Held[Kept]):
    """What threads keep: they share their process's memory."""

    def __init__(self, threads: Threads, kept: Iterable[Kept]) -> None:
        self._threads, self._kept = threads, tuple(kept)

    def map(self, function: Callable[..., Result], /, *each: Sequence[object]) -> Iterator[Result]:
        return self._threads.starmap(function, zip(self._kept, *each, strict=True))

    def hold(self, function: Callable[..., Result], /, *each: Sequence[object]) -> Held[Result]:
        return HeldInMemory(self._threads, self.map(function, *each))

    def __len__(self) -> int:
        return len(self._kept)


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
