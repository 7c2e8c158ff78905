"""Run the faults of stores many times: python -m tests.faults.campaign_stores [--times 1000]

1,000 times take about 10 minutes on two idle cores. The program prints how far each fault is, and a
line per fault; it stops at the first failure. `--only` runs some of the rows. With --output
FILE.json it also replaces these rows in the data file of docs/results/reliability.md.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from deniable.compute.progress import listening, report_progress
from tests import postgres
from tests.faults.results import Conditions, ProgressLines, write_rows
from tests.faults.test_compactor_kill import OBJECTS, check_killed, check_killed_in_postgresql
from tests.faults.test_postgres_restart import check_restarts
from tests.faults.test_torn_log import check_torn

TABLE = "stores"
TORN = "SQLite log truncated, one sector of it overwritten (torn write), or one bit of it flipped"
Row = tuple[str, str, str]
"""Fault, amount, and what was seen."""


def torn(times: int) -> str:
    """Draw new content for every hundred offsets."""
    lost = 0
    for done in range(0, times, 100):
        report_progress("logs", done / times)
        with folder_in_memory() as folder:
            lost += check_torn(folder, min(100, times - done))
    return (
        "the store holds the first uploads that were appended, without gaps; nothing acknowledged "
        f"was lost by a cut, and each of the {lost:,} uploads that changed bytes lost was named"
    )


def killed(action: str, segments: str = "") -> int:
    """Kill an action of a SQLite store before each of its steps; return how many there are."""
    with folder_in_memory() as folder:
        return check_killed(folder, action, 1, segments) - 1


def killed_in_postgresql() -> int:
    with server() as running:
        return check_killed_in_postgresql(running, every=1) - 1


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


# --- rows of the table ---------------------------------------------------------------------------


def row_of_logs(times: int) -> Row:
    return TORN, f"{times:,} each", torn(times)


def row_of_kills(action: str, title: str, seen: str, times: int) -> Row:
    """Kill an action at every step, however often that is; a compaction in every kind of store."""
    kills = [f"SQLite {killed(action):,}"]
    if action == "compact":
        report_progress("stores", 1 / 3)
        kills.append(f"SQLite with segments in object storage {killed(action, OBJECTS):,}")
        report_progress("stores", 2 / 3)
        kills.append(f"PostgreSQL {killed_in_postgresql():,}")
    return f"{title} killed before each of its steps", ", ".join(kills), seen


def row_of_restarts(times: int) -> Row:
    with server() as running:
        restarts = max(2, times // 10)
        uploads = check_restarts(running, restarts)
    title = "PostgreSQL crashed, or its connections cut, under load and compaction"
    return title, f"{restarts:,}", f"{uploads:,} uploads, each counted once"


ROWS: dict[str, Callable[[int], Row]] = {
    "log": row_of_logs,
    "compact": partial(
        row_of_kills, "compact", "compaction", "nothing lost or counted twice, no file left over"
    ),
    "delete": partial(
        row_of_kills, "delete", "deletion", "either everything or nothing deleted"
    ),
    "keys": partial(
        row_of_kills, "forget", "removal of idempotency keys", "nothing lost or counted twice"
    ),
    "postgresql": row_of_restarts,
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--times", type=int, default=1000, help="torn logs; a tenth of restarts")
    parser.add_argument("--only", default="", help=f"some of {', '.join(ROWS)}")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the rows to this file")
    given = parser.parse_args()
    chosen = given.only.split(",") if given.only else list(ROWS)
    if unknown := set(chosen) - ROWS.keys():
        parser.error(f"there is no row {', '.join(sorted(unknown))}: use {', '.join(ROWS)}")
    for name in chosen:
        start = time.perf_counter()
        with listening(ProgressLines(name)):
            row = ROWS[name](given.times)
        seconds = round(time.perf_counter() - start, 1)
        print(f"{'; '.join(row)} ({seconds} s)", flush=True)
        if given.output:
            conditions = Conditions(seconds)
            write_rows(given.output, TABLE, {name: list(row)}, {name: conditions})


if __name__ == "__main__":
    main()
