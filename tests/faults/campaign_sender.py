"""Kill a sender repeatedly: python -m tests.faults.campaign_sender [--times 200] [--seed 1]

Each time, a new process takes over the same folder, queues reports, and sends them to a server that
cuts connections before and after storing an upload. Half of the kills happen at a random line of
the client's code, half at a random moment; half hit a device, half a gateway that batches. Finally
the remaining reports are sent, and all that arrived are compared with those that were queued. With
--output FILE.json the counts also go to the data file of docs/results/reliability.md.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from deniable.client import Ledger, Outbox
from deniable.compute.progress import listening, report_progress
from deniable.survey.report import BATCH, BATCH_HEADER_SIZE, HEADER_SIZE, header
from tests.faults.cutting_server import (
    ACCEPT,
    CUT_AFTER,
    CUT_AT_ONCE,
    CUT_BEFORE,
    HALF_AN_ANSWER,
    Act,
    Server,
    refuse,
)
from tests.faults.results import Conditions, ProgressLines, write_rows
from tests.faults.sending import SURVEY

TABLE = "sender"
ACTS = [ACCEPT, ACCEPT, ACCEPT, CUT_AFTER, CUT_AFTER, HALF_AN_ANSWER, CUT_BEFORE, CUT_AT_ONCE,
        refuse(503, Retry_After="0")]  # fmt: skip


@dataclass
class Findings:
    """Counts of a campaign, in reports; the lists should be empty."""

    kills: int = 0
    queued: int = 0
    arrived: int = 0
    tries: int = 0
    again: int = 0
    """Uploads that the server already had when they arrived again."""
    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    @property
    def fine(self) -> bool:
        return not (self.lost or self.doubled or self.faults)


def campaign(
    folder: Path, kills: int, batch: int, seed: int, kind: str = "outbox", acts: list[Act] = ACTS
) -> Findings:
    """Kill a sender `kills` times, let the last one finish, and compare reports."""
    rng = random.Random(seed)
    found = Findings()
    queued: list[str] = []

    def choose(_: int) -> Act:
        return ACCEPT if finishing else rng.choice(acts)

    finishing = False
    with Server(choose=choose) as server:
        for kill in range(kills):
            report_progress("kills", kill / kills)
            lines = rng.randint(1, 3000) if kill % 2 else 0
            queued += _killed(folder, server.url, batch, lines, kind, rng.uniform(0, 0.25))
            found.kills += 1
        finishing = True
        _run(folder, server.url, batch, -1, kind).communicate(timeout=120)
    _compare(found, queued, server, folder)
    return found


def _run(folder: Path, url: str, batch: int, lines: int, kind: str) -> subprocess.Popen[str]:
    program = [sys.executable, "-m", "tests.faults.sending"]
    args = [str(folder), url, str(batch), str(lines), kind]
    return subprocess.Popen([*program, *args], stdout=subprocess.PIPE, text=True)


def _killed(
    folder: Path, url: str, batch: int, lines: int, kind: str, moment: float
) -> list[str]:  # fmt: skip
    """Return the reports that a sender had queued when it was killed."""
    process = _run(folder, url, batch, lines, kind)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    if not lines:
        time.sleep(moment)
        process.kill()
    out, _ = process.communicate(timeout=120)
    assert process.returncode == -9, process.returncode
    # A line that was cut short is of a report that was queued all the same, but which?
    return [line for line in out.splitlines() if len(line) == 2 * (HEADER_SIZE + SURVEY.body_size)]


def _compare(found: Findings, queued: list[str], server: Server, folder: Path) -> None:
    found.queued, found.tries = len(queued), len(server.requests)
    arrived = Counter(r for body in server.stored.values() for r in _reports(body))
    found.arrived = arrived.total()
    found.lost = [report for report in queued if report not in arrived]
    found.doubled = [report for report, count in arrived.items() if count > 1]
    uploads: dict[str, set[tuple[str, bytes]]] = defaultdict(set)
    for request in server.requests:
        for report in _reports(request.body):
            uploads[report].add((request.key, request.body))
    found.faults += [f"{r} went in {len(u)} uploads" for r, u in uploads.items() if len(u) > 1]
    found.faults += [f"key {key} had two bodies" for key in server.conflicts]
    tries = Counter(r.key for r in server.requests)
    found.again = sum(count - 1 for key, count in tries.items() if key in server.stored)
    counts = Outbox(folder / "outbox.db").counts()
    if counts.waiting or counts.refused or counts.dropped:
        found.faults.append(f"left over: {counts}")
    paid = Ledger(folder / "ledger.json").spent("killed") / SURVEY.loss.per_report
    if found.arrived > paid + 1e-6:
        found.faults.append(f"{found.arrived} reports arrived, {paid} were paid for")


def _reports(body: bytes) -> list[str]:
    """Return the single reports in an upload, in hexadecimal."""
    if body[3] != BATCH:
        return [body.hex()]
    bodies, size = body[BATCH_HEADER_SIZE:], SURVEY.body_size
    single = header(SURVEY, 1)
    return [(single + bodies[i : i + size]).hex() for i in range(0, len(bodies), size)]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--times", type=int, default=200, help="kills of both senders together")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the counts to this file")
    args = parser.parse_args()
    fine = True
    for name, batch, kills in (
        ("device", 1, args.times - args.times // 2),
        ("gateway", 5, args.times // 2),
    ):
        start = time.monotonic()
        with tempfile.TemporaryDirectory() as folder, listening(ProgressLines(name)):
            found = campaign(Path(folder), kills, batch, args.seed)
        seconds = round(time.monotonic() - start, 1)
        fine &= found.fine
        print(
            f"{name}: {found.kills} kills, {found.queued} reports queued, {found.arrived} arrived, "
            f"{found.tries} tries, {found.again} of them of uploads that had been kept; "
            f"{len(found.lost)} lost, {len(found.doubled)} counted twice, "
            f"{len(found.faults)} other faults ({seconds} s)",
            *found.faults[:5],
            sep="\n  ",
            flush=True,
        )
        if args.output and found.fine:
            counts = [found.kills, found.queued, found.arrived, found.tries, found.again, 0, 0]
            conditions = Conditions(seconds, args.seed)
            write_rows(args.output, TABLE, {name: [name, *counts]}, {name: conditions})
    sys.exit(not fine)


if __name__ == "__main__":
    main()
