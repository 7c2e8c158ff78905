"""Executors: threads of this process, or a cluster (`compute.cluster`).

A shard is any object that can be pickled: a file name and the rows to read, or a tuple of arrays.
`Executor.map` returns the result of a function for every shard. `Executor.hold` leaves the results
with the workers that computed them and returns a `Held`, which runs further functions on them, pass
after pass.

Functions can be pickled: functions of modules, methods of classes, or `partial`s of either. Results
come in the order of the shards, so sums over shards are the same on every executor.
"""

from __future__ import annotations

import os
import sys
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import cache, reduce
from operator import add
from typing import Any, Generic, TypeVar

from threadpoolctl import ThreadpoolController

from deniable.errors import InputError, did_you_mean
from deniable.extras import needs_packages

Shard = TypeVar("Shard")
Result = TypeVar("Result")
Kept = TypeVar("Kept", covariant=True)

SHARDS_AHEAD = 4
"""Number of shards per thread that are submitted in advance."""


class Held(ABC, Generic[Kept]):
    """Results of a function for every shard, held by the workers that computed them.

    They are released with this object. If a worker dies, its results are computed again from the
    shards by the same functions, which therefore must be deterministic.
    """

    @abstractmethod
    def map(self, function: Callable[..., Result], /, *each: Sequence[object]) -> Iterator[Result]:
        """Yield function(result, …) for every result, in order.

        each : further arguments, one entry per result
        """

    @abstractmethod
    def hold(self, function: Callable[..., Result], /, *each: Sequence[object]) -> Held[Result]:
        """Hold function(result, …) for every result, on the same workers."""

    @abstractmethod
    def gathered(self) -> HeldInMemory[Kept]:
        """Hold the results, which are small, in this process: passes need no communication."""

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of results."""

    def sum(self, function: Callable[..., Result], /, *each: Sequence[object]) -> Result:
        """Return the sum of function(result, …), added from the first to the last."""
        return reduce(add, self.map(function, *each))


class Executor(ABC):
    """Runs functions on shards, and holds their results."""

    @abstractmethod
    def map(
        self, function: Callable[[Shard], Result], shards: Iterable[Shard], /
    ) -> Iterator[Result]:
        """Yield function(shard) for every shard, in order.

        Shards are read only a little ahead of the results, so that files larger than memory can be
        processed.
        """

    @abstractmethod
    def hold(self, function: Callable[[Shard], Result], shards: Iterable[Shard], /) -> Held[Result]:
        """Hold function(shard) for every shard on the worker that computed it."""


class Threads(Executor):
    """Threads of this process; BLAS is limited to one thread while they run.

    Otherwise the matrix products of each worker would start as many threads again, and the same
    work would take ten times as long.

    >>> list(Threads(2).map(sum, [(1, 2), (3, 4)]))
    [3, 7]
    >>> list(Threads(2).hold(sum, [(1, 2), (3, 4)]).map(pow, [2, 3]))
    [9, 343]
    """

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
        """Yield function(*each) for every tuple of arguments, in order."""
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
        self._threads, self.results = threads, tuple(results)

    def map(self, function: Callable[..., Result], /, *each: Sequence[object]) -> Iterator[Result]:
        """Yield function(result, …) for every result, in order."""
        return self._threads.starmap(function, zip(self.results, *each, strict=True))

    def hold(self, function: Callable[..., Result], /, *each: Sequence[object]) -> Held[Result]:
        """Hold function(result, …) for every result."""
        return HeldInMemory(self._threads, self.map(function, *each))

    def gathered(self) -> HeldInMemory[Kept]:
        """Return this object."""
        return self

    def __len__(self) -> int:
        return len(self.results)


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


# --- what users pass as `executor` ---------------------------------------------------------------

EXECUTORS = "threads, threads:N, dask://HOST:PORT or tls://HOST:PORT"

AnyExecutor = Executor | str | Any | None
"""A text (see EXECUTORS), a `distributed.Client`, or None for threads."""


@cache
def threads(workers: int | None = None) -> Threads:
    """Return the threads that all analyses of this process share, by default one per processor."""
    return Threads(workers)


def executor_of(executor: AnyExecutor) -> Executor:
    """Return the executor that a text, a `distributed.Client` or None stands for.

    >>> list(executor_of("threads:2").map(sum, [(1, 2), (3, 4)]))
    [3, 7]
    """
    if executor is None or executor == "threads":
        return threads()
    if isinstance(executor, Executor):
        return executor
    if isinstance(executor, str):
        kind, _, rest = executor.partition(":")
        if kind == "threads" and rest.isdigit():
            return threads(int(rest))
        if kind in ("dask", "tls") and len(rest) > len("//"):
            with needs_packages("an analysis on a cluster", extra="cluster"):
                from deniable.compute.cluster import connected
            return connected(executor)
        raise InputError(
            f"unknown executor {executor!r}: expected {EXECUTORS}.{did_you_mean(kind, ['threads'])}"
        )
    library = sys.modules.get("distributed")
    if library is None or not isinstance(executor, library.Client):
        raise InputError(
            f"executor must be {EXECUTORS}, or a distributed.Client, got {type(executor).__name__}"
        )
    from deniable.compute.cluster import Cluster

    return Cluster(executor)
