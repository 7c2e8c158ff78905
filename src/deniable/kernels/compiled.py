"""The one way this package compiles: cached on disk, without the interpreter lock.

Threads then run kernels side by side (see `chunks`); `parallel=True` would cost seconds of
compilation on the first call.
"""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np
from numba import njit
from numpy.typing import NDArray

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
Scalar = TypeVar("Scalar", bound=np.generic)


def _sources() -> tuple[tuple[str, int, int], ...]:
    """Name, time and size of every file of kernels."""
    files = sorted(Path(__file__).parent.rglob("*.py"))
    return tuple((str(file), file.stat().st_mtime_ns, file.stat().st_size) for file in files)


SOURCES = _sources()


REORDERED_SUMS = frozenset({"reassoc", "contract", "nsz"})


def _compile(
    function: Callable[Parameters, Result],
    *,
    inline: bool = False,
    fastmath: frozenset[str] = frozenset(),
) -> Callable[Parameters, Result]:
    compiler = njit(
        cache=True, nogil=True, error_model="numpy", forceinline=inline, fastmath=set(fastmath)
    )
    made: Any = compiler(function)
    # Numba forgets a kept kernel when its own file changes, but not when a function that it calls
    # in another file does: it would go on running the old code. All files count here.
    with suppress(AttributeError):  # private to numba: without it only this care is lost
        made._cache._cache_file._source_stamp = SOURCES
    return cast(Callable[Parameters, Result], made)


def compiled(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile `function` on first call, without the interpreter lock, and keep the code on disk."""
    return _compile(function)


def compiled_sums(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile sums of non-negative terms: the compiler may split them over vector lanes and fuse a
    product with an addition, which only reorders or drops roundings."""
    return _compile(function, fastmath=REORDERED_SUMS)


def inlined(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile `function` into its callers: for steps of a few instructions."""
    return _compile(function, inline=True)


def read_only(array: NDArray[Any], dtype: type[Scalar]) -> NDArray[Scalar]:
    """Return `array` as a contiguous, aligned, read-only view of `dtype`, copied only where needed.

    Every other kind of array (writable, strided, unaligned) would be compiled once more.
    """
    view = np.require(array, dtype=dtype, requirements=["C", "A"]).view()
    view.flags.writeable = False
    return view
