"""Restart and crash PostgreSQL and drop its connections under load, with a running collector."""

from __future__ import annotations

import asyncio
import random
import time
from pathlib import Path

from deniable.compute.progress import report_progress
from tests import postgres
from tests.faults.crowd import Crowd, differences
from tests.faults.server import Server
from tests.faults.traffic import TrafficCounts, resend_unacknowledged, upload_continuously


def inflict(folder: Path, database: postgres.Server, faults: int, seed: int = 1) -> str:
    """Restart, crash and disconnect the database in turn while senders upload."""
    database.wipe()
    server, crowd, seen = Server(folder, store=database.url), Crowd(20), TrafficCounts()
    rng = random.Random(seed)

    async def run() -> None:
        over = False
        with server:
            pouring = asyncio.create_task(
                upload_continuously(server.port, crowd, senders=6, until=lambda: over, seen=seen)
            )
            for i in range(faults):
                report_progress("faults", i / faults)
                await asyncio.sleep(rng.uniform(0.1, 0.5))
                if i % 3 == 2:
                    await asyncio.to_thread(database.kill_connections)
                else:
                    await asyncio.to_thread(database.stop, ("fast", "immediate")[i % 3])
                    await asyncio.to_thread(database.start)
                before, deadline = seen.answers[202], time.monotonic() + 60
                while seen.answers[202] == before:
                    assert time.monotonic() < deadline, "no upload is taken any more"
                    await asyncio.sleep(0.05)
            over = True
            await pouring
            await resend_unacknowledged(server.port, crowd, seen)
            server.stop()

    asyncio.run(run())
    assert not (wrong := differences(server.url, crowd)), wrong
    assert set(seen.answers) <= {202, 503}, seen.answers
    return (
        f"{crowd.acknowledged():,} uploads acknowledged, {seen.answers[503]:,} answered with 503 "
        "first: none lost, none counted twice"
    )


def test_postgres(tmp_path: Path, postgres_server: postgres.Server) -> None:
    print(inflict(tmp_path, postgres_server, 3))
