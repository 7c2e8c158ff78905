"""A GPU as a backend: threads of this process read reports, and their rows stay on the GPU.

"gpu:cpu" runs the same code on CPUs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import cast

from deniable.compute.backend import Held, Kept, Result, Shard
from deniable.compute.cpu.threads import HeldInMemory, Threads
from deniable.compute.gpu.array_kernels import TensorKernels
from deniable.compute.gpu.tensor_rows import TensorRows, joined


class Gpu(Threads):
    """The device of this name: "cuda", "cuda:1", or "cpu", which runs the same code on CPUs."""

    def __init__(self, name: str = "cuda", workers: int | None = None) -> None:
        super().__init__(workers)
        self.arrays: TensorKernels = TensorKernels(name)

    def hold(self, function: Callable[[Shard], Result], shards: Iterable[Shard], /) -> Held[Result]:
        """Hold function(shard) for every shard; likelihood rows of all shards are joined."""
        return _HeldOnDevice(self, self.map(function, shards))


class _HeldOnDevice(HeldInMemory[Kept]):
    """Results of functions; tensors stay in the memory of the device."""

    def __init__(self, threads: Threads, results: Iterable[Kept]) -> None:
        separate = tuple(results)
        rows = [result for result in separate if isinstance(result, TensorRows)]
        super().__init__(threads, cast(Iterable[Kept], (joined(rows),)) if rows else separate)

    def hold(self, function: Callable[..., Result], /, *each: Sequence[object]) -> Held[Result]:
        """Hold function(result, …) for every result."""
        return _HeldOnDevice(self._threads, self.map(function, *each))
