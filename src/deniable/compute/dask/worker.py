"""The actor that holds results on a Dask worker, and the requests that it answers."""

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
    """Content of the reply of a worker that has run a step."""

    RESULTS = "the results"
    SUMS = "the sum of each group of consecutive results"
    NOTHING = "nothing: it holds the results"


@dataclass(frozen=True, eq=False)
class Step:
    """A function of a shard or of an earlier result; its results may be held under a key.

    each : further arguments, one entry per place
    """

    key: int
    function: Callable[..., object]
    each: tuple[Sequence[object], ...] = ()

    def at(self, places: Sequence[int]) -> Step:
        """Return the step with the arguments of these places only."""
        return replace(self, each=tuple([entries[i] for i in places] for entries in self.each))

    def apply(self, value: object, turn: int) -> object:
        """Return the result for one value; turn : index of its place in the step."""
        return self.function(value, *(entries[turn] for entries in self.each))


@dataclass(frozen=True, eq=False)
class Request:
    """A request to run a step on the results that a worker holds at some places.

    history : steps that compute these results from the shards; they are held under the key of the
    last step. Without a history the step runs on the shards.
    shards : shards of the places, if results may have to be computed from them
    released : keys of results that are no longer needed
    """

    places: Sequence[int]
    history: tuple[Step, ...]
    step: Step
    kind: ReplyKind
    shards: Sequence[object] | None
    released: Sequence[int]


@dataclass(frozen=True, eq=False)
class WorkerReply:
    """Reply to a request.

    values : in the order of the places, or of their groups; error : raised by the function;
    missing : whether results are missing that must be computed from the shards
    """

    values: Sequence[object]
    error: Exception | None = None
    missing: bool = False


class WorkerActor:
    """Dask actor of one worker: it runs one request at a time, on all threads of the worker.

    Results are held by key and place.
    """

    def __init__(self) -> None:
        from distributed import get_worker

        self._threads = Threads(get_worker().state.nthreads or os.cpu_count())
        self._kept: dict[int, dict[int, object]] = {}

    def version(self) -> str:
        """Return the version of deniable on this worker."""
        return __version__

    def call(self, request: bytes) -> bytes:
        """Return the pickled reply to a pickled request.

        They are not pickled by Dask, which never answers a call that it cannot pickle.
        """
        reply = self.run(pickle.loads(request))  # noqa: S301  clients may run code on workers
        if reply.error is not None:
            reply.error.with_traceback(None).__cause__ = reply.error.__context__ = None
        try:
            return bytes(cloudpickle.dumps(reply))
        except Exception as error:
            cause = reply.error or error
            problem = ClusterError(f"{type(cause).__name__}: {cause}")
            return bytes(cloudpickle.dumps(WorkerReply([], problem)))

    def run(self, request: Request) -> WorkerReply:
        """Run the step of a request.

        Errors are returned, because raised ones would look like those of a broken connection.
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
        """Return the arguments of the step by place; compute missing ones from sent shards."""
        history, shards = request.history, request.shards
        source = self._kept.setdefault(history[-1].key, {}) if history else {}
        if shards is not None:
            work = [
                (history, place, turn, shards[turn])
                for turn, place in enumerate(request.places)
                if place not in source
            ]
            computed = self._threads.starmap(self._follow, work)
            for (_, place, _, _), value in zip(work, computed, strict=True):
                source[place] = value
        return source

    def _follow(self, history: Sequence[Step], place: int, turn: int, value: object) -> object:
        """Run all steps from a shard, or from the latest result that is held for it."""
        first = 0
        for i, step in enumerate(history):
            if place in self._kept.get(step.key, {}):
                value, first = self._kept[step.key][place], i + 1
        for step in history[first:]:
            value = step.apply(value, turn)
        return value
