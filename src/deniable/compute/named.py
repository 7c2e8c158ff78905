"""Executors by the names that people give them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from deniable.compute.backend import Backend
from deniable.compute.cpu.threads import Threads
from deniable.errors import InputError

NAMES = "threads, threads:N, dask, dask://HOST:PORT, gpu or gpu:N"


@cache
def default_backend() -> Threads:
    """Return the process's shared threads, one per processor."""
    return Threads()


@contextmanager
def executor_of(name: str) -> Iterator[Backend]:
    """The executor of this name; what was started for it ends with the block.

    `threads`, one a processor, or `threads:N`; `dask`, a process a processor on this machine;
    `dask://HOST:PORT`, the scheduler of a cluster; `gpu`, or `gpu:N`, one of several; `gpu:cpu`
    does on processors what a GPU would.

    >>> with executor_of("threads:2") as executor:
    ...     list(executor.map(sum, [(1, 2), (3, 4)]))
    [3, 7]
    """
    kind, _, rest = name.partition(":")
    if name == "threads":
        yield default_backend()
    elif kind == "threads" and rest.isdigit():
        yield Threads(int(rest))
    elif name == "dask" or (kind == "dask" and len(rest) > len("//")):
        yield from _dask(rest.removeprefix("//") or None)
    elif name == "gpu" or (kind == "gpu" and (rest.isdigit() or rest == "cpu")):
        from deniable.compute.gpu.backend import Gpu

        yield Gpu(f"cuda:{rest}" if rest.isdigit() else rest or "cuda")
    else:
        raise InputError(f"expected executor {NAMES}, got {name!r}")


def _dask(address: str | None) -> Iterator[Backend]:
    try:
        from deniable.compute.dask.cluster import Dask
    except ModuleNotFoundError as error:
        raise InputError(f"a cluster needs {error.name}: pip install 'deniable[cluster]'") from None
    with Dask(address) as executor:
        yield executor
