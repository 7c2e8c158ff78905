"""The `Backend` protocol, which threads, a Dask cluster and a GPU implement.

A shard is any object that can be pickled: a file name and the rows to read, or a tuple of arrays.
`Backend.map` returns the result of a function for every shard. `Backend.hold` leaves the results
with the workers that computed them and returns a `Held`, which runs further functions on them, pass
after pass. `Backend.arrays` has the operations on arrays in the memory of the workers.

Functions can be pickled: module-level functions, `partial`s of them, or `MethodCall`s. Results come
in the order of the shards, so sums over shards are the same on every backend, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from operator import add
from typing import Generic, Protocol, TypeVar

from deniable.compute.arrays import ArrayKernels

Shard = TypeVar("Shard")
Result = TypeVar("Result")
Kept = TypeVar("Kept", covariant=True)

SUM_GROUP = 4
"""Number of consecutive results that one worker holds and adds up before they are sent."""


class Held(Protocol[Kept]):
    """Results of a function for every shard, held by the workers that computed them.

    They are released with this object. If a worker dies, its results are computed again from the
    shards by the same functions, which therefore must be deterministic.
    """

    def map(self, function: Callable[..., Result], /, *each: Sequence[object]) -> Iterator[Result]:
        """Yield function(result, …) for every result, in order.

        each : further arguments, one entry per result
        """
        ...

    def hold(self, function: Callable[..., Result], /, *each: Sequence[object]) -> Held[Result]:
        """Hold function(result, …) for every result, on the same workers."""
        ...

    def gather_small(
        self, function: Callable[..., Result], /, *each: Sequence[object]
    ) -> Held[Result]:
        """Hold function(result, …), which is small, where further passes over it are fastest."""
        return self.hold(function, *each)

    def sum(self, function: Callable[..., Result], /, *each: Sequence[object]) -> Result:
        """Return the sum of function(result, …): first within groups, then over groups, in order.

        A worker holds all of a group, and sends only its sum.
        """
        return total(group_sums(list(self.map(function, *each))))

    def __len__(self) -> int:
        """Return the number of results."""
        ...


class Backend(Protocol):
    """Runs functions on shards, and holds their results."""

    @property
    def arrays(self) -> ArrayKernels:
        """Operations on arrays in the memory of the workers."""
        ...

    def map(
        self, function: Callable[[Shard], Result], shards: Iterable[Shard], /
    ) -> Iterator[Result]:
        """Yield function(shard) for every shard, in order."""
        ...

    def hold(self, function: Callable[[Shard], Result], shards: Iterable[Shard], /) -> Held[Result]:
        """Hold function(shard) for every shard on the worker that computed it."""
        ...


class MethodCall(Generic[Result]):
    """A function that calls the method of this name; subclasses may override the method.

    The arguments given here precede those of each call.

    >>> MethodCall(str.replace, "a")("banana", "o")
    'bonono'
    """

    def __init__(self, method: Callable[..., Result], *arguments: object) -> None:
        self._name, self._arguments = method.__name__, arguments

    def __call__(self, value: object, *each: object) -> Result:
        """Call the method of `value`."""
        result: Result = getattr(value, self._name)(*self._arguments, *each)
        return result


def group_sums(results: Sequence[Result]) -> list[Result]:
    """Return the sum of each group of SUM_GROUP consecutive results, in order."""
    starts = range(0, len(results), SUM_GROUP)
    return [total(results[start : start + SUM_GROUP]) for start in starts]


def total(results: Sequence[Result]) -> Result:
    """Return the sum of one or more results, added from the first to the last."""
    result: Result = reduce(add, results)
    return result
