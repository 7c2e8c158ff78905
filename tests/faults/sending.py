"""A program that answers, queues and sends until it is killed: run by the campaign.

    python -m tests.faults.sending FOLDER URL BATCH LINES OUTBOX

It prints each report when `answer_and_queue` has returned. LINES above 0: it kills itself at that
line of the client's own code, counted as they run. LINES of 0: it is killed from outside. Below 0:
it only sends what is left. OUTBOX names one of OUTBOXES; all but the first are broken on purpose.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import deniable.client
from deniable.client import Client, Outbox, Sender
from deniable.client.outbox import QueuedUpload
from tests.surveys import make_survey

SURVEY = make_survey(
    """
[questions.word]
kind = "string"
epsilon = 1.0
""",
    name="killed",
    budget=1e9,
)
CLIENT = str(Path(deniable.client.__file__).parent)


class NewKeys(Outbox):
    """Broken: another key for each try."""

    def next(self, batch: int = 1) -> QueuedUpload | None:
        with self._transaction() as db:
            db.execute("UPDATE upload SET key = randomblob(16)")
        return super().next(batch)


class Hasty(Outbox):
    """Broken: an upload is gone when it is tried, answered or not."""

    def mark_tried(self, upload: QueuedUpload) -> None:
        self.accept(upload)


OUTBOXES: dict[str, type[Outbox]] = {"outbox": Outbox, "new-keys": NewKeys, "hasty": Hasty}


def kill_at_line(number: int) -> None:
    """End this process, without warning, when that many lines of the client have run."""
    left = number

    def step(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal left
        if not frame.f_code.co_filename.startswith(CLIENT):
            return None
        left -= event == "line"
        if left <= 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return step

    sys.settrace(step)


def main(folder: str, url: str, batch: str, lines: str, kind: str) -> None:
    client = Client.open(SURVEY, folder)
    outbox = OUTBOXES[kind](Path(folder) / "outbox.db")
    client.outbox = outbox
    sender = Sender(outbox, url, batch=int(batch), timeout=10)
    print("ready", flush=True)
    if int(lines) > 0:
        kill_at_line(int(lines))
    while int(lines) >= 0:
        for _ in range(1 + os.urandom(1)[0] % 4):
            report = client.answer_and_queue({"word": "abc"})
            os.write(1, bytes(report).hex().encode() + b"\n")
        sender.send(now=True)
    while sender.send(now=True).waiting:
        pass


if __name__ == "__main__":
    main(*sys.argv[1:])
