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
from tests.faults.killed import store_url
from tests.postgres import Server
from tests.uploads import DAY, MARKS, NEXT, kept, reports_of, survey, upload

OTHER = survey(2)


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
    with deniable.store.open(store_url(copy)) as store:
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
    place = getattr(store, "_location", None)
    if place is not None and hasattr(place, "folder"):
        files = {f.relative_to(place.folder).as_posix() for f in place.folder.rglob("*.*")}
        assert files == counted
    elif place is not None and hasattr(place, "names"):
        assert set(place.names("")) == counted
    elif place is not None:
        rows = store._read(lambda db: db.rows("SELECT name FROM file"))  # type: ignore[attr-defined]
        assert {name for (name,) in rows} == counted
    else:
        assert set(store._folder.names("segments")) == counted  # type: ignore[attr-defined]
        assert "://" in store.url or not list(Path(store.url).rglob("*.tmp"))


def check_killed(folder: Path, name: str, action: str, every: int) -> int:
    """Kill the action at every n-th of its steps; return how often."""
    base, copies = folder / "base", folder / "copies"
    for each in (base, copies):
        each.mkdir()
    uploads = fill(str(base / name))
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
    ("name", "action", "every"),
    [
        ("reports.db", "compact", 4), ("reports.db", "delete", 4),
        ("reports", "compact", 6), ("reports", "forget", 6),
    ],
)  # fmt: skip
def test_killed_at_any_step(memory_path: Path, name: str, action: str, every: int) -> None:
    assert check_killed(memory_path, name, action, every) > 1


def test_killed_at_any_step_in_postgresql(postgres_server: Server) -> None:
    assert check_killed_in_postgresql(postgres_server, every=20) > 1
