"""What the stores ask of a database: a few ways to run a statement, whole transactions at a time.

Statements are written with `?` for a value, and in the SQL that SQLite and PostgreSQL share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

T = TypeVar("T")
Row = tuple[Any, ...]
AT_ONCE = 500
"""Values in one list of an IN (…)."""


class Session(Protocol):
    """A transaction under way."""

    def run(self, statement: str, values: Sequence[Any] = ()) -> int:
        """Run it; says how many rows it changed."""

    def many(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run it once for each row of values."""

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        """Everything it finds."""

    def stream(self, statement: str, values: Sequence[Any] = ()) -> Iterator[Row]:
        """What it finds, as it comes, to be read to the end."""


class Transact(Protocol):
    """Runs work in one transaction: all of it is durable when this returns, or none was done.

    Work may be run again after a failure, so it must do nothing outside its session.
    """

    def __call__(self, work: Callable[[Session], T]) -> T:
        """What the work returned."""


def listed(values: Sequence[Any]) -> Iterator[tuple[str, Sequence[Any]]]:
    """The values some at a time, each time with `(?, ?, …)` for them."""
    for start in range(0, len(values), AT_ONCE):
        some = values[start : start + AT_ONCE]
        yield f"({', '.join('?' * len(some))})", some
