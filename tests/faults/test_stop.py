"""Test SIGTERM under load: the server exits soon and cleanly, and keeps acknowledged reports."""

from __future__ import annotations

import asyncio
from pathlib import Path

from deniable.compute.progress import report_progress
from tests.faults.crowd import Crowd, differences
from tests.faults.server import Server
from tests.faults.traffic import TrafficCounts, resend_unacknowledged, upload_continuously

SECONDS = 10


def inflict(folder: Path, stops: int, *flags: str, timed: bool = True) -> str:
    """Stop and start the server so many times while senders upload."""
    server, crowd, seen, took = Server(folder, *flags), Crowd(20), TrafficCounts(), list[float]()

    async def run() -> None:
        over = False
        with server:
            pouring = asyncio.create_task(
                upload_continuously(server.port, crowd, senders=6, until=lambda: over, seen=seen)
            )
            for i in range(stops):
                report_progress("stops", i / stops)
                # One that never ends its headers must not hold up the exit for long.
                _, writer = await asyncio.open_connection("127.0.0.1", server.port)
                writer.write(b"POST /v1/reports HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n")
                await asyncio.sleep(0.3)
                took.append(await asyncio.to_thread(server.stop))
                writer.transport.abort()
                await asyncio.to_thread(server.start)
            over = True
            await pouring
            await resend_unacknowledged(server.port, crowd, seen)
            took.append(server.stop())

    asyncio.run(run())
    assert not (wrong := differences(server.url, crowd)), wrong
    assert not timed or max(took) < SECONDS, took
    return (
        f"{crowd.acknowledged():,} uploads acknowledged: clean exit within {max(took):.1f} s each "
        "time, none lost"
    )


def test_stop(tmp_path: Path) -> None:
    print(inflict(tmp_path, 1, "--stop-time", "0.5", timed=False))
