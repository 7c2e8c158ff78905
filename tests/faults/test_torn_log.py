"""Simulate power loss: SQLite's log, cut or torn anywhere, restores a prefix of the uploads."""

from __future__ import annotations

import secrets
import shutil
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import deniable.store
from tests.uploads import MARKS, kept, reports_of, upload

APPENDS = 12
SECTOR = 512


@dataclass(frozen=True)
class Recorded:
    """A copy of a store's files while it was open, and what was acknowledged when.

    acknowledged : after each append the length of the log and the reports that then counted
    """

    folder: Path
    acknowledged: list[tuple[int, Counter[bytes]]]

    @property
    def log(self) -> bytes:
        return (self.folder / "reports.db-wal").read_bytes()


def record(folder: Path) -> Recorded:
    """Append in groups, and copy the files before the store is closed."""
    live = folder / "live"
    live.mkdir()
    log = live / "reports.db-wal"
    with deniable.store.open(live / "reports.db", create=True) as store:
        store.add_survey(MARKS)
        counted: Counter[bytes] = Counter()
        acknowledged = [(log.stat().st_size, counted)]
        for _ in range(APPENDS):
            group = [upload(1 + secrets.randbelow(400)) for _ in range(1 + secrets.randbelow(4))]
            store.append(group)
            counted = counted + reports_of(group)
            acknowledged.append((log.stat().st_size, counted))
        shutil.copytree(live, folder / "recorded")
    sizes = [size for size, _ in acknowledged]
    assert sizes == sorted(sizes), "the log began anew: make the appends smaller"
    return Recorded(folder / "recorded", acknowledged)


def recovers(recorded: Recorded, log: bytes, intact: int, to: Path) -> None:
    """Check that with this log, the store is sound and has a prefix of the uploads.

    intact : all bytes of the log before this are as they were; what was acknowledged by then counts
    """
    shutil.copytree(recorded.folder, to)
    (to / "reports.db-wal").write_bytes(log)
    (to / "reports.db-shm").unlink()  # memory is gone when the power is
    surveyed, _ = recorded.acknowledged[0]
    with deniable.store.open(to / "reports.db", create=True) as store:
        assert store.check() == []
        if intact >= surveyed:
            found = kept(store)
            prefixes = [counted for _, counted in recorded.acknowledged]
            assert found in prefixes, "not a prefix of what was appended"
            least = max(i for i, (size, _) in enumerate(recorded.acknowledged) if size <= intact)
            assert prefixes.index(found) >= least, "something acknowledged was lost"
        store.add_survey(MARKS)
        more = upload(3)
        store.append([more])
        assert reports_of([more]) <= kept(store)
    shutil.rmtree(to)


def check_torn(folder: Path, times: int) -> None:
    """Cut and tear the log at `times` random places each."""
    recorded = record(folder)
    log = recorded.log
    for _ in range(times):
        at = secrets.randbelow(len(log) + 1)
        recovers(recorded, log[:at], at, folder / "cut")
        # A disk writes sectors, in any order: one holds something else.
        start = at - at % SECTOR
        torn = log[:start] + secrets.token_bytes(SECTOR) + log[start + SECTOR :]
        recovers(recorded, torn[: len(log)], start, folder / "torn")


def test_a_torn_log_recovers_to_a_prefix(memory_path: Path) -> None:
    check_torn(memory_path, times=20)


def test_the_untouched_log_has_everything(memory_path: Path) -> None:
    """Broken twin: if the log were not read at all, every prefix would be the first."""
    recorded = record(memory_path)
    recovers(recorded, recorded.log, len(recorded.log), memory_path / "whole")
    sizes = [size for size, _ in recorded.acknowledged]
    assert sizes[0] < sizes[-1]
