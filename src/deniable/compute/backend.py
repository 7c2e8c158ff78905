"""Where shards run: two small protocols, and threads as their default.

A shard is anything that can be pickled, small if it is to travel far: a file's name and the rows to
be read of it, or a plain tuple of arrays. `Executor.map` gives a function's results for every
shard; `Executor.hold` leaves them where they were made, and the `Held` that stands for them takes
functions there instead, pass after pass. Functions are module-level ones or `partial`s of them,
results come back in the order of the shards, so that sums over shards are the same bit for bit
wherever they are made, and any cluster can stand in.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import cache, partial, reduce
from operator import add
from typing import Any, Protocol, TypeVar

from threadpoolctl import ThreadpoolController

from deniable.errors import InputError

Shard = TypeVar("Shard")
Result = TypeVar("Result")
Kept = TypeVar("Kept", covariant=True)


AHEAD = 4
"""Shards of each worker that wait for their turn."""


SUM_GROUP = 4
"""Neighbours among what is held that are kept, and added up, together."""


def sums(results: Sequence[Any]) -> list[Any]:
    """The sums of each four, in order."""
    return [
        sum_of(results[start : start + SUM_GROUP]) for start in range(0, len(results), SUM_GROUP)
    ]


def sum_of(results: Sequence[Any]) -> Any:
    """The sum, from the first on; of one thing at least."""
    return reduce(add, results)


class Held(Protocol[Kept]):
    """What a function made of every shard, kept by those that made it; released with this object.

    An executor whose workers may die makes it again from the shards, with the same functions: they
    must give the same each time.
    """

    def map(self, function: Callable[..., Result], /, *each: Sequence[Any]) -> Iterator[Result]:
        """Yield function(kept, …) for everything kept, in order, with its own entry of `each`."""
        ...

    def hold(self, function: Callable[..., Result], /, *each: Sequence[Any]) -> "Held[Result]":
        """Keep function(kept, …) in the same places."""
        ...

    def few(self, function: Callable[..., Result], /, *each: Sequence[Any]) -> "Held[Result]":
        """Keep function(kept, …), which is little, where further passes over it cost least."""
        return self.hold(function, *each)

    def sum(self, function: Callable[..., Result], /, *each: Sequence[Any]) -> Result:
        """Add up function(kept, …) of everything kept: four at a time, then the fours, in order.

        Workers keep all of a four, and send its sum only.
        """
        total: Result = sum_of(sums(list(self.map(function, *each))))
        return total

    def __len__(self) -> int:
        """How many things are kept."""
        ...


class Executor(Protocol):
    """Maps a function over shards, and holds what it makes of them."""

    def map(
        self, function: Callable[[Shard], Result], shards: Iterable[Shard], /
    ) -> Iterator[Result]:
        """Yield function(shard) for every shard, in order."""
        ...

    def hold(self, function: Callable[[Shard], Result], shards: Iterable[Shard], /) -> Held[Result]:
        """Keep function(shard) of every shard where it was made."""
        ...


class Threads:
    """Threads of this process; BLAS is held to one thread while they run.

    Left alone, each worker's matrix products would start as many threads again, and the same work
    takes ten times as long.

    >>> list(Threads(2).map(sum, [(1, 2), (3, 4)]))
    [3, 7]
    >>> list(Threads(2).hold(sum, [(1, 2), (3, 4)]).map(pow, [2, 3]))
    [9, 343]
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

    def hold(self, function: Callable[[Shard], Result], shards: Iterable[Shard], /) -> Held[Result]:
        """Keep function(shard) of every shard in this process's memory."""
        return HeldInMemory(self, tuple(self.map(function, shards)))


class HeldInMemory(Held[Kept]):
    """What threads keep: they share their process's memory."""

    def __init__(self, threads: Threads, kept: tuple[Kept, ...]) -> None:
        self._threads, self._kept = threads, kept

    def map(self, function: Callable[..., Result], /, *each: Sequence[Any]) -> Iterator[Result]:
        if not each:
            return self._threads.map(function, self._kept)
        return self._threads.map(partial(_applied, function), zip(self._kept, *each, strict=True))

    def hold(self, function: Callable[..., Result], /, *each: Sequence[Any]) -> Held[Result]:
        return HeldInMemory(self._threads, tuple(self.map(function, *each)))

    def __len__(self) -> int:
        return len(self._kept)


def _applied(function: Callable[..., Result], arguments: tuple[Any, ...]) -> Result:
    return function(*arguments)


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
