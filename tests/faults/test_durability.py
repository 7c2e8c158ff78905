"""Test that the store syncs before an upload is acknowledged.

The order is read from a trace of the system calls, made by strace. Uploads are sent one at a time:
between two acknowledgements the log must be written and then synced, in this order.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from pathlib import Path

import pytest

from tests.faults.crowd import Crowd, differences
from tests.faults.server import MAIN, Server
from tests.faults.traffic import TrafficCounts, resend_unacknowledged

CALLS = "trace=pwrite64,pwritev,write,writev,sendto,sendmsg,fsync,fdatasync"
WRITE = re.compile(r"pwrite(64|v)\(\d+<[^>]*-wal>")
SYNC = re.compile(r"(fdatasync|fsync)\(\d+<[^>]*-wal>\)\s+= 0")
RESUMED = re.compile(r"<\.\.\. (fdatasync|fsync) resumed>\)\s+= 0")
BEGUN = re.compile(r"(fdatasync|fsync)\(\d+<[^>]*-wal> <unfinished")
ANSWER = re.compile(r"(write|writev|sendto|sendmsg)\(.*HTTP/1\.1 202")
NEVER_SYNCED = """
import sqlite3
from deniable.store import sqlite
real = sqlite._connect
def send_and_cut(path):
    connection = real(path)
    connection.execute("PRAGMA synchronous = OFF")
    return connection
sqlite._connect = send_and_cut
"""


def violations(trace: str) -> tuple[int, list[str]]:
    """Return the acknowledgements in a trace, and those that came before their sync."""
    written = synced = False
    syncing: set[str] = set()
    answers, wrong = 0, []
    for line in trace.splitlines():
        thread = line.split()[0]
        if WRITE.search(line):
            written, synced = True, False
        elif BEGUN.search(line):
            syncing.add(thread)
        elif SYNC.search(line) or (thread in syncing and RESUMED.search(line)):
            syncing.discard(thread)
            synced = written
        elif ANSWER.search(line):
            answers += 1
            if not (written and synced):
                wrong.append(f"answer {answers}: written {written}, synced {synced}")
            written = synced = False
    return answers, wrong


def traced(folder: Path, uploads: int, main: str = MAIN) -> tuple[int, list[str]]:
    """Send uploads one after another to a server under strace."""
    trace = folder / "trace"
    before = ("strace", "-f", "-y", "-s", "64", "-e", CALLS, "-o", str(trace))
    crowd = Crowd(5)
    with Server(folder, main=main, before=before) as server:
        for _ in range(uploads):
            crowd.upload()
        asyncio.run(resend_unacknowledged(server.port, crowd, TrafficCounts(), senders=1))
        (child,) = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
        os.kill(int(child), 15)
        server.process.wait(60)  # type: ignore[union-attr]
    assert not (wrong := differences(server.url, crowd)), wrong
    return violations(trace.read_text())


needs_strace = pytest.mark.skipif(
    shutil.which("strace") is None and not os.environ.get("CI"),
    reason="strace is missing: bash .ci/setup installs it",
)


def inflict(folder: Path, uploads: int) -> str:
    """Check the order of system calls over `uploads` uploads, and of a store that never syncs."""
    for name in ("right", "broken"):
        (folder / name).mkdir()
    answers, wrong = traced(folder / "right", uploads)
    assert answers == uploads
    assert not wrong, wrong[:3]
    answers, wrong = traced(folder / "broken", 5, NEVER_SYNCED + MAIN)
    assert (answers, len(wrong)) == (5, 5)
    return "each acknowledgement follows its sync; a store that never syncs is detected"


@needs_strace
def test_the_sync_comes_first_and_a_store_that_never_syncs_is_noticed(tmp_path: Path) -> None:
    print(inflict(tmp_path, 10))
