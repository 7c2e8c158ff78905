"""A store in a database, copied into another while it goes on working.

The segments are copied first, each noted in the target's `loose`; one transaction then copies the
rows. Killed before it is durable, the target is an empty store and its files go at its next start.
"""

from __future__ import annotations

from datetime import date
from pathlib import Path

from deniable.errors import InputError, StoreError
from deniable.store import open
from deniable.store.sql.sessions import Session
from deniable.store.sql.sql_store import SqlStore

TABLES = {
    "survey": "digest, canonical",
    "upload": "name, seal, day",
    "staged": "survey, day, reports, bodies",
    "segment": "name, survey, day, reports, size, sha256",
}


def backup(source: SqlStore, to: str | Path) -> None:
    """Make `to` a copy of the source; there must be nothing in it yet."""
    with open(to, create=True) as target:
        if not isinstance(target, SqlStore):
            raise InputError(f"expected a backup to FILE.db or postgresql://…, got {to}")
        if target.surveys():
            raise StoreError(f"expected an empty store for the backup, got {target.url} in use")
        with source._exclusive():
            segments = source._rows("SELECT name, day FROM segment")
            names = [(name,) for name, _ in segments]
            target._write(lambda db: db.many("INSERT INTO loose (name) VALUES (?)", names))
            for name, day in segments:
                target._location.put(name, source._location.get(name), date.fromisoformat(day))
            source._read(lambda given: target._write(lambda taken: _copy(given, taken)))


def _copy(given: Session, taken: Session) -> None:
    for table, columns in TABLES.items():
        marks = ", ".join("?" * len(columns.split(", ")))
        statement = f"INSERT INTO {table} ({columns}) VALUES ({marks})"
        taken.many(statement, given.stream(f"SELECT {columns} FROM {table}"))
    taken.run("DELETE FROM loose")
