"""The interface between a store and its database: tables, sessions and transactions.

Statements use `?` for values, and only SQL that SQLite and PostgreSQL both understand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date
from itertools import chain
from typing import Any, Protocol, TypeVar

from deniable.survey import Survey

VERSIONS: tuple[tuple[str, ...], ...] = (
    (
        "CREATE TABLE survey (digest {blob} PRIMARY KEY, canonical {blob} NOT NULL){sorted}",
        "CREATE TABLE upload ("
        "name {blob} PRIMARY KEY, seal {blob} NOT NULL, day TEXT NOT NULL){sorted}",
        "CREATE TABLE staged ("
        "id {serial} PRIMARY KEY, survey {blob} NOT NULL REFERENCES survey, day TEXT NOT NULL, "
        "reports INTEGER NOT NULL, bodies {blob} NOT NULL, checksum BIGINT NOT NULL)",
        "CREATE INDEX staged_days ON staged (survey, day, reports)",
        "CREATE TABLE segment ("
        "name TEXT PRIMARY KEY, survey {blob} NOT NULL REFERENCES survey, day TEXT NOT NULL, "
        "reports INTEGER NOT NULL, size INTEGER NOT NULL, sha256 {blob} NOT NULL){sorted}",
        "CREATE TABLE loose (name TEXT PRIMARY KEY){sorted}",
        "CREATE TABLE setting (name TEXT PRIMARY KEY, value TEXT NOT NULL){sorted}",
    ),
)
"""Statements that create the tables, per schema version. Opening an older store upgrades it.

Released statements never change: every change of the tables is a new version. `Store.type_names`
fills in the words in braces.
"""

IN_DAYS = "survey = ? AND day BETWEEN ? AND ?"
"""Condition for the rows of one survey in a range of days; `day_range` has its values."""

T = TypeVar("T")
Row = tuple[Any, ...]
"""A row of a table, or the values of a statement."""
MAX_VALUES = 500
"""Maximum number of values of a statement: in a list `IN (?, …)`, or in all rows of an INSERT."""
MAX_STATEMENT_BYTES = 1 << 24
"""Bytes of values after which an INSERT takes no more rows."""


class Session(Protocol):
    """An open transaction."""

    def run(self, statement: str, values: Row = ()) -> int:
        """Run a statement, and return the number of rows it changed."""

    def rows(self, statement: str, values: Row = ()) -> list[Row]:
        """Return all rows of a query."""

    def stream(self, statement: str, values: Row = ()) -> Iterator[Row]:
        """Yield the rows of a query as they arrive; the caller must read to the end."""


class Transact(Protocol):
    """Runs a function in one transaction, which is durable on return; on an error, nothing changed.

    The function may run again after a failure, so it must not have effects outside its session.
    """

    def __call__(self, work: Callable[[Session], T]) -> T:
        """Return the result of the function."""


def sql_lists(values: Sequence[object]) -> Iterator[tuple[str, Row]]:
    """Yield the values in chunks, each with its SQL list `(?, ?, …)`."""
    for start in range(0, len(values), MAX_VALUES):
        chunk = tuple(values[start : start + MAX_VALUES])
        yield f"({', '.join('?' * len(chunk))})", chunk


def day_range(survey: Survey, first: date, last: date) -> tuple[bytes, str, str]:
    """Return the values of `IN_DAYS`."""
    return survey.digest, first.isoformat(), last.isoformat()


def insert_rows(db: Session, table: str, columns: str, rows: Iterable[Row]) -> None:
    """Insert rows, many per statement.

    SQLite runs a statement without the lock of the Python interpreter. With one statement per row,
    the thread would have to wait for that lock after every row.
    """
    width = columns.count(",") + 1
    marks = f"({', '.join('?' * width)})"
    for chunk in _chunks(rows, MAX_VALUES // width):
        statement = f"INSERT INTO {table} ({columns}) VALUES {', '.join([marks] * len(chunk))}"
        db.run(statement, tuple(chain.from_iterable(chunk)))


def _chunks(rows: Iterable[Row], most: int) -> Iterator[list[Row]]:
    """Yield lists of up to `most` rows, shorter if their bytes exceed `MAX_STATEMENT_BYTES`."""
    chunk: list[Row] = []
    size = 0
    for row in rows:
        chunk.append(row)
        size += sum(len(value) for value in row if isinstance(value, bytes))
        if len(chunk) == most or size > MAX_STATEMENT_BYTES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def delete_named(db: Session, table: str, names: Sequence[str]) -> None:
    """Delete the rows of these names."""
    for marks, chunk in sql_lists(names):
        db.run(f"DELETE FROM {table} WHERE name IN {marks}", chunk)


def read_setting(db: Session, name: str) -> str | None:
    """Return a value of the table `setting`, or None."""
    rows = db.rows("SELECT value FROM setting WHERE name = ?", (name,))
    return str(rows[0][0]) if rows else None


def write_setting(db: Session, name: str, value: str | None) -> None:
    """Insert or replace a value of the table `setting`; None deletes it."""
    db.run("DELETE FROM setting WHERE name = ?", (name,))
    if value is not None:
        db.run("INSERT INTO setting (name, value) VALUES (?, ?)", (name, value))
