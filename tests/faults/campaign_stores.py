"""Run the faults of stores many times: python -m tests.faults.campaign_stores [--times 1000]

1,000 times take about 10 minutes on two idle cores. The program prints a line per fault, and stops
at the first failure. `--only WORD` runs the faults whose line begins with the word.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from unittest import mock

from tests import object_storage, postgres
from tests.faults.test_compactor_kill import check_killed, check_killed_in_postgresql
from tests.faults.test_postgres_restart import check_restarts
from tests.faults.test_torn_log import check_torn

STORES = {"SQLite": "reports.db", "folder": "reports"}
ACTIONS = ("compact", "delete", "forget")


def torn(times: int) -> str:
    """Draw new content for every hundred offsets."""
    lost = 0
    for done in range(0, times, 100):
        with folder_in_memory() as folder:
            lost += check_torn(folder, min(100, times - done))
    return (
        f"{times} logs cut, {times} torn and {times} with a flipped bit: each a prefix; nothing "
        f"acknowledged lost by a cut, and each of the {lost:,} uploads that changed bytes lost was "
        "named"
    )


def killed(name: str, action: str) -> str:
    with folder_in_memory() as folder:
        steps = check_killed(folder, name, action, every=1) - 1
    return f"{action} killed before each of {steps} steps: nothing lost or doubled"


def killed_in_postgresql() -> str:
    with server() as running:
        steps = check_killed_in_postgresql(running, every=1) - 1
    return f"compact killed before each of {steps} steps: nothing lost or doubled"


def killed_in_object_storage() -> str:
    """Kill the compaction of a folder, and of a SQLite file with its segments, in SeaweedFS."""
    from tests.deploy.with_object_storage import check_folder_killed, check_segments_killed

    if object_storage.program() is None:
        return f"left out: {object_storage.MISSING}"
    storage = object_storage.Storage()
    try:
        with folder_in_memory() as folder, mock.patch.dict(os.environ, storage.environment):
            steps = check_folder_killed(folder, 1) - 1
            segments = check_segments_killed(folder, "compact", 1) - 1
    finally:
        storage.remove()
    return (
        f"compact killed before each of {steps} requests, and with segments there before each of "
        f"{segments} steps: nothing lost or doubled"
    )


def restarted(times: int) -> str:
    with server() as running:
        uploads = check_restarts(running, times)
    return f"crashed or cut off {times} times under load: {uploads} uploads, each counted once"


@contextmanager
def folder_in_memory() -> Iterator[Path]:
    where = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(dir=where) as folder:
        yield Path(folder)


@contextmanager
def server() -> Iterator[postgres.Server]:
    running = postgres.Server()
    try:
        yield running
    finally:
        running.remove()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=1000, help="torn logs; a tenth of restarts")
    parser.add_argument("--only", default="", help="log, SQLite, folder, PostgreSQL or storage")
    given = parser.parse_args()
    faults: list[tuple[str, Callable[[], str]]] = [("log", partial(torn, given.times))]
    for store, name in STORES.items():
        faults += [(store, partial(killed, name, action)) for action in ACTIONS]
    faults += [
        ("PostgreSQL", killed_in_postgresql),
        ("PostgreSQL", partial(restarted, max(2, given.times // 10))),
        ("storage", killed_in_object_storage),
    ]
    for store, fault in faults:
        if store.startswith(given.only):
            start = time.perf_counter()
            print(f"{store}: {fault()} ({time.perf_counter() - start:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
