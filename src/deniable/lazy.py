"""Imports that wait until they are needed, so that a client's first answer comes quickly."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Generic, TypeVar

from deniable.errors import InputError

T = TypeVar("T")
C = TypeVar("C", bound=type)


def lazy_exports(package: str, later: Mapping[str, Sequence[str]]) -> Callable[[str], object]:
    """Return a package's `__getattr__`, which imports names when they are first asked for.

    later : module → the names that it defines
    """
    modules = {name: module for module, names in later.items() for name in names}

    def __getattr__(name: str) -> object:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(modules[name]), name)
        setattr(import_module(package), name, value)
        return value

    return __getattr__


class Registry(Generic[T]):
    """Classes by the name under which a published survey holds them, open to other packages.

    what : what such a class is, for error messages
    name_of : gives a class's name
    later : name → the module that defines the class, imported when the class is first asked for
    """

    def __init__(
        self, what: str, name_of: Callable[[type[T]], str], later: Mapping[str, str]
    ) -> None:
        self._what = what
        self._name_of = name_of
        self._later = dict(later)
        self._classes: dict[str, type[T]] = {}

    def register(self, cls: C) -> C:
        """Make a class known by its name; a decorator."""
        self._classes[self._name_of(cls)] = cls
        return cls

    def __getitem__(self, name: str) -> type[T]:
        try:
            if name not in self._classes and name in self._later:
                import_module(self._later[name])
            return self._classes[name]
        except (KeyError, TypeError):  # a damaged survey may hold anything in place of a name
            known = ", ".join(sorted({*self._classes, *self._later}))
            raise InputError(f"expected a {self._what} among {known}; got {name!r}") from None
