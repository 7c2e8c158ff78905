"""Lazy imports: a client's first answer needs few modules, so it is ready sooner."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Generic, TypeVar

from deniable.errors import InputError, did_you_mean
from deniable.extras import needs_packages

T = TypeVar("T")
C = TypeVar("C", bound=type)


def lazy_exports(package: str, later: Mapping[str, Sequence[str]]) -> Callable[[str], object]:
    """Return the `__getattr__` of a package that imports names on first use.

    `later` maps each module to the names that it defines.
    """
    modules = {name: module for module, names in later.items() for name in names}

    def __getattr__(name: str) -> object:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        with needs_packages(f"{package}.{name}"):
            value = getattr(import_module(modules[name]), name)
        setattr(import_module(package), name, value)
        return value

    return __getattr__


class Registry(Generic[T]):
    """Classes by the name that a published survey uses for them; other packages may add theirs.

    Parameters
    ----------
    noun : str
        What a class is, for error messages.
    name_of : callable
        Returns the name of a class.
    later : mapping
        From a name to the module that defines the class; the module is imported on first use.
    """

    def __init__(
        self, noun: str, name_of: Callable[[type[T]], str], later: Mapping[str, str]
    ) -> None:
        self._noun = noun
        self._name_of = name_of
        self._later = dict(later)
        self._classes: dict[str, type[T]] = {}

    def register(self, class_: C) -> C:
        """Add a class under its name; usable as a decorator.

        Parameters
        ----------
        class_ : type
            The class to add.

        Returns
        -------
        type
            The same class.

        Examples
        --------
        >>> from deniable.mechanisms import Boolean, register
        >>> register(Boolean) is Boolean
        True
        """
        self._classes[self._name_of(class_)] = class_
        return class_

    def __getitem__(self, name: str) -> type[T]:
        try:
            if name not in self._classes and name in self._later:
                import_module(self._later[name])
            return self._classes[name]
        except (KeyError, TypeError):  # a damaged survey may hold anything in place of a name
            known = sorted({*self._classes, *self._later})
            raise InputError(
                f"unknown {self._noun} {name!r:.200}: the known ones are {', '.join(known)}."
                + did_you_mean(name, known)
            ) from None
