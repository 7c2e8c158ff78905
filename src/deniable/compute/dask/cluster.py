"""A Dask cluster as a backend: workers load their shards and hold the results.

`map` submits ordinary Dask tasks, named after their function; Dask runs them on another worker if a
worker dies. Held results are kept by an actor on each worker, the `WorkerActor`. One request runs a
function on all results of a worker, so a pass takes one exchange per worker, and only sums are
sent.

If a worker dies, other workers compute its results again from the shards, by the same functions,
and its part of the pass is repeated. Results come in the order of the shards and are added up in
that order, so a sum does not depend on which worker computed which part, or how often.
"""

from __future__ import annotations

import os
import pickle
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count, islice
from typing import Any, cast
from uuid import uuid4

import cloudpickle
import distributed
from distributed.scheduler import KilledWorker

from deniable.compute.arrays import ArrayKernels
from deniable.compute.backend import SUM_GROUP, Held, Kept, Result, Shard, total
from deniable.compute.cpu.array_kernels import CPU_KERNELS
from deniable.compute.cpu.threads import SHARDS_AHEAD, HeldInMemory, one_blas_thread
from deniable.compute.dask.worker import ReplyKind, Request, Step, WorkerActor, WorkerReply
from deniable.compute.named import default_backend
from deniable.errors import ClusterError
from deniable.version import __version__

Distributed = Any
"""An object of the library `distributed`, which has no types."""

SHARDS_PER_TASK = 2
"""Number of shards per task: a task has an overhead of some milliseconds."""
MAX_INLINE_BYTES = 1 << 16
"""Maximum size of a function that is sent with every task; larger ones are sent once per worker."""
CONNECT_SECONDS = 10.0
"""Maximum time to connect to a scheduler."""
NO_WORKER_SECONDS = 60.0
"""Maximum time to wait for a first worker."""
MAX_ATTEMPTS = 8
"""Number of workers that may die while they process the same shard."""
CHECK_SECONDS = 0.5
"""Time between checks whether a worker that has not replied is alive."""

_NOT_KEPT = -1
_LOST = (OSError, RuntimeError, ValueError, KeyError)
"""Errors of a call to an actor whose worker is dead; errors of functions come as replies."""


class Dask:
    """The workers of one Dask scheduler.

    address : HOST:PORT of the scheduler; None starts worker processes on this machine, which end
    with `close`; workers : number of these processes, by default one per processor.
    """

    arrays: ArrayKernels = CPU_KERNELS

    def __init__(self, address: str | None = None, *, workers: int | None = None) -> None:
        library: Distributed = distributed
        self._cluster: Distributed = None
        if address is None:
            self._cluster = library.LocalCluster(
                n_workers=workers or os.cpu_count() or 1,
                threads_per_worker=1,
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",
            )
        target = address if self._cluster is None else self._cluster
        if address is not None and "://" not in address:
            target = f"tcp://{address}"
        try:
            self.client: Distributed = library.Client(
                target, timeout=CONNECT_SECONDS, direct_to_workers=True
            )
        except (OSError, ValueError) as error:
            raise ClusterError(
                f"no Dask scheduler answers at {address}: {error}; start one with `dask scheduler` "
                "and workers with `dask worker HOST:PORT`"
            ) from None
        self._connections: dict[str, _Connection] = {}
        self._keys = count()
        self._released: list[int] = []

    def close(self) -> None:
        """Disconnect from the scheduler, and stop the workers that this object has started."""
        self._connections.clear()
        self.client.close()
        if self._cluster is not None:
            self._cluster.close()

    def __enter__(self) -> Dask:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def map(
        self, function: Callable[[Shard], Result], shards: Iterable[Shard], /
    ) -> Iterator[Result]:
        """Yield function(shard) for every shard, in order; shards are read a little ahead."""
        self.workers()
        sent: Distributed = function
        if len(cloudpickle.dumps(function)) > MAX_INLINE_BYTES:
            (sent,) = self.client.scatter([function], broadcast=True)
        name, run = name_of(function), uuid4().hex[:8]
        waiting: deque[Distributed] = deque()
        max_waiting = SHARDS_AHEAD * sum(self.client.nthreads().values())
        stream = iter(shards)
        groups = iter(lambda: list(islice(stream, SHARDS_PER_TASK)), [])
        try:
            for i, group in enumerate(groups):
                key = (f"{name}-{run}", i)
                waiting.append(self.client.submit(_each, sent, group, key=key, pure=False))
                if len(waiting) > max_waiting:
                    yield from _result(waiting.popleft())
            while waiting:
                yield from _result(waiting.popleft())
        finally:
            self.client.cancel(list(waiting))

    def hold(self, function: Callable[[Shard], Result], shards: Iterable[Shard], /) -> Held[Result]:
        """Hold function(shard) for every shard; groups of shards go to the workers in turn."""
        placement, step = _Placement(self), Step(self.new_key(), function)
        seats = [address for address, threads in self.workers().items() for _ in range(threads)]
        waiting: deque[_Call] = deque()
        unanswered: list[int] = []
        for i, shard in enumerate(shards):
            placement.add(shard, seats[i // SUM_GROUP % len(seats)])
            waiting.append(placement.send([i], (), step, ReplyKind.NOTHING, set()))
            if len(waiting) > 2 * SUM_GROUP * len(seats):
                unanswered += placement.unanswered(waiting.popleft())
        while waiting:
            unanswered += placement.unanswered(waiting.popleft())
        placement.request((), step, ReplyKind.NOTHING, unanswered)
        return _HeldByWorkers(placement, (step,))

    def new_key(self) -> int:
        """Return a key that no other results have."""
        return next(self._keys)

    def release(self, key: int) -> None:
        """Release the results of a key on all workers, with the next request to each.

        It is called by the garbage collector, which must not wait for workers.
        """
        self._released.append(key)

    def send(self, address: str, request: Callable[[Sequence[int]], Request]) -> Distributed:
        """Send a request, with all newly released keys, to the actor of a worker.

        The actor is created with the first request.
        """
        if address not in self._connections:
            self._connections[address] = _Connection(self.client, address, len(self._released))
        connection = self._connections[address]
        released = self._released[connection.releases_sent :]
        connection.releases_sent = len(self._released)
        return connection.actor.call(cloudpickle.dumps(request(released)))

    def alive(self, address: str) -> bool:
        """Return whether the scheduler knows the worker: a dead worker never replies."""
        return address in self._connections and address in self.client.nthreads()

    def lose(self, address: str) -> None:
        """Forget a worker that does not reply."""
        self._connections.pop(address, None)

    def workers(self, *, without: str = "") -> dict[str, int]:
        """Return the addresses of workers and their numbers of threads; wait for a first worker."""
        until = time.monotonic() + NO_WORKER_SECONDS
        while True:
            threads: dict[str, int] = self.client.nthreads()
            threads.pop(without, None)
            if threads:
                return threads
            if time.monotonic() > until:
                raise ClusterError(
                    f"the scheduler has had no workers for {NO_WORKER_SECONDS:.0f} seconds; start "
                    "workers with `dask worker HOST:PORT`"
                )
            time.sleep(0.1)


class _Connection:
    """The actor of one worker, and the future that keeps it alive.

    releases_sent : number of released keys that were sent to the worker.
    """

    def __init__(self, client: Distributed, address: str, releases_sent: int) -> None:
        self.releases_sent = releases_sent
        key = f"kept-reports-{uuid4().hex[:8]}"
        self._future = client.submit(
            WorkerActor, key=key, workers=[address], actor=True, pure=False
        )
        try:
            self.actor: Distributed = self._future.result(timeout=30)
            version = self.actor.version().result()
        except ModuleNotFoundError as error:
            raise ClusterError(
                f"worker {address} has no module {error.name}: install deniable {__version__} on "
                "all workers"
            ) from None
        except distributed.TimeoutError as error:
            raise OSError(f"worker {address} does not reply") from error
        if version != __version__:
            raise ClusterError(
                f"worker {address} has deniable {version}, but this process has {__version__}: "
                "install the same version on both"
            )


@dataclass(frozen=True, eq=False)
class _Call:
    """A request that was sent to a worker for some places; reply : None if the worker is dead."""

    address: str
    places: Sequence[int]
    reply: Distributed | None


class _Placement:
    """Shards and the worker of each, which holds all results for the shard.

    A place is the index of a shard.
    """

    def __init__(self, cluster: Dask) -> None:
        self.cluster = cluster
        self.shards: list[object] = []
        self._addresses: list[str] = []

    def add(self, shard: object, address: str) -> None:
        """Assign one more shard to a worker."""
        self.shards.append(shard)
        self._addresses.append(address)

    def request(
        self, history: tuple[Step, ...], step: Step, kind: ReplyKind, places: Sequence[int]
    ) -> list[object]:
        """Run a step at these places, and repeat it until all workers have replied."""
        results: dict[int, object] = {}
        open_places, missing = list(places), set[int]()
        for _ in range(MAX_ATTEMPTS):
            calls = [
                self.send(group, history, step, kind, missing)
                for group in self._by_worker(open_places)
            ]
            for call in calls:
                reply = self._reply(call)
                if reply is None:
                    self._move(call.address)
                elif reply.missing:
                    missing.update(call.places)
                else:
                    # The sum of a group is at its first place.
                    firsts = call.places[:: SUM_GROUP if kind is ReplyKind.SUMS else 1]
                    results |= zip(firsts, reply.values, strict=True)
                    open_places = sorted(set(open_places).difference(call.places))
            if not open_places:
                return [results[place] for place in sorted(results)]
        raise ClusterError(
            f"{MAX_ATTEMPTS} workers died one after another while they processed the same "
            f"{len(open_places)} shards, which may need more memory than a worker has"
        )

    def send(
        self,
        places: Sequence[int],
        history: tuple[Step, ...],
        step: Step,
        kind: ReplyKind,
        missing: set[int],
    ) -> _Call:
        """Send a request to the worker of these places, with the shards if it needs them.

        missing : places whose results must be computed again from the shards
        """
        address = self._addresses[places[0]]
        needed = not history or not missing.isdisjoint(places)
        request = partial(
            Request,
            places,
            tuple(each.at(places) for each in history),
            step.at(places),
            kind,
            [self.shards[place] for place in places] if needed else None,
        )
        try:
            return _Call(address, places, self.cluster.send(address, request))
        except _LOST:
            return _Call(address, places, None)

    def unanswered(self, call: _Call) -> Sequence[int]:
        """Wait for a reply; return the places of the request if the worker is dead."""
        return call.places if self._reply(call) is None else []

    def _reply(self, call: _Call) -> WorkerReply | None:
        """Return the reply of a worker; None if it is dead."""
        while call.reply is not None:
            try:
                answer = call.reply.result(timeout=CHECK_SECONDS)
            except TimeoutError:
                if not self.cluster.alive(call.address):
                    return None
            except _LOST:
                return None
            else:
                reply: WorkerReply = pickle.loads(answer)  # noqa: S301  it comes from our worker
                if reply.error is not None:
                    reply.error.add_note(f"on worker {call.address}")
                    raise reply.error
                return reply
        return None

    def _by_worker(self, places: Iterable[int]) -> Iterable[list[int]]:
        """Return the places of each worker."""
        groups: dict[str, list[int]] = {}
        for place in places:
            groups.setdefault(self._addresses[place], []).append(place)
        return groups.values()

    def _move(self, lost: str) -> None:
        """Assign the places of a dead worker to the others."""
        self.cluster.lose(lost)
        seats = list(self.cluster.workers(without=lost))
        for place, address in enumerate(self._addresses):
            if address == lost:
                self._addresses[place] = seats[place // SUM_GROUP % len(seats)]


class _HeldByWorkers(Held[Kept]):
    """Results that workers hold; history : steps that compute them from the shards."""

    def __init__(self, placement: _Placement, history: tuple[Step, ...]) -> None:
        self._placement, self._history = placement, history
        weakref.finalize(self, placement.cluster.release, history[-1].key)

    def __len__(self) -> int:
        return len(self._placement.shards)

    def map(self, function: Callable[..., Result], /, *each: Sequence[object]) -> Iterator[Result]:
        """Yield function(result, …) for every result, in order."""
        yield from self._run(Step(_NOT_KEPT, function, each), ReplyKind.RESULTS)

    def sum(self, function: Callable[..., Result], /, *each: Sequence[object]) -> Result:
        """Return the sum of function(result, …); workers send one sum per group."""
        result: Result = total(self._run(Step(_NOT_KEPT, function, each), ReplyKind.SUMS))
        return result

    def hold(self, function: Callable[..., Result], /, *each: Sequence[object]) -> Held[Result]:
        """Hold function(result, …) for every result, on the same workers."""
        step = Step(self._placement.cluster.new_key(), function, each)
        self._run(step, ReplyKind.NOTHING)
        return _HeldByWorkers(self._placement, (*self._history, step))

    def gather_small(
        self, function: Callable[..., Result], /, *each: Sequence[object]
    ) -> Held[Result]:
        """Hold function(result, …) in this process: further passes need no exchange."""
        return HeldInMemory(default_backend(), self.map(function, *each))

    def _run(self, step: Step, kind: ReplyKind) -> list[Any]:
        """Run a step on all results, and return the values of the replies."""
        return self._placement.request(self._history, step, kind, range(len(self)))


def name_of(function: Callable[..., object]) -> str:
    """Return the name of a function for the dashboard: that of the innermost function.

    >>> name_of(partial(map, partial(pow, 2)))
    'pow'
    """
    while isinstance(function, partial):
        inner = [each for each in function.args if callable(each)]
        function = inner[0] if inner else function.func
    return getattr(function, "__name__", "work").strip("_")


def _each(function: Callable[[Shard], Result], shards: list[Shard]) -> list[Result]:
    """Return function(shard) for every shard of one task; runs on a worker."""
    with one_blas_thread():
        return [function(shard) for shard in shards]


def _result(task: Distributed) -> list[Any]:
    """Return the results of a task."""
    try:
        return cast(list[Any], task.result())
    except KilledWorker as error:
        raise ClusterError(
            f"workers died while they ran the task {error.task}, which may need more memory than a "
            "worker has"
        ) from None
