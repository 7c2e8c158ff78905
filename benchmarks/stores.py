"""Measure durable appends with and without group commit, compaction and reading, for every store.

    python -m benchmarks.stores                          about a minute on two idle cores
    python -m benchmarks.stores --batches 2000 --postgres postgresql://…

The last lines compare a SQLite store with one that has no checksums and does not note the last
acknowledged upload, commit by commit in turn.

Uploads of 1,000 reports of 16 bytes and of one report, each durable before the next. With group
commit, 32 of them share a transaction, as when that many clients wait. The two alternate, so that
their ratio is more reliable than rates on a busy machine; the load average is printed.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from datetime import date
from pathlib import Path
from statistics import median
from unittest import mock

import deniable.store
from deniable.store import Store, Upload, staged_rows
from deniable.store.database import Session
from deniable.store.sqlite import SqliteStore
from deniable.store.staged_rows import StagedRow
from deniable.survey import Survey

GROUP, ROUNDS = 32, 7
DAY = date(2025, 3, 9)
SURVEY = Survey.from_toml("""
name = "benchmark"
version = 1
owner = "benchmarks"
description = "any 16 bytes are a report"
expires = 2999-12-31
collect = "once"
[questions.value]
kind = "string"
p = 0.25
q = 0.75
bits = 128
hashes = 2
cohorts = 1
""")


def uploads(count: int, reports: int) -> list[Upload]:
    """Return new uploads of random reports."""
    bodies = os.urandom(16 * reports)
    return [
        Upload(os.urandom(16), SURVEY.digest, reports, bodies, DAY, os.urandom(16))
        for _ in range(count)
    ]


def seconds(work: Callable[[], object]) -> float:
    """Return the wall-clock time of a function."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def append_rates(store: Store, count: int, reports: int) -> tuple[float, float, float]:
    """Return uploads per second in groups and singly, and their ratio, as medians over turns."""
    grouped, single = [], []
    for _ in range(ROUNDS):
        many = uploads(count, reports)
        groups = [many[i : i + GROUP] for i in range(0, count, GROUP)]
        grouped.append(count / seconds(lambda groups=groups: [store.append(g) for g in groups]))  # type: ignore[misc]
        few = uploads(max(8, count // 8), reports)
        single.append(len(few) / seconds(lambda few=few: [store.append([u]) for u in few]))  # type: ignore[misc]
    ratios = [a / b for a, b in zip(grouped, single, strict=True)]
    return median(grouped), median(single), median(ratios)


def measure(name: str, url: str, batches: int) -> None:
    """Print the rates of one store."""
    with deniable.store.open(url, create=True) as store:
        store.add_survey(SURVEY)
        for reports, count in ((1000, batches), (1, 4 * batches)):
            grouped, single, ratio = append_rates(store, count, reports)
            print(
                f"{name:10}  {reports:5,} reports per upload: {grouped:8,.0f} uploads/s in groups "
                f"of {GROUP}, {single:6,.0f} one by one: {ratio:4.1f}×"
            )
        total = sum(store.days(SURVEY).values())
        staged = seconds(lambda: sum(map(len, store.scan(SURVEY))))
        compacted = seconds(store.compact)
        segments = seconds(lambda: sum(map(len, store.scan(SURVEY))))
        print(
            f"{name:10}  {total:,} reports compacted at {total / compacted:,.0f}/s; read staged at "
            f"{total / staged / 1e6:.1f} M/s, compacted at {total / segments / 1e6:.1f} M/s"
        )
        store.delete(SURVEY)


class UnprotectedStore(SqliteStore):
    """A SQLite store that would not notice damaged or lost uploads."""

    def _insert_staged(self, db: Session, rows: Sequence[StagedRow]) -> int:
        return Store._insert_staged(self, db, rows)

    def _acknowledge(self, number: int) -> None:
        pass


def _no_checksum(*_: object) -> int:
    return 0


def measure_protection(folder: Path, turns: int) -> None:
    """Print how much longer commits take because damaged and lost uploads are noticed."""
    with (
        SqliteStore(str(folder / "protected.db"), create=True) as protected,
        UnprotectedStore(str(folder / "unprotected.db"), create=True) as unprotected,
    ):
        no_checksums = mock.patch.object(staged_rows, "_checksum", new=_no_checksum)
        for store in (protected, unprotected):
            store.add_survey(SURVEY)
        for reports, group in ((1, 1), (1000, 1), (1, GROUP)):
            times: dict[SqliteStore, list[float]] = {protected: [], unprotected: []}
            processor: dict[SqliteStore, list[float]] = {protected: [], unprotected: []}
            for _ in range(turns):
                for store in (protected, unprotected):
                    new = uploads(group, reports)
                    with no_checksums if store is unprotected else nullcontext():
                        began = time.process_time()
                        times[store].append(seconds(lambda s=store, n=new: s.append(n)))  # type: ignore[misc]
                        processor[store].append(time.process_time() - began)
            ratio, cpu = (median(t[protected]) / median(t[unprotected]) for t in (times, processor))
            extra = (median(processor[protected]) - median(processor[unprotected])) * 1e6
            print(
                f"SQLite      {group:2} × {reports:5,} reports per commit with checksums: "
                f"{ratio:.2f}× the time ({median(times[protected]) * 1e3:.1f} ms), {cpu:.2f}× the "
                f"processor time ({extra:+.0f} µs)"
            )


def main() -> None:
    """Measure every store."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=640, help="uploads per round")
    parser.add_argument("--postgres", help="URL of an empty database")
    parser.add_argument("--folder", help="folder for the stores, on the disk to measure")
    given = parser.parse_args()
    print(f"load average {os.getloadavg()[0]:.1f}, SQLite and Parquet with fsync")
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        measure("SQLite", str(Path(folder) / "reports.db"), given.batches)
        if given.postgres:
            measure("PostgreSQL", given.postgres, given.batches)
        measure("Parquet", str(Path(folder) / "reports"), max(GROUP, given.batches // 10))
        measure_protection(Path(folder), given.batches)


if __name__ == "__main__":
    main()
