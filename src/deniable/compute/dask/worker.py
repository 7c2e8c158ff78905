"""What a worker of a cluster keeps, and how it is made again elsewhere."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum

import cloudpickle

from deniable.compute.backend import group_sums
from deniable.compute.cpu.threads import Threads
from deniable.errors import ClusterError
from deniable.version import __version__


class ReplyKind(Enum):
    """What a worker replies with, once it has taken a step."""

    RESULTS = "the results"
    SUMS = "the sum of each group of neighbouring results"
    NOTHING = "nothing: it keeps the results"


@dataclass(frozen=True, eq=False)
class Step:
    """A function of a shard, or of what was made of it, whose result may be kept under a key.

    each : further arguments, one entry for each place
    """

    key: int
    function: Callable[..., object]
    each: tuple[Sequence[object], ...] = ()

    def at(self, places: Sequence[int]) -> Step:
        """The same step, with the arguments of these places only."""
        return replace(self, each=tuple([entries[i] for i in places] for entries in self.each))

    def apply(self, value: object, turn: int) -> object:
        """The result for one value; turn : which of the step's places it is."""
        return self.function(value, *(entries[turn] for entries in self.each))


@dataclass(frozen=True, eq=False)
class Request:
    """What a worker is to do at some places: take a step from what it keeps there.

    history : the steps from the shards to what is kept, under the key of the last one; with none of
    them the step is taken from the shards themselves.
    shards : those of the places, where something may have to be made from them.
    released : keys that nobody needs any more
    """

    places: Sequence[int]
    history: tuple[Step, ...]
    step: Step
    kind: ReplyKind
    shards: Sequence[object] | None
    released: Sequence[int]


@dataclass(frozen=True, eq=False)
class WorkerReply:
    """What became of a request: values in the order of the places, or of their groups; an error; or
    something that is missing and must be made from the shards."""

    values: Sequence[object]
    error: Exception | None = None
    missing: bool = False


class WorkerActor:
    """Run by each worker, as an actor: one request at a time, on all of the worker's threads.

    Results are kept by key and place.
    """

    def __init__(self) -> None:
        from distributed import get_worker

        self._threads = Threads(get_worker().state.nthreads or os.cpu_count())
        self._kept: dict[int, dict[int, object]] = {}

    def version(self) -> str:
        """Return the version of deniable that is installed here."""
        return __version__

    def call(self, request: bytes) -> bytes:
        """Answer a pickled request by a pickled reply.

        Both are pickled by us: a call that Dask cannot pickle is never answered.
        """
        reply = self.run(pickle.loads(request))  # noqa: S301  whoever reaches a worker can run code
        if reply.error is not None:
            reply.error.with_traceback(None).__cause__ = reply.error.__context__ = None
        try:
            return bytes(cloudpickle.dumps(reply))
        except Exception as error:
            cause = reply.error or error
            problem = ClusterError(f"{type(cause).__name__}: {cause}")
            return bytes(cloudpickle.dumps(WorkerReply([], problem)))

    def run(self, request: Request) -> WorkerReply:
        """Take the step.

        Errors are returned too: raised, they would look like those of a broken connection.
        """
        for key in request.released:
            self._kept.pop(key, None)
        step, places = request.step, request.places
        try:
            source = self._source(request)
            if not source.keys() >= set(places):
                return WorkerReply([], missing=True)
            work = ((source[place], turn) for turn, place in enumerate(places))
            values = list(self._threads.starmap(step.apply, work))
            if request.kind is ReplyKind.SUMS:
                values = group_sums(values)
        except Exception as error:
            return WorkerReply([], error)
        if request.kind is ReplyKind.NOTHING:
            self._kept.setdefault(step.key, {}).update(zip(places, values, strict=True))
            values = [None] * len(values)
        return WorkerReply(values)

    def _source(self, request: Request) -> dict[int, object]:
        """What the step is taken from, by place; made from the shards where they were sent."""
        history, shards = request.history, request.shards
        source = self._kept.setdefault(history[-1].key, {}) if history else {}
        if shards is not None:
            work = [
                (history, place, turn, shards[turn])
                for turn, place in enumerate(request.places)
                if place not in source
            ]
            made = self._threads.starmap(self._follow, work)
            for (_, place, _, _), value in zip(work, made, strict=True):
                source[place] = value
        return source

    def _follow(self, history: Sequence[Step], place: int, turn: int, value: object) -> object:
        """Take all steps from a shard, or from the last that was kept of it."""
        first = 0
        for i, step in enumerate(history):
            if place in self._kept.get(step.key, {}):
                value, first = self._kept[step.key][place], i + 1
        for step in history[first:]:
            value = step.apply(value, turn)
        return value
