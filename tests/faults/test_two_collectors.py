"""Two collectors on one store, both killed at times: each upload is stored by one of them, once."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import deniable.store
from tests.faults.crowd import Crowd, Sent, differences
from tests.faults.server import Server
from tests.faults.traffic import Connection, TrafficCounts, deliver, upload_continuously

FLAGS = ("--compact", "1", "--at-least", "100", "--reserve", "0")


async def send_to(port: int, sent: list[Sent], seen: TrafficCounts) -> None:
    """Send uploads to a collector until it has acknowledged all of them."""
    line = Connection(port)
    for one in sent:
        await deliver(line, one, seen, lambda: False)
    line.close()


def inflict(folder: Path, kills: int) -> str:
    """Upload to two collectors, kill them in turn, then send everything to both again."""
    servers, store = [], f"sqlite:///{folder / 'reports.db'}"
    for name in ("one", "two"):
        (folder / name).mkdir()
        servers.append(Server(folder / name, *FLAGS, store=store))
    crowd, seen, rng = Crowd(20), TrafficCounts(), random.Random(kills)

    async def run() -> None:
        over = False
        for server in servers:
            await asyncio.to_thread(server.start)
        pouring = [
            asyncio.create_task(
                upload_continuously(server.port, crowd, senders=3, until=lambda: over, seen=seen)
            )
            for server in servers
        ]
        for number in range(kills):
            await asyncio.sleep(rng.uniform(0.5, 1.5))
            server = servers[number % 2]
            await asyncio.to_thread(server.kill)
            await asyncio.to_thread(server.start)
        over = True
        await asyncio.gather(*pouring)
        await asyncio.gather(*(send_to(server.port, crowd.sent, seen) for server in servers))
        for server in servers:
            server.stop()

    try:
        asyncio.run(run())
    finally:
        for server in servers:
            server.__exit__(None, None, None)
    assert not (wrong := differences(store, crowd)), wrong
    with deniable.store.open(store) as opened:
        opened.compact(at_least=100)
    assert not (wrong := differences(store, crowd)), wrong
    return f"{kills} kills, {crowd.acknowledged():,} uploads, sent to both: each counted once"


def test_two_collectors_share_a_store(tmp_path: Path) -> None:
    """On one machine, the locks of the system keep them apart."""
    print(inflict(tmp_path, 2))
