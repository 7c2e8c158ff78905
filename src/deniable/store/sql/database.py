"""What the stores ask of a database: tables, and whole transactions at a time.

Statements are written with `?` for a value, and in the SQL that SQLite and PostgreSQL share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

VERSIONS: tuple[tuple[str, ...], ...] = (
    # 1: uploads are staged
    (
        "CREATE TABLE survey (digest {blob} PRIMARY KEY, canonical {blob} NOT NULL){sorted}",
        "CREATE TABLE upload ("
        "name {blob} PRIMARY KEY, seal {blob} NOT NULL, day TEXT NOT NULL){sorted}",
        "CREATE TABLE staged ("
        "id {serial} PRIMARY KEY, survey {blob} NOT NULL REFERENCES survey, day TEXT NOT NULL, "
        "reports INTEGER NOT NULL, bodies {blob} NOT NULL)",
    ),
    # 2: and compacted
    (
        "CREATE INDEX staged_days ON staged (survey, day, reports)",
        "CREATE TABLE segment ("
        "name TEXT PRIMARY KEY, survey {blob} NOT NULL REFERENCES survey, day TEXT NOT NULL, "
        "reports INTEGER NOT NULL, size INTEGER NOT NULL, sha256 {blob} NOT NULL){sorted}",
        "CREATE TABLE loose (name TEXT PRIMARY KEY){sorted}",
        "CREATE TABLE setting (name TEXT PRIMARY KEY, value TEXT NOT NULL){sorted}",
    ),
)
"""The tables, version by version: an older store is brought up to date when it is opened.

Every version's statements stay as they were released; a change of the tables is a new version.
A database fills in the words in braces: see `SqlStore.words`.
"""

T = TypeVar("T")
Row = tuple[Any, ...]
"""A row of a table, or the values of a statement."""
MAX_LISTED = 500
"""Values in one list of an IN (…)."""


class Session(Protocol):
    """A transaction under way."""

    def run(self, statement: str, values: Row = ()) -> int:
        """Run a statement; returns the number of rows it changed."""

    def many(self, statement: str, rows: Iterable[Row]) -> None:
        """Run a statement once for each row of values."""

    def rows(self, statement: str, values: Row = ()) -> list[Row]:
        """Return all rows of a query."""

    def stream(self, statement: str, values: Row = ()) -> Iterator[Row]:
        """Yield the rows of a query as they come, to be read to the end."""


class Transact(Protocol):
    """Runs work in one transaction: all of it is durable when this returns, or none was done.

    Work may be run again after a failure, so it must do nothing outside its session.
    """

    def __call__(self, work: Callable[[Session], T]) -> T:
        """Return what the work returned."""


def listed(values: Sequence[object]) -> Iterator[tuple[str, Row]]:
    """Yield the values some at a time, each time with `(?, ?, …)` for them."""
    for start in range(0, len(values), MAX_LISTED):
        some = tuple(values[start : start + MAX_LISTED])
        yield f"({', '.join('?' * len(some))})", some
