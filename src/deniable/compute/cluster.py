"""A cluster of Dask workers as an executor, by futures of the library `distributed`.

Results that are held are futures: they stay with the worker that computed them, and the scheduler
runs later functions of them there. If a worker dies, the scheduler has lost results computed again
from the shards. A task works on a group of consecutive shards, as each takes the scheduler a
millisecond. Results are gathered in the order of the shards.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import accumulate, chain, islice, pairwise
from typing import Any

import distributed
from dask.utils import funcname
from distributed.scheduler import KilledWorker

from deniable.compute.executors import (
    Executor,
    Held,
    HeldInMemory,
    Kept,
    Result,
    Shard,
    threads,
)
from deniable.errors import ClusterError
from deniable.kernels.chunks import split_range
from deniable.version import __version__

CONNECT_SECONDS = 10.0
"""Maximum time to connect to a scheduler."""
NO_WORKER_SECONDS = 60.0
"""Maximum time to wait for a first worker."""
TASKS_PER_THREAD = 2
"""Maximum number of tasks per thread of the workers into which a batch of shards is cut."""
SHARDS_PER_TASK, MIN_BATCH = 4, 32
"""Number of shards per task in a batch, if there are many, and minimum size of a batch."""
CONNECTIONS: dict[str, Any] = {}
"""Clients by the address that was given."""


class Cluster(Executor):
    """The workers of the scheduler that a `distributed.Client` is connected to."""

    def __init__(self, client: Any) -> None:
        self.client = client
        try:
            client.wait_for_workers(1, timeout=NO_WORKER_SECONDS)
        except TimeoutError:
            raise ClusterError(
                f"the scheduler has had no workers for {NO_WORKER_SECONDS:.0f} seconds; start "
                "workers with `dask worker HOST:PORT`"
            ) from None
        for worker, version in client.run(_version, on_error="return").items():
            if version != __version__:
                raise ClusterError(
                    f"worker {worker} has deniable {version!r}, but this process has "
                    f"{__version__!r}: install the same version on the scheduler and all workers"
                )
        self._tasks = TASKS_PER_THREAD * sum(client.nthreads().values())

    def map(
        self, function: Callable[[Shard], Result], shards: Iterable[Shard], /
    ) -> Iterator[Result]:
        """Yield function(shard), in order; one batch is gathered while the next one runs."""
        waiting: list[Any] = []
        for groups in self._groups(shards):
            futures = self.submit(function, groups)
            yield from self.gather(waiting)
            waiting = futures
        yield from self.gather(waiting)

    def hold(self, function: Callable[[Shard], Result], shards: Iterable[Shard], /) -> Held[Result]:
        """Hold function(shard) for every shard."""
        futures, sizes = list[Any](), list[int]()
        for groups in self._groups(shards):
            with self.client.as_current():  # else this is the client that was made last, or none
                distributed.wait(futures)
            futures += self.submit(function, groups)
            sizes += map(len, groups)
        return HeldByWorkers(self, futures, sizes)

    def submit(self, function: Callable[..., object], *groups: Sequence[object]) -> list[Any]:
        """Return futures of function(argument, …) for lists of arguments, one task per list."""
        with warnings.catch_warnings():
            # Shards in memory are sent with their tasks, so that they can be computed again.
            warnings.filterwarnings("ignore", "Sending large graph")
            work = partial(_each, function)
            futures = self.client.map(work, *groups, key=funcname(function), pure=False)
        return list(futures)

    def gather(self, futures: list[Any]) -> Iterator[Any]:
        """Return the results of tasks."""
        try:
            return chain.from_iterable(self.client.gather(futures))
        except KilledWorker as error:
            raise ClusterError(
                f"workers died while they ran the task {error.task}, which may need more memory "
                "than a worker has"
            ) from None

    def _groups(self, shards: Iterable[Shard]) -> Iterator[list[list[Shard]]]:
        """Yield shards in batches, each cut into a group per task."""
        stream = iter(shards)
        while batch := list(islice(stream, max(MIN_BATCH, SHARDS_PER_TASK * self._tasks))):
            yield [batch[low:high] for low, high in split_range(len(batch), self._tasks)]


class HeldByWorkers(Held[Kept]):
    """Results that workers hold, as futures of lists of these sizes."""

    def __init__(self, cluster: Cluster, futures: list[Any], sizes: Sequence[int]) -> None:
        self._cluster, self._futures, self._sizes = cluster, futures, sizes

    def map(self, function: Callable[..., Result], /, *each: Sequence[object]) -> Iterator[Result]:
        """Yield function(result, …) for every result, in order."""
        return self._cluster.gather(self._submit(function, each))

    def hold(self, function: Callable[..., Result], /, *each: Sequence[object]) -> Held[Result]:
        """Hold function(result, …) for every result, on the same workers."""
        return HeldByWorkers(self._cluster, self._submit(function, each), self._sizes)

    def gathered(self) -> HeldInMemory[Kept]:
        """Hold the results in this process."""
        return HeldInMemory(threads(), self._cluster.gather(self._futures))

    def __len__(self) -> int:
        return sum(self._sizes)

    def _submit(
        self, function: Callable[..., object], each: tuple[Sequence[object], ...]
    ) -> list[Any]:
        """Submit a task for each list of results, with the arguments that belong to it."""
        edges = list(accumulate(self._sizes, initial=0))
        lists = [[entries[low:high] for low, high in pairwise(edges)] for entries in each]
        return self._cluster.submit(function, self._futures, *lists)


def connected(address: str) -> Cluster:
    """Return the cluster of the scheduler at dask://HOST:PORT or tls://HOST:PORT.

    A process connects once to each address.
    """
    client = CONNECTIONS.get(address)
    if client is not None and client.status == "running":
        return Cluster(client)
    target = address.replace("dask://", "tcp://", 1)
    try:
        client = distributed.Client(target, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, TypeError, ValueError) as error:  # TypeError: no certificates
        raise ClusterError(
            f"cannot connect to a Dask scheduler at {address}: {error}; start one with `dask "
            "scheduler` and workers with `dask worker HOST:PORT`"
        ) from None
    CONNECTIONS[address] = client
    return Cluster(client)


def _each(function: Callable[..., Result], *lists: Sequence[object]) -> list[Result]:
    """Return function(argument, …) for each argument of the lists; runs on a worker."""
    return [function(*arguments) for arguments in zip(*lists, strict=True)]


def _version() -> str:
    """Return the version of deniable on a worker."""
    return __version__
