"""A program that answers, queues and sends reports until it is killed.

    python -m tests.faults.sending FOLDER URL BATCH LINES OUTBOX

It prints each report when `answer_and_queue` has returned. If LINES is positive, it kills itself
after that many executed lines of the client's code; if 0, it is killed from outside; if negative,
it only sends queued reports. OUTBOX names one of OUTBOXES; all but the first are broken on purpose.
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
from tests.surveys import ANY_SURVEY, make_survey

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
    """Broken: uses a new key for each attempt."""

    def next(self, batch: int = 1) -> QueuedUpload | None:
        with self._transaction() as db:
            db.execute("UPDATE upload SET key = randomblob(16)")
        return super().next(batch)


class Hasty(Outbox):
    """Broken: forgets an upload when it is sent, whether it was answered or not."""

    def mark_tried(self, upload: QueuedUpload) -> None:
        self.accept(upload)


OUTBOXES: dict[str, type[Outbox]] = {"outbox": Outbox, "new-keys": NewKeys, "hasty": Hasty}


def kill_at_line(number: int) -> None:
    """Kill this process after that many executed lines of the client's code."""
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
    client = Client.open(SURVEY, folder, limits=ANY_SURVEY)
    outbox = OUTBOXES[kind](Path(folder) / "outbox.db")
    client.outbox = outbox
    sender = Sender(outbox, url, token="gateway", batch=int(batch), timeout=10)
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
