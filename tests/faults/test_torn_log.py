"""Cut, tear and flip SQLite's log: it restores a prefix of the uploads, and says what is missing.

A log that is cut is what a power failure leaves: nothing acknowledged is missing. A log with other
bytes in its middle was damaged later: SQLite ignores all that comes after them.
"""

from __future__ import annotations

import secrets
import shutil
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

import deniable.store
from deniable.store.acknowledged import Acknowledged
from tests.uploads import MARKS, kept, reports_of, upload

pytestmark = pytest.mark.filterwarnings("ignore:.*acknowledged upload")
APPENDS = 12
SECTOR = 512


@dataclass(frozen=True)
class Recorded:
    """A copy of a store's files while it was open, and what was acknowledged when.

    acknowledged : after each append the length of the log, the reports that then counted, and the
        number of their uploads
    """

    folder: Path
    acknowledged: list[tuple[int, Counter[bytes], int]]

    def appends_in(self, size: int) -> int:
        """Return how many appends were acknowledged when the log had this size; -1 for none."""
        return max((i for i, (end, *_) in enumerate(self.acknowledged) if end <= size), default=-1)

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
        acknowledged, number = [(log.stat().st_size, counted, 0)], 0
        for _ in range(APPENDS):
            group = [upload(1 + secrets.randbelow(400)) for _ in range(1 + secrets.randbelow(4))]
            store.append(group)
            counted, number = counted + reports_of(group), number + len(group)
            acknowledged.append((log.stat().st_size, counted, number))
        shutil.copytree(live, folder / "recorded")
    sizes = [size for size, *_ in acknowledged]
    assert sizes == sorted(sizes), "the log began anew: make the appends smaller"
    return Recorded(folder / "recorded", acknowledged)


def recovers(recorded: Recorded, log: bytes, intact: int, noted: int, to: Path) -> int:
    """Check that with this log, the store has a prefix of the uploads, and names the others.

    intact : all bytes of the log before this are as they were; what was acknowledged by then counts
    noted : number of appends that the file beside the store has noted as acknowledged

    Return how many uploads disappeared.
    """
    shutil.copytree(recorded.folder, to)
    (to / "reports.db-wal").write_bytes(log)
    (to / "reports.db-shm").unlink()  # memory is gone when the power is
    (to / "reports.db.last").unlink()
    numbers = [number for *_, number in recorded.acknowledged]
    note = Acknowledged(to / "reports.db")
    note.create(numbers[max(noted, 0)])
    note.close()
    lost = 0
    with deniable.store.open(to / "reports.db", create=True) as store:
        problems = store.check()
        if recorded.appends_in(intact) >= 0:
            found = kept(store)
            prefixes = [counted for _, counted, _ in recorded.acknowledged]
            assert found in prefixes, "not a prefix of what was appended"
            there = prefixes.index(found)
            assert there >= recorded.appends_in(intact), "something acknowledged was lost"
            lost = max(0, numbers[max(noted, 0)] - numbers[there])
            assert [text.split()[0] for text in problems] == ([str(lost)] if lost else [])
        store.add_survey(MARKS)
        more = upload(3)
        store.append([more])
        assert reports_of([more]) <= kept(store)
        assert store.check() == problems, "what is missing stays known"
    shutil.rmtree(to)
    return lost


def check_torn(folder: Path, times: int) -> int:
    """Cut, tear and flip the log at `times` random places each.

    Return how many uploads disappeared after bytes changed, all of which were named.
    """
    recorded, lost = record(folder), 0
    log, everything = recorded.log, len(recorded.acknowledged) - 1
    for _ in range(times):
        at = secrets.randbelow(len(log))
        # Power fails: no more than this was acknowledged, and the last of it may not be noted.
        noted = max(0, recorded.appends_in(at) - secrets.randbelow(2))
        assert recovers(recorded, log[:at], at, noted, folder / "cut") == 0
        # A disk writes sectors, in any order: one holds something else.
        start = at - at % SECTOR
        torn = log[:start] + secrets.token_bytes(SECTOR) + log[start + SECTOR :]
        lost += recovers(recorded, torn[: len(log)], start, everything, folder / "torn")
        bit = bytes([log[at] ^ 1 << secrets.randbelow(8)])
        flipped = log[:at] + bit + log[at + 1 :]
        lost += recovers(recorded, flipped, at, everything, folder / "flipped")
    return lost


def test_a_torn_log_recovers_to_a_prefix(memory_path: Path) -> None:
    assert check_torn(memory_path, times=15) > 0


def test_the_untouched_log_has_everything(memory_path: Path) -> None:
    """Broken twin: if the log were not read at all, every prefix would be the first."""
    recorded = record(memory_path)
    everything = len(recorded.acknowledged) - 1
    log = recorded.log
    assert recovers(recorded, log, len(log), everything, memory_path / "whole") == 0
    sizes = [size for size, *_ in recorded.acknowledged]
    assert sizes[0] < sizes[-1]


def test_one_flipped_byte_in_the_middle_of_the_log_is_named(memory_path: Path) -> None:
    """SQLite drops 80 of 100 acknowledged uploads, and finds its file in order."""
    live, copy = memory_path / "live", memory_path / "copy"
    live.mkdir()
    with deniable.store.open(live / "reports.db", create=True) as store:
        store.add_survey(MARKS)
        for number in range(100):
            store.append([upload(1)])
            if number == 19:
                middle = (live / "reports.db-wal").stat().st_size
        shutil.copytree(live, copy)
    log = bytearray((copy / "reports.db-wal").read_bytes())
    log[middle + 100] ^= 1
    (copy / "reports.db-wal").write_bytes(log)
    (copy / "reports.db-shm").unlink()
    with deniable.store.open(copy / "reports.db") as store:
        assert sum(kept(store).values()) == 20
        (sentence,) = store.check()
        assert sentence.startswith("80 acknowledged uploads (numbers 21 to 100) disappeared")
