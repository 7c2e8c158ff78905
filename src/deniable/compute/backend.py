"""Where work runs: the protocol that threads, a cluster and a GPU implement.

A shard is anything that can be pickled, small if it is to travel far: a file's name and the rows to
be read of it, or a plain tuple of arrays. `Backend.map` gives a function's results for every
shard; `Backend.hold` leaves them where they were made, and the `Held` that stands for them takes
functions there instead, pass after pass. `Backend.arrays` is what differs in memory. Functions are
module-level ones, `partial`s of them or `MethodCall`s, so that they can be sent; results come back
in the order of the shards, so that sums over shards are the same bit for bit wherever they are
made.
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
"""Neighbours among what is held that are kept, and added up, together."""


class Held(Protocol[Kept]):
    """What a function made of every shard, kept by those that made it; released with this object.

    A backend whose workers may die makes it again from the shards, with the same functions: they
    must give the same each time.
    """

    def map(self, function: Callable[..., Result], /, *each: Sequence[object]) -> Iterator[Result]:
        """Yield function(kept, …) for everything kept, in order, with its own entry of `each`."""
        ...

    def hold(self, function: Callable[..., Result], /, *each: Sequence[object]) -> Held[Result]:
        """Keep function(kept, …) in the same places."""
        ...

    def gather_small(
        self, function: Callable[..., Result], /, *each: Sequence[object]
    ) -> Held[Result]:
        """Keep function(kept, …), which is small, where further passes over it cost least."""
        return self.hold(function, *each)

    def sum(self, function: Callable[..., Result], /, *each: Sequence[object]) -> Result:
        """Add up function(kept, …) of everything kept: group by group, then the groups, in order.

        Workers keep all of a group, and send its sum only.
        """
        return total(group_sums(list(self.map(function, *each))))

    def __len__(self) -> int:
        """How many things are kept."""
        ...


class Backend(Protocol):
    """Maps a function over shards, and holds what it makes of them."""

    @property
    def arrays(self) -> ArrayKernels:
        """The operations on arrays in the memory of whoever runs the functions."""
        ...

    def map(
        self, function: Callable[[Shard], Result], shards: Iterable[Shard], /
    ) -> Iterator[Result]:
        """Yield function(shard) for every shard, in order."""
        ...

    def hold(self, function: Callable[[Shard], Result], shards: Iterable[Shard], /) -> Held[Result]:
        """Keep function(shard) of every shard where it was made."""
        ...


class MethodCall(Generic[Result]):
    """Calls a method of whatever is kept, by its name: what is kept brings its own version of it.

    The arguments given here come first, then those of each call.

    >>> MethodCall(str.replace, "a")("banana", "o")
    'bonono'
    """

    def __init__(self, method: Callable[..., Result], *arguments: object) -> None:
        self._name, self._arguments = method.__name__, arguments

    def __call__(self, kept: object, *each: object) -> Result:
        """Call it."""
        result: Result = getattr(kept, self._name)(*self._arguments, *each)
        return result


def group_sums(results: Sequence[Result]) -> list[Result]:
    """The sum of each group of neighbours, in order."""
    starts = range(0, len(results), SUM_GROUP)
    return [total(results[start : start + SUM_GROUP]) for start in starts]


def total(results: Sequence[Result]) -> Result:
    """The sum, from the first on, of at least one thing."""
    result: Result = reduce(add, results)
    return result
