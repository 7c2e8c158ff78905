"""Test slow clients: their connections are closed in time, and other clients do not wait."""

from __future__ import annotations

import asyncio
import resource
import time
from contextlib import suppress
from pathlib import Path

from tests.faults.crowd import Crowd
from tests.faults.server import Server
from tests.faults.traffic import (
    CONNECTION_LOST,
    TrafficCounts,
    request,
    upload_continuously,
)

CLOSED_WITHIN = 30.0
OTHERS_P99 = 0.2
GIVE_UP = 120.0
"""Seconds after which a connection counts as never closed, even on a busy machine."""


async def send_slowly(port: int, at_once: bytes, data: bytes, every: float) -> float:
    """Send one byte at a time; return the seconds until the server closed the connection."""
    start = time.monotonic()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(at_once)
    ended = asyncio.create_task(reader.read())
    with suppress(*CONNECTION_LOST):
        async with asyncio.timeout(GIVE_UP):
            for byte in data:
                writer.write(bytes([byte]))
                await asyncio.wait([ended], timeout=every)
                if ended.done():
                    break
            await ended
    writer.transport.abort()
    return time.monotonic() - start


def inflict(folder: Path, slow: int, *flags: str, every: float = 1.0, timed: bool = True) -> str:
    """Open `slow` connections with slow headers and with slow bodies, while others upload."""
    wanted = 2 * slow + 200
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(wanted, hard)), hard))
    crowd, seen = Crowd(20), TrafficCounts()
    data = request(Crowd(1000).upload().body, "0" * 32)
    head, end, body = data.partition(b"\r\n\r\n")
    with Server(folder, *flags) as server:

        async def run() -> list[float]:
            over = False
            others = asyncio.create_task(
                upload_continuously(server.port, crowd, senders=2, until=lambda: over, seen=seen)
            )
            took = await asyncio.gather(
                *(send_slowly(server.port, b"", data, every) for _ in range(slow)),
                *(send_slowly(server.port, head + end, body, every) for _ in range(slow)),
            )
            over = True
            await others
            return took

        took = asyncio.run(run())
        memory = server.memory()
    assert set(seen.answers) == {202}, seen.answers
    if timed:
        assert max(took) < CLOSED_WITHIN, max(took)
        assert seen.quantile(0.99) < OTHERS_P99, seen.quantile(0.99)
    assert max(took) < GIVE_UP, "a slow client was never closed"
    return (
        f"closed after {min(took):.1f} to {max(took):.1f} s; 99th percentile of other clients' "
        f"latency {1000 * seen.quantile(0.99):.0f} ms over {len(seen.seconds):,} uploads; memory "
        f"{memory / 2**20:.0f} MiB"
    )


def test_slow(tmp_path: Path) -> None:
    print(inflict(tmp_path, 20, "--header-time", "1", "--body-time", "1.5", every=0.2, timed=False))
