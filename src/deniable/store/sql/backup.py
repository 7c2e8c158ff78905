"""A store in a database, copied into another while it goes on working.

The segments are copied first, each noted in the target's `loose`; one transaction then copies the
rows. Killed before it is durable, the target is an empty store and its files go at its next start.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from deniable.errors import InputError, StoreError
from deniable.store.base import open
from deniable.store.sql.compaction import recorded
from deniable.store.sql.sessions import Session

if TYPE_CHECKING:
    from deniable.store.sql.sql_store import SqlStore

TABLES = {
    "survey": "digest, canonical",
    "upload": "name, seal, day",
    "staged": "survey, day, reports, bodies",
    "segment": "name, survey, day, reports, size, sha256",
}


def backup(source: SqlStore, to: str | Path) -> None:
    """Make `to` a copy of the source; there must be nothing in it yet."""
    from deniable.store.sql.sql_store import SqlStore

    with open(to, create=True) as target:
        if not isinstance(target, SqlStore):
            raise InputError(f"expected a backup to FILE.db or postgresql://…, got {to}")
        if target.surveys():
            raise StoreError(f"expected an empty store for the backup, got {target.url} in use")
        with source._alone():
            segments = source._read(recorded)
            names = [(segment.name,) for segment in segments]
            target._write(lambda db: db.many("INSERT INTO loose (name) VALUES (?)", names))
            for segment in segments:
                target._place.put(segment.name, source._place.get(segment.name), segment.day)
            source._read(lambda given: target._write(lambda taken: _copy(given, taken)))


def _copy(given: Session, taken: Session) -> None:
    for table, columns in TABLES.items():
        marks = ", ".join("?" * len(columns.split(", ")))
        statement = f"INSERT INTO {table} ({columns}) VALUES ({marks})"
        taken.many(statement, given.stream(f"SELECT {columns} FROM {table}"))
    taken.run("DELETE FROM loose")
