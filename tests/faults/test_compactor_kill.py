"""Kill compaction, deletion and forgetting at any step: no report is lost or duplicated."""

from __future__ import annotations

import secrets
import subprocess
import sys
from collections import Counter
from pathlib import Path

import psycopg
import pytest

import deniable.store
from deniable.store import Outcome, Store, Upload
from deniable.store.sqlite import SqliteStore
from tests.faults.killed import its_objects, store_url
from tests.postgres import Server
from tests.uploads import DAY, MARKS, NEXT, kept, reports_of, survey, upload

OTHER = survey(2)
OBJECTS = "?segments=s3://bucket/reports"


def fill(url: str) -> list[Upload]:
    """Fill a store with a segment, uploads to merge with it, and uploads of other groups."""
    with deniable.store.open(url, create=True) as store:
        for each in (MARKS, OTHER):
            store.add_survey(each)
        uploads = [upload(30), upload(60), *(upload(5 + i, of=OTHER) for i in range(12))]
        store.append(uploads)
        store.compact(at_least=30, today=DAY)
        more = [upload(4), upload(3, of=OTHER), *(upload(20, NEXT) for _ in range(5))]
        more.append(upload(9, NEXT, OTHER))
        store.append(more)
    return uploads + more


def killed_at(base: str, copies: str | Path, action: str, every: int) -> range:
    """Return the steps before which the action was killed; the last is after its end."""
    first = 1 + secrets.randbelow(every)
    numbers = [str(first), str(every)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults.killed", base, str(copies), action, *numbers],
        check=True, stdout=subprocess.PIPE, text=True, timeout=600,
    )  # fmt: skip
    return range(first, int(done.stdout) + 1, every)


def everything(store: Store) -> Counter[bytes]:
    return kept(store, MARKS) + kept(store, OTHER)


def verify(copy: str, uploads: list[Upload], whole: list[Counter[bytes]]) -> None:
    """Check that the store is in an allowed state, recognises repeats, and can be compacted."""
    with its_objects(copy), deniable.store.open(store_url(copy)) as store:
        assert store.check() == []
        found = everything(store)
        assert found in whole
        assert set(store.append(uploads)) == {Outcome.REPEATED}
        for _ in range(2):  # what one has replaced, the next removes
            store.compact(at_least=30, today=NEXT)
        assert store.check() == []
        assert everything(store) == found
        for each in store.surveys():
            assert sum(store.days(each).values()) == sum(kept(store, each).values())
        no_files_left_over(store)


def no_files_left_over(store: Store) -> None:
    """Check that every segment file is part of the store."""
    counted = {name for each in store.surveys() for name in store.snapshot(each)._segments}
    if isinstance(store, SqliteStore):
        folder = store.path.parent
        found = {f"{file.parent.parent.name}/{file.parent.name}/{file.name}"
                 for place in ("objects", "reports.segments")
                 for file in (folder / place).rglob("*.*")}  # fmt: skip
    else:
        found = {name for (name,) in store._rows("SELECT name FROM file")}
    assert found == counted


def check_killed(folder: Path, action: str, every: int, segments: str = "") -> int:
    """Kill the action of a SQLite store at every n-th of its steps; return how often."""
    base, copies = folder / "base", folder / "copies"
    for each in (base, copies):
        each.mkdir()
    if segments:
        (base / "objects").mkdir()
    with its_objects(base):
        uploads = fill(f"{base / 'reports.db'}{segments}")
    steps = killed_at(str(base), copies, action, every)
    whole = [reports_of(uploads)]
    if action == "delete":
        whole.append(reports_of([u for u in uploads if u.digest == OTHER.digest]))
    if action == "forget":
        uploads = [u for u in uploads if u.day >= NEXT]
    for number in steps:
        verify(str(copies / str(number)), uploads, whole)
    return len(steps)


def check_killed_in_postgresql(server: Server, every: int) -> int:
    """Do the same for a compaction in PostgreSQL, each time in a new database."""
    base = server.url.replace("/postgres?", "/base?")
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE base")
        uploads = fill(base)
        steps = killed_at(base, Path(), "compact", every)
        for number in steps:
            copy = base.replace("/base?", f"/killed_{number}?")
            verify(copy, uploads, [reports_of(uploads)])
            connection.execute(f"DROP DATABASE killed_{number} WITH (FORCE)")
        connection.execute("DROP DATABASE base WITH (FORCE)")
    return len(steps)


# The campaign takes every step; here some are drawn, others each time.


@pytest.mark.parametrize(
    ("action", "every", "segments"),
    [
        ("compact", 4, ""), ("delete", 4, ""), ("forget", 100, ""),
        ("compact", 4, OBJECTS), ("delete", 4, OBJECTS),
    ],
)  # fmt: skip
def test_killed_at_any_step(memory_path: Path, action: str, every: int, segments: str) -> None:
    assert check_killed(memory_path, action, every, segments) > 1


def test_killed_at_any_step_in_postgresql(postgres_server: Server) -> None:
    assert check_killed_in_postgresql(postgres_server, every=20) > 1
