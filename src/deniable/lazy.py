"""Imports that wait until they are needed, so that a client's first answer comes quickly."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Generic, TypeVar

from deniable.errors import InputError

T = TypeVar("T")


def lazy_exports(package: str, later: Mapping[str, str]) -> Callable[[str], object]:
    """Return a package's `__getattr__`: each name of `later` is imported when first asked for.

    later : name → the module that defines it
    """

    def __getattr__(name: str) -> object:
        if name not in later:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(later[name]), name)
        setattr(import_module(package), name, value)
        return value

    return __getattr__


class Registry(Generic[T]):
    """Things by name, open to entries from other packages.

    what : what an entry is, for error messages
    later : name → module that registers the entry when it is imported, which happens when the entry
        is first asked for

    >>> colours = Registry[str]("colour")
    >>> colours.add("red", "#ff0000")
    '#ff0000'
    >>> colours["red"]
    '#ff0000'
    """

    def __init__(self, what: str, later: Mapping[str, str] | None = None) -> None:
        self._what = what
        self._later = dict(later or {})
        self._entries: dict[str, T] = {}

    def add(self, name: str, entry: T) -> T:
        """Register an entry, in place of one of that name if it was registered before."""
        self._entries[name] = entry
        return entry

    def __getitem__(self, name: str) -> T:
        try:
            if name not in self._entries and name in self._later:
                import_module(self._later[name])
            return self._entries[name]
        except (KeyError, TypeError):  # a damaged survey may hold anything in place of a name
            known = ", ".join(sorted({*self._entries, *self._later}))
            raise InputError(f"expected a {self._what} among {known}; got {name!r}") from None
