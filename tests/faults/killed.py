"""Kill a process just before its n-th step, for every n: a step is a call that can leave a trace.

This is a separate program, so that it can fork before any thread exists:

    python -m tests.faults.killed BASE COPIES ACTION [FIRST EVERY]

BASE holds a store. COPIES/1, COPIES/2, … become copies of it on which ACTION was killed before that
step; on the last copy, it ran to its end. If BASE is a postgresql URL, the copies are the databases
killed_1, killed_2, … If BASE is an s3 URL, or a store whose segments are in object storage, these
are copied, too.
"""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pandas  # noqa: F401 - Arrow looks for it at first use
import psycopg
import s3fs

import deniable.columns.arrow  # what a child needs is loaded once, before it is forked
import deniable.store
import deniable.store.parquet.folder_store
import deniable.store.remote_folder
import deniable.store.sql.postgres
import deniable.store.sql.sqlite
from deniable.store import Store
from tests.uploads import MARKS, NEXT

ACTIONS: dict[str, Callable[[Store], object]] = {
    "compact": lambda store: store.compact(at_least=50, today=NEXT),
    "delete": lambda store: store.delete(MARKS),
    "forget": lambda store: store.forget(NEXT),
}
SETTINGS = ("journal", "sync", "secure", "foreign", "freelist", "busy", "wal_auto", "user")
READS = ("('SELECT", *(f"('PRAGMA {name}" for name in SETTINGS), "('get_", "('head_", "('list_")
"""Statements and requests that leave no trace; those that empty the log and vacuum do."""
SYSTEM_CALLS = ("open", "fsync", "replace", "unlink", "mkdir", "utime")


def store_url(copy: str | Path) -> str:
    """Return the URL of the store in a copy."""
    if str(copy).startswith(("postgresql:", "s3:")):
        return str(copy)
    database = Path(copy) / "reports.db"
    return str(database if database.exists() else Path(copy) / "reports")


def copy_of(base: str, copies: str, number: int) -> str:
    """Create another copy."""
    if base.startswith("postgresql:"):
        with psycopg.connect(base.replace("/base?", "/postgres?"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE killed_{number} TEMPLATE base")
        return base.replace("/base?", f"/killed_{number}?")
    if base.startswith("s3:"):
        return f"{copies}/{number}"
    return str(shutil.copytree(base, Path(copies) / str(number)))


def copy_objects(base: str, copy: str, number: int) -> None:
    """Copy what is in object storage; this starts a thread, so it is left to each child."""
    if base.startswith("s3:"):
        s3fs.S3FileSystem().copy(base, copy, recursive=True)
    elif (file := Path(copy) / "reports.db").exists():
        with sqlite3.connect(file) as db:
            query = "SELECT value FROM setting WHERE name = 'segments' AND value LIKE 's3:%'"
            for (segments,) in db.execute(query).fetchall():
                s3fs.S3FileSystem().copy(segments, f"{segments}-{number}", recursive=True)
                change = "UPDATE setting SET value = ? WHERE name = 'segments'"
                db.execute(change, (f"{segments}-{number}",))


def arm(number: int) -> None:
    """Arrange for this process to be killed before the step with this number."""
    steps = count(1)

    def counted(call: Callable[..., Any]) -> Callable[..., Any]:
        def step(*arguments: Any, **options: Any) -> Any:
            reads = str(arguments[1:2]).startswith(READS)
            if not reads and next(steps) == number:
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*arguments, **options)

        return step

    for name in SYSTEM_CALLS:
        setattr(os, name, counted(getattr(os, name)))

    class Counted(sqlite3.Connection):
        execute = counted(sqlite3.Connection.execute)
        executemany = counted(sqlite3.Connection.executemany)
        executescript = counted(sqlite3.Connection.executescript)
        __exit__ = counted(sqlite3.Connection.__exit__)  # commits or rolls back

    connect = sqlite3.connect
    sqlite3.connect = lambda *a, **k: connect(*a, **k, factory=Counted)  # type: ignore[assignment]
    for owner, name in (
        (psycopg.Connection, "execute"), (psycopg.Cursor, "executemany"),
        (psycopg.Cursor, "stream"), (psycopg.Transaction, "__exit__"),
        (s3fs.S3FileSystem, "_call_s3"),
    ):  # fmt: skip
        setattr(owner, name, counted(getattr(owner, name)))


def main(base: str, copies: str, action: str, first: str = "1", every: str = "1") -> None:
    for number in count(int(first), int(every)):
        copy = copy_of(base, copies, number)
        child = os.fork()
        if child == 0:
            copy_objects(base, copy, number)
            arm(number)
            with deniable.store.open(store_url(copy)) as store:
                ACTIONS[action](store)
            os._exit(0)
        status = os.waitpid(child, 0)[1]
        if status == 0:
            break
        assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL, status
    print(number)


if __name__ == "__main__":
    main(*sys.argv[1:])
