"""Backends by the names that users give them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from deniable.compute.backend import Backend
from deniable.compute.cpu.threads import Threads
from deniable.errors import InputError, did_you_mean
from deniable.extras import needs_packages

BACKEND_NAMES = "threads, threads:N, dask, dask://HOST:PORT, gpu or gpu:N"


@cache
def default_backend() -> Threads:
    """Return the threads that all analyses of this process share, one per processor."""
    return Threads()


def backend_of(executor: Backend | None) -> Backend:
    """Return a backend that was given, or the shared threads; refuse the name of one."""
    if isinstance(executor, str):
        raise InputError(
            f"executor must be an open backend, not a name: with "
            f"deniable.compute.named.executor_of({executor!r}) as executor: …"
        )
    return executor or default_backend()


@contextmanager
def executor_of(name: str) -> Iterator[Backend]:
    """Open the backend of this name; processes that it starts end with the block.

    Parameters
    ----------
    name : str
        One of

        - "threads": one thread per processor, or "threads:N";
        - "dask": one worker process per processor of this machine;
        - "dask://HOST:PORT": the workers of the scheduler at this address;
        - "gpu", or "gpu:N" for one of several GPUs;
        - "gpu:cpu": the code of the GPU, on CPUs.

    Yields
    ------
    Backend
        Backend to pass as `executor`.

    Raises
    ------
    InputError
        If the name is unknown or a device is missing.
    MissingPackage
        If the backend needs a package that is not installed.

    Examples
    --------
    >>> with executor_of("threads:2") as executor:
    ...     list(executor.map(sum, [(1, 2), (3, 4)]))
    [3, 7]
    """
    kind, _, argument = name.partition(":")
    if name == "threads":
        yield default_backend()
    elif kind == "threads" and argument.isdigit():
        yield Threads(int(argument))
    elif name == "dask" or (kind == "dask" and len(argument) > len("//")):
        yield from _dask(argument.removeprefix("//") or None)
    elif name == "gpu" or (kind == "gpu" and (argument.isdigit() or argument == "cpu")):
        from deniable.compute.gpu.backend import Gpu

        yield Gpu(f"cuda:{argument}" if argument.isdigit() else argument or "cuda")
    else:
        raise InputError(
            f"unknown executor {name!r}: expected {BACKEND_NAMES}."
            f"{did_you_mean(kind, ('threads', 'dask', 'gpu'))}"
        )


def _dask(address: str | None) -> Iterator[Backend]:
    """Yield a Dask backend: the scheduler at this address, or workers of this machine."""
    with needs_packages("a Dask backend", extra="cluster"):
        from deniable.compute.dask.cluster import Dask
    with Dask(address) as executor:
        yield executor
