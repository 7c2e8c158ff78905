"""What a worker of a cluster keeps, and how it is made again elsewhere."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import Any

import cloudpickle

from deniable.compute.backend import group_sums
from deniable.compute.cpu.threads import Threads
from deniable.errors import ClusterError
from deniable.version import __version__


class Then(Enum):
    """What is done with the results of a call."""

    GIVE = "give them back"
    ADD = "give back the sums of fours"
    KEEP = "keep them"


@dataclass(frozen=True, eq=False)
class Step:
    """A function of what was kept before, whose result is kept under a number.

    each : further arguments, an entry for each place. Without a function, what was kept itself.
    """

    number: int
    function: Callable[..., Any] | None
    each: tuple[Sequence[Any], ...]

    def at(self, places: Sequence[int]) -> Step:
        """The same step, with the arguments of these places only."""
        return replace(self, each=tuple([entries[i] for i in places] for entries in self.each))

    def take(self, kept: Any, turn: int) -> Any:
        """The result for one thing that was kept."""
        if self.function is None:
            return None
        return self.function(kept, *(entries[turn] for entries in self.each))


@dataclass(frozen=True, eq=False)
class Recipe:
    """All steps from shards to what is kept of them, for some places."""

    steps: tuple[Step, ...]
    shards: list[Any]


@dataclass(frozen=True, eq=False)
class WorkerReply:
    """What became of a call: values in the order of the places, or of their fours; an error; or
    something that is missing."""

    values: list[Any]
    error: Exception | None = None
    missing: bool = False


class WorkerActor:
    """Run by each worker, as an actor: one call at a time, on all of the worker's threads.

    Kept by number and place; what a dead worker kept comes back with its recipe.
    """

    def __init__(self) -> None:
        from distributed import get_worker

        self._threads = Threads(get_worker().state.nthreads or os.cpu_count())
        self._kept: dict[int, dict[int, Any]] = {}

    def version(self) -> str:
        """Of deniable, here."""
        return __version__

    def call(self, sent: bytes) -> bytes:
        """Run what was sent, and answer in kind.

        Both are pickled by us: a call that Dask cannot pickle is never answered.
        """
        answer = self.run(*pickle.loads(sent))  # noqa: S301  whoever reaches a worker can run code
        if answer.error is not None:
            answer.error.with_traceback(None).__cause__ = answer.error.__context__ = None
        try:
            return bytes(cloudpickle.dumps(answer))
        except Exception as error:
            said = answer.error or error
            problem = ClusterError(f"{type(said).__name__}: {said}")
            return bytes(cloudpickle.dumps(WorkerReply([], problem)))

    def run(
        self,
        number: int,
        places: Sequence[int],
        step: Step,
        then: Then,
        recipe: Recipe | None,
        released: Sequence[int],
    ) -> WorkerReply:
        """Take a step from what is kept under the number, and `then` do this with the results.

        Errors are given back too: raised, they would look like those of a broken connection.
        """
        for gone in released:
            self._kept.pop(gone, None)
        try:
            kept = self._kept.setdefault(number, {})
            if recipe is not None:
                self._make(places, recipe)
            if not kept.keys() >= set(places):
                return WorkerReply([], missing=True)
            work = [(kept[place], turn) for turn, place in enumerate(places)]
            values = list(self._threads.map(partial(_taken, step), work))
            values = group_sums(values) if then is Then.ADD else values
        except Exception as error:
            return WorkerReply([], error)
        if then is Then.KEEP:
            self._kept.setdefault(step.number, {}).update(zip(places, values, strict=True))
            values = [None] * len(values)
        return WorkerReply(values)

    def _make(self, places: Sequence[int], recipe: Recipe) -> None:
        """Make what is not there, from the nearest thing that is."""
        kept = self._kept[recipe.steps[-1].number]
        work = [
            (turn, place, recipe.shards[turn])
            for turn, place in enumerate(places)
            if place not in kept
        ]
        made = self._threads.map(partial(self._follow, recipe.steps), work)
        for (_, place, _), value in zip(work, made, strict=True):
            kept[place] = value

    def _follow(self, steps: Sequence[Step], item: tuple[int, int, Any]) -> Any:
        turn, place, value = item
        first = 0
        for i, step in enumerate(steps):
            if place in self._kept.get(step.number, {}):
                value, first = self._kept[step.number][place], i + 1
        for step in steps[first:]:
            value = step.take(value, turn)
        return value


def _taken(step: Step, item: tuple[Any, int]) -> Any:
    return step.take(*item)
