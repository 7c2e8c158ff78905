"""A GPU as a backend: reports are read by threads here, and their rows stay in its memory.

"gpu:cpu" runs the same on processors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import cast

from deniable.compute.backend import Held, Kept, Result, Shard
from deniable.compute.cpu.threads import HeldInMemory, Threads
from deniable.compute.gpu.array_kernels import TensorKernels
from deniable.compute.gpu.tensor_rows import TensorRows, joined


class Gpu(Threads):
    """The device of this name: "cuda", "cuda:1", or "cpu", the same code on processors."""

    def __init__(self, name: str = "cuda", workers: int | None = None) -> None:
        super().__init__(workers)
        self.arrays: TensorKernels = TensorKernels(name)

    def hold(self, function: Callable[[Shard], Result], shards: Iterable[Shard], /) -> Held[Result]:
        """Keep function(shard) of every shard; likelihood rows are joined to one."""
        return _HeldOnDevice(self, self.map(function, shards))


class _HeldOnDevice(HeldInMemory[Kept]):
    """What the functions made; tensors stay in the device's memory."""

    def __init__(self, threads: Threads, kept: Iterable[Kept]) -> None:
        made = tuple(kept)
        rows = [one for one in made if isinstance(one, TensorRows)]
        super().__init__(threads, cast(Iterable[Kept], (joined(rows),)) if rows else made)

    def hold(self, function: Callable[..., Result], /, *each: Sequence[object]) -> Held[Result]:
        return _HeldOnDevice(self._threads, self.map(function, *each))
