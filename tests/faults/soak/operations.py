"""What operators do to a running collector, and what goes wrong with it.

Each operation takes the run and its own source of random numbers, runs in a thread, and returns a
few words about what it did. An exception is a fault.
"""

from __future__ import annotations

import http.client
import json
import random
import shutil
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from deniable.survey.report import BATCH, header
from tests.faults.crowd import SURVEY, bodies
from tests.faults.server import MAIN, Server
from tests.faults.soak.collector import AGED, AGED_DAYS, JUMPS, SoakedCollector
from tests.faults.soak.load import upload_headers
from tests.faults.soak.uploads import serials_of

AGED_REPORTS = 50
"""Reports of an earlier time that are imported at once."""
SENT_TO_COPY = 20
"""Uploads that are sent again to a restored backup."""
COMMAND_SECONDS = 300
"""Most seconds that a command may take."""


def command(*arguments: str | Path, seconds: float = COMMAND_SECONDS) -> str:
    """Run a command of deniable, which must succeed; return what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", MAIN, *map(str, arguments)],
        capture_output=True, text=True, timeout=seconds,
    )  # fmt: skip
    if done.returncode:
        raise AssertionError(f"deniable {arguments[0]} failed: {done.stderr[-500:]}")
    return done.stdout


# --- the process and its clock -------------------------------------------------------------------


def restart(run: SoakedCollector, rng: random.Random, how: str) -> str:
    """Kill or stop the collector, check that its jobs end with it, and start it again."""
    server = run.server
    jobs = children(server.pid)
    run.life += 1
    run.restarting = True
    took = 0.0
    if how == "kill":
        server.kill()
    else:
        took = server.stop()
    time.sleep(rng.choice((0, 0, rng.uniform(0, 1))))
    server.start()
    run.restarting = False
    deadline = time.monotonic() + 10
    while alive := [pid for pid in jobs if is_job(pid)]:
        assert time.monotonic() < deadline, f"jobs {alive} outlive their collector"
        time.sleep(0.1)
    return f"exit after {took:.1f} s" if took else ""


def children(pid: int) -> list[int]:
    """Return the processes that a process started."""
    folders = Path(f"/proc/{pid}/task").iterdir()
    return [int(child) for task in folders for child in (task / "children").read_text().split()]


def is_job(pid: int) -> bool:
    try:
        return b"job_process" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def jump(run: SoakedCollector, rng: random.Random) -> str:
    """Set the collector's clock wrong by some days, for some seconds."""
    days = rng.randint(*rng.choice(JUMPS))
    run.clock.write_text(str(days))
    try:
        time.sleep(min(rng.uniform(5, 15), run.plan.seconds / 10))
    finally:
        run.clock.write_text("0")
    return f"{days:+d} days"


# --- on the store --------------------------------------------------------------------------------


def compact(run: SoakedCollector, rng: random.Random) -> str:
    """Compact from the command line; one time in three, the command is killed."""
    arguments = ["compact", run.server.url, "--at-least", str(run.plan.at_least)]
    if rng.random() < 2 / 3:
        command(*arguments)
        return "command"
    process = subprocess.Popen([sys.executable, "-c", MAIN, *arguments], stdout=subprocess.DEVNULL)
    time.sleep(rng.uniform(0.3, 2))
    process.kill()
    return "command, killed" if process.wait() == -signal.SIGKILL else "command"


def import_aged(run: SoakedCollector, rng: random.Random) -> str:
    """Import reports of an earlier time, which the collector must delete soon."""
    first = rng.getrandbits(60)
    file = run.folder / "aged.dn"
    content = AGED_REPORTS.to_bytes(4, "little") + bodies(first, AGED_REPORTS)
    file.write_bytes(header(AGED, BATCH) + content)
    day = (datetime.now(UTC) - timedelta(days=AGED_DAYS)).date()
    command("import", run.server.url, file, "--survey", run.aged_survey, "--day", str(day))
    run.seen.counts["aged reports"] += AGED_REPORTS
    return f"{AGED_REPORTS} reports"


def decode(run: SoakedCollector, rng: random.Random) -> str:
    """Decode from the command line: every report that was acknowledged before counts."""
    least = run.uploads.reports(acknowledged=True)
    if not least:
        return "no reports yet"
    words = run.folder / "words.txt"
    words.write_text("one\ntwo\n")
    arguments = ("--question", "q", "--candidates", words, "--json")
    result = json.loads(command("decode", run.server.survey, run.server.url, *arguments))
    most = run.uploads.reports(acknowledged=False)
    assert least <= result["reports"] <= most, f"{result['reports']}, not {least} to {most} reports"
    return f"{result['reports']:,} reports"


def export(run: SoakedCollector, rng: random.Random) -> str:
    """Export from the command line: what was acknowledged before is there, and once."""
    return export_and_compare(run, run.server.url, run.folder / "export.dn")


def export_and_compare(
    run: SoakedCollector, store: str, file: Path, acknowledged: bytes | None = None
) -> str:
    """Export a store, and compare its reports with those acknowledged earlier, or until now."""
    before = bytes(run.uploads.state) if acknowledged is None else acknowledged
    if not any(state & 1 for state in before):
        return "no reports yet"
    command("export", store, SURVEY.name, file)
    serials = serials_of(file.read_bytes())
    file.unlink()
    for wrong in run.uploads.differences(serials, before):
        run.seen.fault(f"{store}: {wrong}")
    return f"{len(serials):,} reports"


def check(run: SoakedCollector, rng: random.Random) -> str:
    command("store", "check", run.server.url)
    return ""


def backup(run: SoakedCollector, rng: random.Random) -> str:
    """Back the store up, start a collector on the copy, and compare what it has."""
    before = bytes(run.uploads.state)
    folder = run.folder / "restored"
    folder.mkdir()
    copy = folder / "copy.db"
    command("store", "backup", run.server.url, copy)
    with Server(folder, *run.flags, store=f"sqlite:///{copy}") as restored:
        sent = send_again(run, rng, restored.port, before)
        metrics = restored.get("/metrics")[1].decode()
        restored.stop()
    assert f"deniable_repeated_uploads_total {sent}\n" in metrics, "the copy counts uploads again"
    command("store", "check", copy)
    seen = export_and_compare(run, str(copy), folder / "copy.dn", before)
    shutil.rmtree(folder)
    return seen


def send_again(run: SoakedCollector, rng: random.Random, port: int, before: bytes) -> int:
    """Send some uploads of the backup to a collector on the copy; return how many."""
    chosen = rng.sample(range(len(before)), min(SENT_TO_COPY, len(before)))
    numbers = [number for number in chosen if before[number] & 1]
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    for one in map(run.uploads.__getitem__, numbers):
        headers = upload_headers(one.key, run.gateway_token if one.is_batch else "")
        connection.request("POST", "/v1/reports", one.body, headers)
        answer = connection.getresponse()
        content = answer.read()
        assert answer.status == 202, f"the restored copy answered {answer.status}: {content!r}"
    connection.close()
    return len(numbers)
