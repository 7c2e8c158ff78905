"""Results as collections: rows by name, comparison, and the rows themselves."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cached_property
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from deniable.errors import UnknownKey, did_you_mean

T = TypeVar("T", covariant=True)


class ValueRow(NamedTuple):
    """One value of a question in a `Marginal` or a `Discovery`.

    Parameters
    ----------
    value : str
        The value.
    estimate : float
        Estimated share of clients; NaN where nothing can be estimated.
    standard_error : float
        Standard error of the estimate.
    low, high : float
        Ends of the 95% confidence interval.
    p_value : float
        One-sided p-value of "no client holds this value", before the correction.
    detected : bool
        Whether the test rejects that hypothesis after the correction.

    Examples
    --------
    >>> ValueRow("vim", 0.41, 0.02, 0.37, 0.45, 1e-90, True).value
    'vim'
    """

    value: str
    estimate: float
    standard_error: float
    low: float
    high: float
    p_value: float
    detected: bool


class CellRow(NamedTuple):
    """One cell of a `Joint` table.

    Parameters
    ----------
    values : tuple of str
        Its category of each question.
    estimate : float
        Estimated share of clients.
    standard_error : float
        Standard error of the estimate.
    low, high : float
        Ends of the 95% confidence interval.
    p_value : float
        One-sided p-value of the hypothesis that the cell is 0.

    Examples
    --------
    >>> CellRow(("vim", "yes"), 0.3, 0.02, 0.26, 0.34, 1e-50).values
    ('vim', 'yes')
    """

    values: tuple[str, ...]
    estimate: float
    standard_error: float
    low: float
    high: float
    p_value: float


class ChangeRow(NamedTuple):
    """One value of a question in a `Change`.

    Parameters
    ----------
    value : str
        The value.
    earlier, later : float
        Estimated shares of clients in the two periods.
    change : float
        Their difference.
    standard_error : float
        Standard error of the difference.
    low, high : float
        Ends of the 95% confidence interval of the difference.
    p_value : float
        Two-sided p-value of "the share did not change", before the correction.
    changed : bool
        Whether the test rejects that hypothesis after the correction.

    Examples
    --------
    >>> ChangeRow("vim", 0.41, 0.31, -0.1, 0.02, -0.14, -0.06, 6e-7, True).changed
    True
    """

    value: str
    earlier: float
    later: float
    change: float
    standard_error: float
    low: float
    high: float
    p_value: float
    changed: bool


class Rows(ABC, Generic[T]):
    """A result whose rows can be counted, iterated over and looked up by name."""

    @abstractmethod
    def _keys(self) -> Sequence[Hashable]:
        """Return the name of each row."""

    @abstractmethod
    def _make_rows(self) -> Iterable[T]:
        """Return the rows, in the order of their names."""

    @cached_property
    def _by_key(self) -> Mapping[Hashable, T]:
        return dict(zip(self._keys(), self._make_rows(), strict=True))

    def __len__(self) -> int:
        return len(self._keys())

    def __iter__(self) -> Iterator[T]:
        return iter(self._by_key.values())

    def __contains__(self, key: object) -> bool:
        try:
            return key in self._by_key
        except TypeError:  # a list or a slice is never a name
            return False

    def __getitem__(self, key: Hashable) -> T:
        if key in self:
            return self._by_key[key]
        raise UnknownKey(self._unknown(key))

    def _unknown(self, key: object) -> str:
        """Return the message for a name that no row has."""
        keys = [str(known) for known in self._keys()]
        if isinstance(key, int | slice):
            return (
                f"rows of a {type(self).__name__} are looked up by name, such as {keys[0]!r}; "
                "list(result) has them by position"
                if keys
                else f"this {type(self).__name__} is empty"
            )
        return f"this {type(self).__name__} has no {key!r:.200}.{did_you_mean(key, keys)}"


class ComparedByFields:
    """A dataclass that is equal to another if all compared fields are; NaN equals NaN."""

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return equal_fields(self, other)

    def __hash__(self) -> int:
        texts = (getattr(self, field.name) for field in fields(self) if field.compare)  # type: ignore[arg-type]
        return hash((type(self), *(text for text in texts if isinstance(text, str))))


def equal_fields(first: object, second: object) -> bool:
    """Return whether two dataclasses of one type have equal fields."""
    names = [field.name for field in fields(first) if field.compare]  # type: ignore[arg-type]
    return all(equal_values(getattr(first, name), getattr(second, name)) for name in names)


def equal_values(first: object, second: object) -> bool:
    """Return whether two values are equal: arrays by element, and NaN equals NaN."""
    if isinstance(first, np.ndarray) and isinstance(second, np.ndarray):
        if first.shape != second.shape:
            return False
        both_nan = (first != first) & (second != second)
        return bool(((first == second) | both_nan).all())
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        return first.keys() == second.keys() and all(
            equal_values(value, second[key]) for key, value in first.items()
        )
    if isinstance(first, tuple | list) and isinstance(second, tuple | list):
        return len(first) == len(second) and all(map(equal_values, first, second))
    if is_dataclass(first) and type(first) is type(second):
        return equal_fields(first, second)
    return bool(first == second) or (first != first and second != second)
