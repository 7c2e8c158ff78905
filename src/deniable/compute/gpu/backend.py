"""A GPU as an executor: reports are read by threads here, and their rows stay in its memory.

What the analysis asks of an executor beside `map` and `hold`: `lay_out` (where likelihood rows go),
`place` (where reports go before rows are made of them), `system` (who solves equations) and `loops`
(who screens candidates). See `deniable.compute.gpu` for the arithmetic; "gpu:cpu" runs the same on
processors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from deniable.compute.backend import Held, Kept, Result, Shard, Threads
from deniable.compute.gpu.pieces import TensorPiece, joined, lay_out
from deniable.compute.gpu.screening import TensorScreening
from deniable.compute.gpu.systems import TensorSystem
from deniable.compute.gpu.tensors import device, placed


class Gpu:
    """The device of this name: "cuda", "cuda:1", or "cpu", the same code on processors."""

    def __init__(self, name: str = "cuda", workers: int | None = None) -> None:
        self.device = device(name)
        self.lay_out = partial(lay_out, name)
        self.place = partial(placed, where=self.device)
        self.system = partial(TensorSystem, name)
        self.loops = TensorScreening(name)
        self._threads = Threads(workers)

    def map(
        self, function: Callable[[Shard], Result], shards: Iterable[Shard], /
    ) -> Iterator[Result]:
        """Yield function(shard) for every shard, in order; threads call it."""
        return self._threads.map(function, shards)

    def hold(self, function: Callable[[Shard], Result], shards: Iterable[Shard], /) -> Held[Result]:
        """Keep function(shard) of every shard; pieces of rows are joined to one."""
        return _OnDevice(self._threads, tuple(self.map(function, shards)))


class _OnDevice(Held[Kept]):
    """What the functions made; tensors stay in the device's memory."""

    def __init__(self, threads: Threads, kept: tuple[Kept, ...]) -> None:
        pieces: Any = [one for one in kept if isinstance(one, TensorPiece)]
        self._threads = threads
        self._kept = (joined(pieces),) if pieces else kept

    def map(self, function: Callable[..., Result], /, *each: Sequence[Any]) -> Iterator[Result]:
        if not each:
            return self._threads.map(function, self._kept)
        given = zip(self._kept, *each, strict=True)
        return self._threads.map(lambda arguments: function(*arguments), given)

    def hold(self, function: Callable[..., Result], /, *each: Sequence[Any]) -> Held[Result]:
        return _OnDevice(self._threads, tuple(self.map(function, *each)))

    def __len__(self) -> int:
        return len(self._kept)
