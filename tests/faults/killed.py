"""Kill a process just before its n-th step, for every n: a step is a call that can leave a trace.

This is a separate program, so that it can fork before any thread exists:

    python -m tests.faults.killed BASE COPIES ACTION [FIRST EVERY]

BASE holds a store. COPIES/1, COPIES/2, … become copies of it on which ACTION was killed before that
step; on the last copy, it ran to its end. If BASE is a postgresql URL, the copies are the databases
killed_1, killed_2, … If BASE has a folder `objects`, s3:// URLs lead to it.
"""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from itertools import count
from pathlib import Path
from typing import Any

import pandas  # noqa: F401 - Arrow looks for it at first use
import psycopg

import deniable.columns.arrow  # what a child needs is loaded once, before it is forked
import deniable.store
import deniable.store.object_storage
import deniable.store.postgres
import deniable.store.sqlite
from deniable.store import Store
from tests.object_storage import Objects, objects_in
from tests.uploads import MARKS, NEXT

ACTIONS: dict[str, Callable[[Store], object]] = {
    "compact": lambda store: store.compact(at_least=50, today=NEXT),
    "delete": lambda store: store.delete(MARKS),
    "forget": lambda store: store.forget(NEXT),
}
SETTINGS = ("journal", "sync", "secure", "foreign", "freelist", "busy", "wal_auto", "user")
READS = ("('SELECT", *(f"('PRAGMA {name}" for name in SETTINGS))
"""Statements that leave no trace; those that empty the log and vacuum do."""
SYSTEM_CALLS = ("open", "fsync", "replace", "unlink", "mkdir", "utime")


def store_url(copy: str | Path) -> str:
    """Return the URL of the store in a copy."""
    return str(copy) if str(copy).startswith("postgresql:") else str(Path(copy) / "reports.db")


def its_objects(copy: str | Path) -> AbstractContextManager[object]:
    """Let s3:// URLs lead to the objects in a copy, if it has any."""
    folder = Path(copy) / "objects"
    return objects_in(folder) if folder.exists() else nullcontext()


def copy_of(base: str, copies: str, number: int) -> str:
    """Create another copy."""
    if base.startswith("postgresql:"):
        with psycopg.connect(base.replace("/base?", "/postgres?"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE killed_{number} TEMPLATE base")
        return base.replace("/base?", f"/killed_{number}?")
    return str(shutil.copytree(base, Path(copies) / str(number)))


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
        (Objects, "open_output_stream"), (Objects, "delete_file"),
    ):  # fmt: skip
        setattr(owner, name, counted(getattr(owner, name)))


def main(base: str, copies: str, action: str, first: str = "1", every: str = "1") -> None:
    for number in count(int(first), int(every)):
        copy = copy_of(base, copies, number)
        child = os.fork()
        if child == 0:
            arm(number)
            with its_objects(copy), deniable.store.open(store_url(copy)) as store:
                ACTIONS[action](store)
            os._exit(0)
        status = os.waitpid(child, 0)[1]
        if status == 0:
            break
        assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL, status
    print(number)


if __name__ == "__main__":
    main(*sys.argv[1:])
