"""A Dask cluster as a backend: workers load their own shards and keep what they make of them.

`map` is ordinary Dask tasks, named after their function, which Dask repeats elsewhere when a worker
dies. What is held is kept by an actor on each worker, the `WorkerActor`; one request takes a
function to all that a worker keeps, so that a pass costs one exchange per worker and only its sums
travel.

What a dead worker kept is made again from its shards on the others, by the same functions, and its
part of the pass is repeated. Results come back in the order of the shards and are added up
in that order, so a sum does not depend on which worker made which part, or how often.
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
"""A task's own cost is some milliseconds."""
MAX_INLINE_BYTES = 1 << 16
"""Size of a function that every task carries; a larger one is sent to each worker once."""
CONNECT_SECONDS = 10.0
"""How long a scheduler has to answer."""
PATIENCE_SECONDS = 60.0
"""How long we wait for a worker where there is none."""
MAX_ATTEMPTS = 8
"""Workers that may die under the same shard before we suspect the shard."""
CHECK_SECONDS = 0.5
"""After this time we check whether the worker that we wait for is still there."""

_NOT_KEPT = -1
_LOST = (OSError, RuntimeError, ValueError, KeyError)
"""How a call of an actor fails if its worker is gone; errors of our functions come as replies."""


class Dask:
    """The workers of one scheduler.

    address : the scheduler's HOST:PORT; None starts worker processes on this machine, one per
    processor unless `workers` says otherwise, which end with this object's `close`.
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
        """Let go of the cluster; one that was started here ends."""
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
        """Yield function(shard) for every shard, in order; shards are taken a little ahead."""
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
        """Keep function(shard) of every shard on some worker, dealt out in turn."""
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
        """A key under which nothing else is kept."""
        return next(self._keys)

    def release(self, key: int) -> None:
        """Have workers forget what they keep under a key.

        They are told with their next request: the garbage collector must not wait for them.
        """
        self._released.append(key)

    def send(self, address: str, request: Callable[[Sequence[int]], Request]) -> Distributed:
        """Send a worker's actor, made when first needed, a request with the keys released since."""
        if address not in self._connections:
            self._connections[address] = _Connection(self.client, address, len(self._released))
        connection = self._connections[address]
        released = self._released[connection.releases_sent :]
        connection.releases_sent = len(self._released)
        return connection.actor.call(cloudpickle.dumps(request(released)))

    def alive(self, address: str) -> bool:
        """Whether the scheduler still knows the worker: a call of a dead one is never answered."""
        return address in self._connections and address in self.client.nthreads()

    def lose(self, address: str) -> None:
        """Forget a worker that does not answer."""
        self._connections.pop(address, None)

    def workers(self, *, without: str = "") -> dict[str, int]:
        """Workers and their threads, once there are some."""
        until = time.monotonic() + PATIENCE_SECONDS
        while True:
            threads: dict[str, int] = self.client.nthreads()
            threads.pop(without, None)
            if threads:
                return threads
            if time.monotonic() > until:
                raise ClusterError(
                    f"the scheduler has had no workers for {PATIENCE_SECONDS:.0f} seconds; start "
                    "some with `dask worker HOST:PORT`"
                )
            time.sleep(0.1)


class _Connection:
    """One worker's actor, and the future that keeps it alive.

    releases_sent : how many of the released keys the worker has been sent.
    """

    def __init__(self, client: Distributed, address: str, releases_sent: int) -> None:
        self.releases_sent = releases_sent
        key = f"kept-reports-{uuid4().hex[:8]}"
        self._future = client.submit(
            WorkerActor, key=key, workers=[address], actor=True, pure=False
        )
        try:
            self.actor: Distributed = self._future.result(timeout=30)
            theirs = self.actor.version().result()
        except ModuleNotFoundError as error:
            raise ClusterError(
                f"worker {address} has no module {error.name}: install deniable {__version__} "
                "there as here"
            ) from None
        except distributed.TimeoutError as error:
            raise OSError(f"worker {address} does not answer") from error
        if theirs != __version__:
            raise ClusterError(f"expected deniable {__version__} on {address}, got {theirs}")


@dataclass(frozen=True, eq=False)
class _Call:
    """A request that was sent to a worker about some places; reply : None if the worker is gone."""

    address: str
    places: Sequence[int]
    reply: Distributed | None


class _Placement:
    """Shards, and the worker of each: all that is made of a shard is kept in the same place."""

    def __init__(self, cluster: Dask) -> None:
        self.cluster = cluster
        self.shards: list[object] = []
        self._addresses: list[str] = []

    def add(self, shard: object, address: str) -> None:
        """Place one more shard."""
        self.shards.append(shard)
        self._addresses.append(address)

    def request(
        self, history: tuple[Step, ...], step: Step, kind: ReplyKind, places: Sequence[int]
    ) -> list[object]:
        """Take a step at these places, and repeat it until every part of it was answered."""
        results: dict[int, object] = {}
        open_places, unmade = list(places), set[int]()
        for _ in range(MAX_ATTEMPTS):
            calls = [
                self.send(mine, history, step, kind, unmade)
                for mine in self._by_worker(open_places)
            ]
            for call in calls:
                reply = self._reply(call)
                if reply is None:
                    self._move(call.address)
                elif reply.missing:
                    unmade.update(call.places)
                else:
                    # The sum of a group stands at its first place.
                    firsts = call.places[:: SUM_GROUP if kind is ReplyKind.SUMS else 1]
                    results |= zip(firsts, reply.values, strict=True)
                    open_places = sorted(set(open_places).difference(call.places))
            if not open_places:
                return [results[place] for place in sorted(results)]
        raise ClusterError(
            f"{MAX_ATTEMPTS} workers died one after another over the same {len(open_places)} "
            "shards: they may need more memory than a worker has"
        )

    def send(
        self,
        places: Sequence[int],
        history: tuple[Step, ...],
        step: Step,
        kind: ReplyKind,
        unmade: set[int],
    ) -> _Call:
        """Send a request to the one worker of these places, with the shards where it needs them."""
        address = self._addresses[places[0]]
        needed = not history or not unmade.isdisjoint(places)
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
        """Wait for a reply; return the places if their worker died."""
        return call.places if self._reply(call) is None else []

    def _reply(self, call: _Call) -> WorkerReply | None:
        """What the worker replied; None if it is gone."""
        while call.reply is not None:
            try:
                answer = call.reply.result(timeout=CHECK_SECONDS)
            except TimeoutError:
                if not self.cluster.alive(call.address):
                    return None
            except _LOST:
                return None
            else:
                reply: WorkerReply = pickle.loads(answer)  # noqa: S301  our own worker's
                if reply.error is not None:
                    reply.error.add_note(f"on worker {call.address}")
                    raise reply.error
                return reply
        return None

    def _by_worker(self, places: Iterable[int]) -> Iterable[list[int]]:
        """The places of each worker."""
        mine: dict[str, list[int]] = {}
        for place in places:
            mine.setdefault(self._addresses[place], []).append(place)
        return mine.values()

    def _move(self, lost: str) -> None:
        """Deal the places of a lost worker out to those that are left."""
        self.cluster.lose(lost)
        seats = list(self.cluster.workers(without=lost))
        for place, address in enumerate(self._addresses):
            if address == lost:
                self._addresses[place] = seats[place // SUM_GROUP % len(seats)]


class _HeldByWorkers(Held[Kept]):
    """What workers keep; history : the steps from the shards to it, so that others can make it."""

    def __init__(self, placement: _Placement, history: tuple[Step, ...]) -> None:
        self._placement, self._history = placement, history
        weakref.finalize(self, placement.cluster.release, history[-1].key)

    def __len__(self) -> int:
        return len(self._placement.shards)

    def map(self, function: Callable[..., Result], /, *each: Sequence[object]) -> Iterator[Result]:
        yield from self._take(Step(_NOT_KEPT, function, each), ReplyKind.RESULTS)

    def sum(self, function: Callable[..., Result], /, *each: Sequence[object]) -> Result:
        result: Result = total(self._take(Step(_NOT_KEPT, function, each), ReplyKind.SUMS))
        return result

    def hold(self, function: Callable[..., Result], /, *each: Sequence[object]) -> Held[Result]:
        step = Step(self._placement.cluster.new_key(), function, each)
        self._take(step, ReplyKind.NOTHING)
        return _HeldByWorkers(self._placement, (*self._history, step))

    def gather_small(
        self, function: Callable[..., Result], /, *each: Sequence[object]
    ) -> Held[Result]:
        """Bring it here: a pass over it then costs no exchange."""
        return HeldInMemory(default_backend(), self.map(function, *each))

    def _take(self, step: Step, kind: ReplyKind) -> list[Any]:
        return self._placement.request(self._history, step, kind, range(len(self)))


def name_of(function: Callable[..., object]) -> str:
    """What a function is called on the dashboard: the innermost one's own name.

    >>> name_of(partial(map, partial(pow, 2)))
    'pow'
    """
    while isinstance(function, partial):
        inner = [each for each in function.args if callable(each)]
        function = inner[0] if inner else function.func
    return getattr(function, "__name__", "work").strip("_")


def _each(function: Callable[[Shard], Result], shards: list[Shard]) -> list[Result]:
    """Run by a worker: one task."""
    with one_blas_thread():
        return [function(shard) for shard in shards]


def _result(task: Distributed) -> list[Any]:
    try:
        return cast(list[Any], task.result())
    except KilledWorker as error:
        raise ClusterError(
            f"workers died over one task, {error.task}: it may need more memory than a worker has"
        ) from None
