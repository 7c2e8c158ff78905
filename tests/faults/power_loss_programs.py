"""Programs whose power is lost, run under strace: python -m tests.faults.power_loss_programs

    PROGRAM FOLDER [TWIN]

A program prints a line that begins with `mark` when it has promised something. A TWIN breaks one
promise on purpose.
"""

from __future__ import annotations

import os
import random
import sqlite3
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import deniable.store
from deniable.client import Client
from deniable.store import sqlite
from tests.surveys import make_survey
from tests.uploads import DAY, MARKS, NEXT, again

QUESTIONS = """
[questions.dark]
kind = "boolean"
epsilon = 1
[questions.ads]
kind = "boolean"
epsilon = 1
"""
SURVEY = make_survey(QUESTIONS, name="powerless", budget=20, collect="repeatedly")
APPENDS = 5


def mark(*words: object) -> None:
    """Say on standard output what was promised."""
    os.write(1, f"mark {' '.join(map(str, words))}\n".encode())


def device(folder: Path) -> None:
    """Answer, queue and send reports; the device's folder does not exist before."""
    client = Client.open(SURVEY, folder / "home" / "app" / "device")
    secret = client._encoder._secret.hex()
    mark("secret", secret)

    def entropy(size: int) -> bytes:
        mark("noise")  # from here on, a report may exist
        return os.urandom(size)

    client._entropy = entropy
    for number in range(7):
        report = client.answer_and_queue({"dark": True, "ads": False})
        mark("queued", bytes(report).hex())
        if number in (2, 4, 5, 6):
            assert client.outbox is not None
            upload = client.outbox.next(batch=2)
            assert upload is not None
            mark("sending", upload.key.hex(), upload.body.hex())
            client.outbox.mark_tried(upload)
            if number > 4:
                client.outbox.accept(upload)
                mark("accepted", upload.key.hex())


def uploads() -> list[list[deniable.store.Upload]]:
    """Return the same groups of uploads in every process."""
    rng = random.Random(3)
    first = deniable.store.Upload(bytes(16), MARKS.digest, 1, bytes(16), DAY, bytes(16))
    return [
        [
            again(first, key=rng.randbytes(16), reports=size, bodies=rng.randbytes(16 * size),
                  day=NEXT if number > 2 else DAY)
            for size in rng.choices(range(1, 20), k=3)
        ]
        for number in range(APPENDS)
    ]  # fmt: skip


def store(folder: Path) -> None:
    """Append uploads, compact them twice, and delete all, in a store that does not exist before."""
    with deniable.store.open(folder / "reports.db", create=True) as opened:
        opened.add_survey(MARKS)
        mark("surveyed")
        for number, group in enumerate(uploads()):
            opened.append(group)
            mark("appended", number)
            if number in (2, 4):
                opened.compact(at_least=20, today=NEXT)
                mark("compacted")
        mark("deleting")
        opened.delete(MARKS)
        mark("deleted")


PROGRAMS: dict[str, Callable[[Path], None]] = {
    "device": device,
    "store": store,
}


# --- twins: each forgets one kind of sync ---------------------------------------------------------


def _syncs_only(kind: Callable[[int], bool]) -> None:
    sync = os.fsync
    os.fsync = lambda d: sync(d) if kind(os.fstat(d).st_mode) else None  # type: ignore[assignment]


def _outbox_synchronous(value: str) -> None:
    class Weaker(sqlite3.Connection):
        def execute(self, sql: str, *values: object) -> sqlite3.Cursor:
            return super().execute(sql.replace("synchronous = EXTRA", value), *values)  # type: ignore[arg-type]

    connect = sqlite3.connect
    sqlite3.connect = lambda *a, **k: connect(*a, **k, factory=Weaker)  # type: ignore[assignment]


TWINS: dict[str, Callable[[], object]] = {
    "honest": lambda: None,
    "files are not synced": lambda: _syncs_only(stat.S_ISDIR),
    "folders are not synced": lambda: _syncs_only(stat.S_ISREG),
    "outbox OFF": lambda: _outbox_synchronous("synchronous = OFF"),
    "outbox FULL": lambda: _outbox_synchronous("synchronous = FULL"),
    "store OFF": lambda: sqlite.PRAGMAS.update(synchronous="OFF"),
    "store NORMAL": lambda: sqlite.PRAGMAS.update(synchronous="NORMAL"),
}


if __name__ == "__main__":
    TWINS[sys.argv[3] if len(sys.argv) > 3 else "honest"]()
    PROGRAMS[sys.argv[1]](Path(sys.argv[2]))
