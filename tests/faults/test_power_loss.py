"""After a power loss nothing promised is lost, nothing is spent twice, and all files can be read.

Programs use the ledger, the outbox and the stores; what they did not sync is lost, kept or torn
after each of their system calls.
"""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

import deniable.store
from deniable.client import Client, Ledger, Outbox, load_secret
from deniable.store import Outcome
from deniable.store.acknowledged import Acknowledged
from deniable.store.staged_rows import ADVICE, UNKNOWN_NUMBER
from deniable.survey.report import BATCH, BATCH_HEADER_SIZE, HEADER_SIZE, MAGIC
from tests.faults.power_loss import losses, needs_strace, record, write_tree
from tests.faults.power_loss_programs import SURVEY, uploads
from tests.uploads import MARKS, NEXT, kept, reports_of, upload

Marks = list[list[str]]


def said(marks: Marks, word: str) -> list[list[str]]:
    """Return the other words of all marks that begin with this one."""
    return [words for first, *words in marks if first == word]


def bodies(data: bytes) -> list[bytes]:
    """Return the bodies of the reports of an upload."""
    start = BATCH_HEADER_SIZE if data[len(MAGIC) + 1] == BATCH else HEADER_SIZE
    size = SURVEY.body_size
    return [data[at : at + size] for at in range(start, len(data), size)]


def check_device(folder: Path, marks: Marks) -> None:
    device = folder / "home" / "app" / "device"
    for (secret,) in said(marks, "secret"):
        assert load_secret(device / "secret").hex() == secret, "noise would be drawn anew"
    charged = sum(each.reports or 0 for each in Ledger(device / "ledger.json").spending())
    noise = len(said(marks, "noise"))
    assert noise <= charged <= noise + 1, "a report that may exist was not paid, or paid twice"

    outbox = Outbox(device / "outbox-powerless.db")
    waiting: dict[bytes, bytes] = {}
    while found := outbox.next():
        waiting[found.key] = found.body
        outbox.accept(found)
    accepted = {bytes.fromhex(key) for (key,) in said(marks, "accepted")}
    sent = {bytes.fromhex(key): bytes.fromhex(body) for key, body in said(marks, "sending")}
    if marks and marks[-1][0] == "sending" and (last := bytes.fromhex(marks[-1][1])) not in waiting:
        accepted.add(last)  # the acceptance is on disk, but was not confirmed
    for key, body in sent.items():
        assert waiting.get(key) == (None if key in accepted else body), "an attempt differs"
    queued = Counter(
        b for (report,) in said(marks, "queued") for b in bodies(bytes.fromhex(report))
    )
    arrived = Counter(body for key in accepted for body in bodies(sent[key]))
    left = Counter(body for data in waiting.values() for body in bodies(data))
    assert queued - arrived <= left, "a queued report was lost"
    assert (left + arrived - queued).total() <= 1, "a report is sent twice"
    Client.open(SURVEY, device).answer_and_queue({"dark": True})


def check_store(folder: Path, marks: Marks) -> None:
    last = Acknowledged(folder / "reports.db")
    damaged = last.path.exists() and last.read() is None  # its sector was torn
    expected = [f"{UNKNOWN_NUMBER}: {ADVICE}"] if damaged else []
    appended = len(said(marks, "appended"))
    groups = uploads()
    if said(marks, "surveyed"):
        with deniable.store.open(folder / "reports.db") as store:
            assert store.check() in ([], expected)
            found = kept(store)
            now = reports_of(u for group in groups[:appended] for u in group)
            soon = reports_of(u for group in groups[: appended + 1] for u in group)
            possible = [Counter[bytes]()] if said(marks, "deleting") else []
            if not said(marks, "deleted"):
                possible += [now, soon]
                promised = [u for group in groups[:appended] for u in group]
                assert set(store.append(promised)) <= {Outcome.REPEATED}
            assert found in possible, "a report was lost, counts twice, or came back"
    if said(marks, "deleted"):
        assert not list(folder.rglob("*.parquet"))
    with deniable.store.open(folder / "reports.db", create=True) as store:  # and goes on
        store.add_survey(MARKS)
        more = upload(40, NEXT)
        store.append([more, upload(40, NEXT)])
        store.compact(at_least=20, today=NEXT)
        assert store.check() in ([], expected)
        assert reports_of([more]) <= kept(store)


class PromiseBroken(Exception):
    """Raised if something that was promised does not hold after a power loss."""


@dataclass(frozen=True)
class Case:
    """A program, what must hold after a power loss, and the twins that must be noticed."""

    program: str
    check: Callable[[Path, Marks], None]
    twins: tuple[str, ...]


CASES = [
    Case(
        "device",
        check_device,
        ("files are not synced", "folders are not synced", "outbox OFF", "outbox FULL"),
    ),
    Case(
        "store",
        check_store,
        ("files are not synced", "folders are not synced", "store OFF", "store NORMAL"),
    ),
]


def lose_power(case: Case, folder: Path, torn: int, twin: str = "honest", seed: int = 1) -> int:
    """Lose power after every system call, and check each different state; return how many."""
    disk = folder / "disk"
    disk.mkdir()
    program = ["-m", "tests.faults.power_loss_programs", case.program, str(disk), twin]
    number = 0
    for tree, marks in losses(record(program, folder), disk, random.Random(seed), torn):
        number += 1
        left = folder / "left"
        write_tree(tree, left)
        try:
            case.check(left, marks)
        except Exception as error:
            raise PromiseBroken(f"state {number}, after {marks[-1:]}, in {left}") from error
        shutil.rmtree(left)
    return number


def inflict(folder: Path, torn: int) -> str:
    """Lose the power of every program, so often with torn writes after each call."""
    seen = []
    for case in CASES:
        (folder / case.program).mkdir()
        states = lose_power(case, folder / case.program, torn)
        seen.append(f"{case.program}: {states:,} states of the disk")
    return "; ".join(seen) + "; nothing promised was lost"


@needs_strace
@pytest.mark.filterwarnings("ignore:.*number of the last upload")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.program)
def test_nothing_promised_is_lost(case: Case, memory_path: Path) -> None:
    assert lose_power(case, memory_path, torn=1) > 100


TWINS = [(case, twin) for case in CASES for twin in case.twins]


@needs_strace
@pytest.mark.parametrize(
    "case, twin", TWINS, ids=[f"{case.program}, {twin}" for case, twin in TWINS]
)
def test_a_forgotten_sync_is_noticed(case: Case, twin: str, memory_path: Path) -> None:
    with pytest.raises(PromiseBroken):
        lose_power(case, memory_path, torn=0, twin=twin)
