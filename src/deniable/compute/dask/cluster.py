"""A Dask cluster as an executor: workers load their own shards and keep what they make of them.

`map` is ordinary Dask tasks, named after their function, which Dask repeats elsewhere when a worker
dies. What is held is kept by an actor on each worker, the `WorkerActor`; one call takes a function
to all that a worker keeps, so that a pass costs one exchange a worker and only its sums travel.

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
from typing import Any, TypeVar
from uuid import uuid4

import cloudpickle
import distributed
from distributed.actor import BaseActorFuture
from distributed.scheduler import KilledWorker

from deniable.compute.arrays import ArrayKernels
from deniable.compute.backend import SUM_GROUP, Held, Kept, total
from deniable.compute.cpu.array_kernels import CPU_KERNELS
from deniable.compute.cpu.threads import SHARDS_AHEAD, HeldInMemory, one_blas_thread
from deniable.compute.dask.worker import Recipe, Step, Then, WorkerActor
from deniable.compute.named import default_backend
from deniable.errors import ClusterError
from deniable.version import __version__

Shard = TypeVar("Shard")
Result = TypeVar("Result")
Call = BaseActorFuture[Any]

TOGETHER = 2
"""Shards of one task: a task's own cost is some milliseconds."""
INLINE = 1 << 16
"""Bytes of a function that every task carries; a larger one is sent to each worker once."""
CONNECT = 10.0
"""Seconds that a scheduler has to answer."""
PATIENCE = 60.0
"""Seconds that we wait for a worker where there is none."""
ATTEMPTS = 8
"""Workers that may die under the same shard before we suspect the shard."""

_LOOK = 0.5
"""Seconds after which we look whether the worker that we wait for is still there."""
_LOST = (OSError, RuntimeError, ValueError, KeyError)
"""How a call of an actor fails if its worker is gone; errors of our functions come as answers."""


class Dask:
    """The workers of one scheduler.

    address : the scheduler's HOST:PORT; None starts worker processes on this machine, one a
    processor unless `workers` says otherwise, which end with this object's `close`.
    """

    arrays: ArrayKernels = CPU_KERNELS

    def __init__(self, address: str | None = None, *, workers: int | None = None) -> None:
        self._cluster: Any = None
        if address is None:
            local: Any = distributed.LocalCluster
            self._cluster = local(
                n_workers=workers or os.cpu_count() or 1,
                threads_per_worker=1,
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",
            )
        target = address if self._cluster is None else self._cluster
        if address is not None and "://" not in address:
            target = f"tcp://{address}"
        try:
            connect: Any = distributed.Client
            self.client: Any = connect(target, timeout=CONNECT, direct_to_workers=True)
        except (OSError, ValueError) as error:
            raise ClusterError(
                f"no Dask scheduler answers at {address}: {error}; start one with `dask scheduler` "
                "and workers with `dask worker HOST:PORT`"
            ) from None
        self._keepers: dict[str, _Connection] = {}
        self._numbers = count()
        self.released: list[int] = []

    def close(self) -> None:
        """Let go of the cluster; one that was started here ends."""
        self._keepers.clear()
        self.client.close()
        if self._cluster is not None:
            self._cluster.close()

    def __enter__(self) -> Dask:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- tasks -----------------------------------------------------------------------------------

    def map(
        self, function: Callable[[Shard], Result], shards: Iterable[Shard], /
    ) -> Iterator[Result]:
        """Yield function(shard) for every shard, in order; shards are taken a little ahead."""
        self.workers()
        sent: Any = function
        if len(cloudpickle.dumps(function)) > INLINE:
            (sent,) = self.client.scatter([function], broadcast=True)
        name, run = name_of(function), uuid4().hex[:8]
        waiting: deque[Any] = deque()
        most = SHARDS_AHEAD * sum(self.client.nthreads().values())
        stream = iter(shards)
        try:
            for i in count():
                group = list(islice(stream, TOGETHER))
                if not group:
                    break
                key = (f"{name}-{run}", i)
                waiting.append(self.client.submit(_each, sent, group, key=key, pure=False))
                if len(waiting) > most:
                    yield from _result(waiting.popleft())
            while waiting:
                yield from _result(waiting.popleft())
        finally:
            self.client.cancel(list(waiting))

    # --- actors ----------------------------------------------------------------------------------

    def hold(self, function: Callable[[Shard], Result], shards: Iterable[Shard], /) -> Held[Result]:
        """Keep function(shard) of every shard on some worker, dealt out in turn."""
        family = _Family(self)
        held: _Held[Result] = _Held(family, (Step(next(self._numbers), function, ()),))
        seats = [each for each, threads in self.workers().items() for _ in range(threads)]
        waiting: deque[tuple[int, Call | None]] = deque()
        again = []
        for i, shard in enumerate(shards):
            family.add(shard, seats[i // SUM_GROUP % len(seats)])
            waiting.append((i, held.make(i)))
            if len(waiting) > 2 * SUM_GROUP * len(seats):
                again += held.made(*waiting.popleft())
        while waiting:
            again += held.made(*waiting.popleft())
        held.everywhere(None, (), places=again)
        return held

    def number(self) -> int:
        """A number that no other kept thing has."""
        return next(self._numbers)

    def run(self, address: str, *call: Any) -> Call:
        """Call the worker's actor, made when first asked for; see `WorkerActor.run`."""
        if address not in self._keepers:
            self._keepers[address] = _Connection(self.client, address, len(self.released))
        keeper = self._keepers[address]
        gone, keeper.told = self.released[keeper.told :], len(self.released)
        called: Call = keeper.actor.call(cloudpickle.dumps((*call, gone)))
        return called

    def alive(self, address: str) -> bool:
        """Whether the scheduler still knows the worker: a call of a dead one is never answered."""
        return address in self._keepers and address in self.client.nthreads()

    def lose(self, address: str) -> None:
        """Forget a worker that does not answer."""
        self._keepers.pop(address, None)

    def workers(self, *, without: str | None = None) -> dict[str, int]:
        """Workers and their threads, once there are some."""
        until = time.monotonic() + PATIENCE
        while True:
            found: dict[str, int] = self.client.nthreads()
            found.pop(without or "", None)
            if found:
                return found
            if time.monotonic() > until:
                raise ClusterError(
                    f"the scheduler has had no workers for {PATIENCE:.0f} seconds; start some with "
                    "`dask worker HOST:PORT`"
                )
            time.sleep(0.1)


class _Connection:
    """One worker's actor, the future that keeps it alive, and how much it was told to release."""

    def __init__(self, client: Any, address: str, told: int) -> None:
        self.told = told
        key = f"keeper-of-reports-{uuid4().hex[:8]}"
        self._future = client.submit(
            WorkerActor, key=key, workers=[address], actor=True, pure=False
        )
        try:
            self.actor = self._future.result(timeout=30)
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


class _Family:
    """Shards, and where each is: all that is made of a shard is kept in the same place."""

    def __init__(self, cluster: Dask) -> None:
        self.cluster = cluster
        self.shards: list[Any] = []
        self._where: list[str] = []

    def add(self, shard: Any, address: str) -> None:
        self.shards.append(shard)
        self._where.append(address)

    def where(self, place: int) -> str:
        """The worker of one shard."""
        return self._where[place]

    def by_worker(self, places: Iterable[int]) -> dict[str, list[int]]:
        """The places that each worker has."""
        found: dict[str, list[int]] = {}
        for place in places:
            found.setdefault(self._where[place], []).append(place)
        return found

    def move(self, address: str) -> None:
        """Deal the places of a lost worker out to those that are left."""
        self.cluster.lose(address)
        seats = list(self.cluster.workers(without=address))
        for place, where in enumerate(self._where):
            if where == address:
                self._where[place] = seats[place // SUM_GROUP % len(seats)]


@dataclass(frozen=True, eq=False)
class _Task:
    """What is to be done with everything kept; number : under which results are kept."""

    function: Callable[..., Any] | None
    each: tuple[Sequence[object], ...]
    then: Then
    number: int | None


class _Held(Held[Kept]):
    """What workers keep; the steps from the shards to it, so that others can make it again."""

    def __init__(self, family: _Family, steps: tuple[Step, ...]) -> None:
        self._family, self._steps = family, steps
        # Told to the workers with the next call: a collector of garbage must not wait for them.
        weakref.finalize(self, family.cluster.released.append, steps[-1].number)

    def __len__(self) -> int:
        return len(self._family.shards)

    def map(self, function: Callable[..., Result], /, *each: Sequence[object]) -> Iterator[Result]:
        yield from self.everywhere(function, each)

    def sum(self, function: Callable[..., Result], /, *each: Sequence[object]) -> Result:
        result: Result = total(self.everywhere(function, each, Then.ADD))
        return result

    def hold(self, function: Callable[..., Result], /, *each: Sequence[object]) -> Held[Result]:
        step = Step(self._family.cluster.number(), function, each)
        self.everywhere(function, each, Then.KEEP, step.number)
        return _Held(self._family, (*self._steps, step))

    def gather_small(
        self, function: Callable[..., Result], /, *each: Sequence[object]
    ) -> Held[Result]:
        """Bring it here: a pass over it then costs no exchange."""
        return HeldInMemory(default_backend(), tuple(self.map(function, *each)))

    def make(self, place: int) -> Call | None:
        """Have one shard's worker begin to make it; None if it is gone."""
        task = _Task(None, (), Then.GIVE, None)
        return self._call(self._family.where(place), [place], task, {place})

    def made(self, place: int, call: Call | None) -> list[int]:
        """Wait for it; returns the place if its worker died."""
        answer = self._answer(self._family.where(place), call)
        return [place] if answer is None else []

    def everywhere(
        self,
        function: Callable[..., Any] | None,
        each: tuple[Sequence[object], ...],
        then: Then = Then.GIVE,
        number: int | None = None,
        *,
        places: Iterable[int] | None = None,
    ) -> list[Any]:
        """function(kept, …) of these places, or all, repeated until every part is there."""
        task = _Task(function, each, then, number)
        wanted = list(range(len(self)) if places is None else places)
        found: dict[int, Any] = {}
        unmade: set[int] = set()
        for _ in range(ATTEMPTS):
            calls = [
                (address, mine, self._call(address, mine, task, unmade))
                for address, mine in self._family.by_worker(wanted).items()
            ]
            for address, mine, call in calls:
                answer = self._answer(address, call)
                if answer is None:
                    self._family.move(address)
                elif answer.missing:
                    unmade.update(mine)
                else:
                    # The sum of a four stands at its first place.
                    firsts = mine[::SUM_GROUP] if then is Then.ADD else mine
                    found |= zip(firsts, answer.values, strict=True)
                    wanted = sorted(set(wanted).difference(mine))
            if not wanted:
                return [found[place] for place in sorted(found)]
        raise ClusterError(
            f"{ATTEMPTS} workers died one after another over the same {len(wanted)} shards: they "
            "may need more memory than a worker has"
        )

    def _call(
        self, address: str, places: Sequence[int], task: _Task, unmade: set[int]
    ) -> Call | None:
        """Ask a worker; None if it is gone."""
        recipe = None
        if not unmade.isdisjoint(places):
            recipe = Recipe(
                tuple(step.at(places) for step in self._steps),
                [self._family.shards[place] for place in places],
            )
        step = Step(task.number or -1, task.function, task.each).at(places)
        try:
            return self._family.cluster.run(
                address, self._steps[-1].number, places, step, task.then, recipe
            )
        except _LOST:
            return None

    def _answer(self, address: str, call: Call | None) -> Any:
        """What the worker answered; None if it is gone."""
        if call is None:
            return None
        while True:
            try:
                answer = pickle.loads(call.result(timeout=_LOOK))  # noqa: S301  our own worker's
                break
            except TimeoutError:
                if not self._family.cluster.alive(address):
                    return None
            except _LOST:
                return None
        if answer.error is not None:
            answer.error.add_note(f"on worker {address}")
            raise answer.error
        return answer


def name_of(function: Callable[..., Any]) -> str:
    """What a function is called on the dashboard: the innermost one's own name.

    >>> name_of(partial(map, partial(pow, 2)))
    'pow'
    """
    while isinstance(function, partial):
        inner = [each for each in function.args if callable(each)]
        function = inner[0] if inner else function.func
    return getattr(function, "__name__", "work").strip("_")


def _each(function: Callable[[Any], Any], shards: list[Any]) -> list[Any]:
    """Run by a worker: one task."""
    with one_blas_thread():
        return [function(shard) for shard in shards]


def _result(task: Any) -> list[Any]:
    try:
        result: list[Any] = task.result()
    except KilledWorker as error:
        raise ClusterError(
            f"workers died over one task, {error.task}: it may need more memory than a worker has"
        ) from None
    return result
