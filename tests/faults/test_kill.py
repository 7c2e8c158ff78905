"""kill -9 under load: nothing acknowledged is lost, nothing is counted twice."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

from tests.faults.crowd import Crowd, differences
from tests.faults.server import Server
from tests.faults.traffic import Seen, pour, settle

ROUND = 25
"""Kills before a new store is begun, so that checking it stays quick."""


def inflict(folder: Path, kills: int, *flags: str, store: str | None = None) -> str:
    """Kill the server so many times while senders upload; returns what was seen."""
    acknowledged = broken = 0
    for start in range(0, kills, ROUND):
        place = folder / f"round{start}"
        place.mkdir()
        crowd, seen = _round(place, min(ROUND, kills - start), flags, store)
        acknowledged += crowd.acknowledged()
        broken += seen.broken
    return (
        f"{kills} kills, {acknowledged:,} uploads acknowledged, {broken:,} tries broken: "
        "none lost, none twice"
    )


def _round(
    folder: Path, kills: int, flags: tuple[str, ...], store: str | None
) -> tuple[Crowd, Seen]:
    server, crowd, seen = Server(folder, *flags, store=store), Crowd(20), Seen()
    rng = random.Random(kills)

    async def run() -> None:
        over = False
        with server:
            pouring = asyncio.create_task(
                pour(server.port, crowd, senders=6, until=lambda: over, seen=seen)
            )
            for _ in range(kills):
                await asyncio.sleep(rng.uniform(0.05, 0.5))
                await asyncio.to_thread(server.kill)
                assert not (wrong := await asyncio.to_thread(differences, server.url, crowd)), wrong
                await asyncio.to_thread(server.start)
            over = True
            await pouring
            await settle(server.port, crowd, seen)
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
    await settle(port, crowd, Seen(), senders=1)
