"""Decorators that compile functions with Numba: cached on disk, without the interpreter lock.

All kernels use them. Several threads can then run kernels at the same time (see `chunks`). Numba's
`parallel=True` is not used: it adds seconds of compilation to the first call. The environment
variable NUMBA_CACHE_DIR chooses the folder of the cache.

Numba is imported at the first call of a kernel: loading it takes half a second even if all kernels
are cached. Small analyses do without: where `pays_off` says no, NumPy does the work.
"""

import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import update_wrapper
from pathlib import Path
from typing import Any, Generic, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from deniable.kernels.cache_folder import make_private, private_cache_folder

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
Scalar = TypeVar("Scalar", bound=np.generic)


def _sources() -> tuple[tuple[str, int, int], ...]:
    """Return name, modification time and size of every source file of this folder."""
    files = sorted(Path(__file__).parent.rglob("*.py"))
    return tuple((str(file), file.stat().st_mtime_ns, file.stat().st_size) for file in files)


SOURCES = _sources()

LOADING_SECONDS = 0.5
"""Processor time of importing Numba and loading some kernels from the cache."""
REORDERED_SUMS = frozenset({"reassoc", "contract", "nsz"})
"""Flags of LLVM that allow it to reorder sums and to fuse a product with an addition."""


class Kernel(Generic[Parameters, Result]):
    """A function that is compiled, or loaded from the cache, when it is first called.

    Compiled functions may call it as well: Numba asks for its type while it compiles them.

    function : what to compile; inline : into its callers; fastmath : flags of LLVM
    """

    _lock = threading.RLock()

    def __init__(
        self,
        function: Callable[Parameters, Result],
        *,
        inline: bool = False,
        fastmath: frozenset[str] = frozenset(),
    ) -> None:
        update_wrapper(self, function)
        self._function, self._inline, self._fastmath = function, inline, fastmath
        self._dispatcher: Any = None

    def __call__(self, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        """Run the compiled function."""
        result: Result = (self._dispatcher or self.dispatcher)(*args, **kwargs)
        return result

    def __reduce__(self) -> str:
        return self._function.__qualname__

    @property
    def _numba_type_(self) -> Any:
        """The type of the function in compiled code."""
        return self.dispatcher._numba_type_

    @property
    def dispatcher(self) -> Any:
        """Numba's object, which compiles the function for the types of its arguments."""
        with self._lock:
            if self._dispatcher is None:
                from numba import njit

                flags = set(self._fastmath)
                compiler = njit(
                    nogil=True, error_model="numpy", forceinline=self._inline, fastmath=flags
                )
                dispatcher = compiler(self._function)
                _cache(dispatcher)
                self._dispatcher = dispatcher
            return self._dispatcher


_numpy_seconds = 0.0
"""Time that NumPy has spent in place of kernels, since this process started."""


def pays_off(seconds: float) -> bool:
    """Return whether a kernel should do some work that NumPy does in about this many seconds.

    It should if Numba is loaded. Otherwise NumPy works until it has spent as much time as loading
    takes: whether more work follows is not known, and so at most twice the least time is spent.
    """
    global _numpy_seconds
    if "numba" in sys.modules:
        return True
    _numpy_seconds += seconds
    return _numpy_seconds > LOADING_SECONDS


def _cache(kernel: Any) -> None:
    """Cache a kernel on disk: where Numba does, else in a private temporary folder, if possible."""
    _enable_cache(kernel)
    # Numba recompiles a cached kernel if its own file has changed, but not if a function that it
    # calls from another file has: it would run old code. So the cache depends on all files here.
    with suppress(AttributeError):  # a private attribute: without it only this check is lost
        kernel._cache._cache_file._source_stamp = SOURCES


def _enable_cache(kernel: Any) -> None:
    """Choose the folder of a kernel's cache."""
    try:
        kernel.enable_caching()
    except RuntimeError:  # neither the folder of the source nor the home directory can be written
        folder = private_cache_folder()
        if folder is None:
            return
        from numba import config

        settings: Any = config  # its attributes are made at run time
        before, settings.CACHE_DIR = settings.CACHE_DIR, str(folder)
        try:
            with suppress(RuntimeError):
                kernel.enable_caching()
                _use_while_private(kernel._cache, folder)
        finally:
            settings.CACHE_DIR = before


def _use_while_private(cache: Any, folder: Path) -> None:
    """Make Numba's cache of a kernel check its folder each time before it is read or written."""
    load, save = cache.load_overload, cache.save_overload

    def load_if_private(*key: Any) -> Any:
        return load(*key) if make_private(folder) else None

    def save_if_private(*entry: Any) -> None:
        if make_private(folder):
            with suppress(OSError):  # such as a full disk: the kernel itself is compiled
                save(*entry)

    cache.load_overload, cache.save_overload = load_if_private, save_if_private


def compiled(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile a function at its first call, without the interpreter lock; cache it on disk."""
    return Kernel(function)


def compiled_sums(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile sums of non-negative terms, as `compiled`, with reordered additions.

    The compiler may split sums over vector lanes and fuse a product with an addition. This only
    reorders or drops roundings.
    """
    return Kernel(function, fastmath=REORDERED_SUMS)


def inlined(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile a function of a few instructions into its callers."""
    return Kernel(function, inline=True)


def read_only(array: NDArray[Any], dtype: type[Scalar]) -> NDArray[Scalar]:
    """Return `array` as a contiguous, aligned, read-only view of `dtype`, copied only where needed.

    A kernel is compiled once per kind of array (writable, strided, unaligned, …); this makes one.
    """
    view = np.require(array, dtype=dtype, requirements=["C", "A"]).view()
    view.flags.writeable = False
    return view
