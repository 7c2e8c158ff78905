"""Kill the server under load: no acknowledged report is lost, none is counted twice."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

from deniable.compute.progress import report_progress
from tests import postgres
from tests.faults.crowd import Crowd, differences
from tests.faults.server import Server
from tests.faults.traffic import TrafficCounts, resend_unacknowledged, upload_continuously

ROUND = 25
"""Number of kills per store, so that checking a store stays quick."""


def inflict(
    folder: Path, kills: int, seed: int = 1, database: postgres.Server | None = None
) -> str:
    """Kill the server `kills` times while senders upload; return the counts."""
    acknowledged = broken = 0
    rng = random.Random(seed)
    for start in range(0, kills, ROUND):
        place = folder / f"round{start}"
        place.mkdir()
        if database:
            database.wipe()
        url = database.url if database else None
        crowd, seen = _round(Server(place, store=url), min(ROUND, kills - start), rng)
        acknowledged += crowd.acknowledged()
        broken += seen.broken
        report_progress("kills", min(1.0, (start + ROUND) / kills))
    return (
        f"{acknowledged:,} uploads acknowledged, {broken:,} attempts interrupted: none lost, "
        "none counted twice"
    )


def _round(server: Server, kills: int, rng: random.Random) -> tuple[Crowd, TrafficCounts]:
    crowd, seen = Crowd(20), TrafficCounts()

    async def run() -> None:
        over = False
        with server:
            pouring = asyncio.create_task(
                upload_continuously(server.port, crowd, senders=6, until=lambda: over, seen=seen)
            )
            for _ in range(kills):
                await asyncio.sleep(rng.uniform(0.05, 0.5))
                await asyncio.to_thread(server.kill)
                assert not (wrong := await asyncio.to_thread(differences, server.url, crowd)), wrong
                await asyncio.to_thread(server.start)
            over = True
            await pouring
            await resend_unacknowledged(server.port, crowd, seen)
            server.stop()

    asyncio.run(run())
    assert not (wrong := differences(server.url, crowd)), wrong
    return crowd, seen


def test_kill(tmp_path: Path) -> None:
    print(inflict(tmp_path, 2))


def test_a_lost_and_a_doubled_report_are_noticed(tmp_path: Path) -> None:
    crowd = Crowd(5)
    with Server(tmp_path) as server:
        asyncio.run(_one(server.port, crowd))
    crowd.upload().acknowledged = True
    assert "5 lost" in differences(server.url, crowd)[0]
    crowd.sent.clear()
    assert "nobody sent" in differences(server.url, crowd)[0]


async def _one(port: int, crowd: Crowd) -> None:
    crowd.upload()
    await resend_unacknowledged(port, crowd, TrafficCounts(), senders=1)
