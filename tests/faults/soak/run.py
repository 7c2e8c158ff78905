"""One run: clients, operations and samples at once, then the comparison of sent and stored."""

from __future__ import annotations

import asyncio
import os
import random
import re
from collections.abc import Callable

from deniable import store
from tests.faults.soak import analysts, operations
from tests.faults.soak.analysts import Interrupted
from tests.faults.soak.collector import AGED, STORM, SoakedCollector
from tests.faults.soak.load import Line, Load
from tests.faults.soak.observed import Sample
from tests.faults.traffic import CONNECTION_LOST

Operation = Callable[[SoakedCollector, random.Random], str]
OPERATIONS: dict[str, tuple[float, Operation]] = {
    "jump": (80, operations.jump),
    "compact": (60, operations.compact),
    "job": (45, analysts.job),
    "decode": (150, operations.decode),
    "export": (170, operations.export),
    "export over HTTP": (60, analysts.export_over_http),
    "backup": (240, operations.backup),
    "check": (300, operations.check),
    "import": (120, operations.import_aged),
}
"""Mean seconds between two operations of a kind in a long run, and the operation."""
RESTART_SECONDS = 12.0
"""Mean seconds between two restarts in a storm."""
SAMPLES = 720
"""Samples of the process per run."""
REST_SECONDS = 120.0
"""Time after the run to send again what was not acknowledged, and to delete aged reports."""
METRICS_REQUEST = b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
COMPACTED = re.compile(rb"^deniable_compacted_reports_total (\d+)", re.MULTILINE)


async def soak(run: SoakedCollector, show: Callable[[str], None]) -> None:
    """Run everything at once for the planned time, and compare what was sent and stored."""
    with run.server:
        run.seen.begin()
        rng = random.Random(f"{run.plan.seed}/load")
        load = Load(run.server.port, run.uploads, run.seen, run.gateway_token, rng)
        clients = asyncio.create_task(load.run(run.plan.rate))
        others = [
            asyncio.create_task(work)
            for work in (
                _storms(run),
                _sampled(run),
                _shown(run, show),
                *(_repeated(run, kind) for kind in OPERATIONS),
            )
        ]
        await asyncio.gather(*others)
        load.running = False
        await clients
        with run.seen.event("final check"):
            show("sending what was not acknowledged again")
            await load.deliver_rest(REST_SECONDS)
            await _aged_deleted(run)
            await asyncio.to_thread(run.server.stop)
            show("comparing what was sent and stored")
            operations.check(run, rng)
            operations.export(run, rng)
    if lost := run.seen.unexplained():
        run.seen.fault(f"{lost} connections broke while the collector was not restarted")
    if "Traceback" in (log := run.server.log.read_text()):
        run.seen.fault(f"the log has a traceback: {log[log.index('Traceback') :][:1000]}")


async def _pause(run: SoakedCollector, seconds: float) -> bool:
    """Wait, but not beyond the end of the run; return whether the run goes on."""
    await asyncio.sleep(max(0, min(seconds, run.plan.seconds - run.seen.now())))
    return run.seen.now() < run.plan.seconds


async def _storms(run: SoakedCollector) -> None:
    """Restart the collector now and then, in storms only."""
    rng = random.Random(f"{run.plan.seed}/restart")
    mean = min(RESTART_SECONDS, STORM * run.plan.cycle / 4)
    while await _pause(run, mean * rng.uniform(0.5, 1.5)):
        if run.plan.is_storm(run.seen.now()):
            how = rng.choice(("kill", "kill", "stop"))
            with run.seen.event(how) as event:
                event.detail = await asyncio.to_thread(operations.restart, run, rng, how)


async def _repeated(run: SoakedCollector, kind: str) -> None:
    """Repeat an operation at random times."""
    rng = random.Random(f"{run.plan.seed}/{kind}")
    mean, operation = OPERATIONS[kind]
    mean = min(mean, run.plan.seconds / 2)
    while await _pause(run, mean * rng.uniform(0.4, 1.6)):
        with run.seen.event(kind) as event:
            try:
                event.detail = await asyncio.to_thread(operation, run, rng)
            except Interrupted:
                event.detail = "interrupted"


async def _sampled(run: SoakedCollector) -> None:
    """Sample the process, and notice its compactions."""
    line, compacted = Line(run.server.port), 0
    while await _pause(run, max(0.25, run.plan.seconds / SAMPLES)):
        life, pid = run.life, run.server.pid
        try:
            _, text = await line.send(METRICS_REQUEST)
            files = len(os.listdir(f"/proc/{pid}/fd"))
            memory = run.server.memory()
        except CONNECTION_LOST:
            code = run.server.process and run.server.process.poll()
            if code is not None and not run.restarting:
                run.seen.fault(f"the collector ended by itself, with status {code}")
                return
            continue
        if run.life != life:
            continue
        run.seen.samples.append(Sample(run.seen.now(), life, memory, files))
        found = COMPACTED.search(text)
        assert found is not None, text
        if int(found[1]) > compacted:
            with run.seen.event("compaction"):
                pass
        compacted = int(found[1])
    line.close()


async def _shown(run: SoakedCollector, show: Callable[[str], None]) -> None:
    """Show how far the run is."""
    seen = run.seen
    while await _pause(run, max(5, run.plan.seconds / 60)):
        memory = f"{seen.samples[-1].memory / 2**20:.0f} MiB" if seen.samples else "starting"
        recent = sorted(seen.latency[-1000:])
        p99 = f"{1000 * recent[int(0.99 * len(recent))]:.0f} ms" if recent else "none"
        show(
            f"{seen.now():.0f} of {run.plan.seconds:.0f} s: {len(seen.at):,} uploads acknowledged, "
            f"p99 {p99}, {memory}, {len(seen.restarts())} restarts, {len(seen.events)} events, "
            f"{len(seen.faults)} faults"
        )


async def _aged_deleted(run: SoakedCollector) -> None:
    """Wait until the collector has deleted all reports that are too old."""

    def left() -> int:
        with store.open(run.server.url) as opened:
            return sum(opened.days(AGED).values())

    end = run.seen.now() + REST_SECONDS
    while aged := await asyncio.to_thread(left):
        if run.seen.now() > end:
            run.seen.fault(f"{aged} reports are older than keep_days, and are not deleted")
            return
        await asyncio.sleep(1)
