"""Offer three times the collector's capacity: it refuses correctly, and recovers at once.

Group commit is off and the queue is short, so that senders on the same two cores can offer three
times the capacity of the server.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from pathlib import Path

from tests.faults.crowd import Crowd, differences
from tests.faults.server import Server
from tests.faults.traffic import (
    CONNECTION_LOST,
    Connection,
    TrafficCounts,
    request,
    upload_continuously,
)

FLAGS = ("--group", "1", "--max-queue", "20")
GROWTH = 64 << 20
"""Largest growth of the server's memory under overload, in bytes."""


async def flood(port: int, crowd: Crowd, seen: TrafficCounts, rate: float, until: float) -> None:
    """Send `rate` uploads per second, regardless of the answers, and retry without waiting."""
    start, offered = time.monotonic(), 0
    # The line that was idle longest is next: the server closes lines that are idle for 10 seconds.
    lines = deque(Connection(port) for _ in range(200))

    async def one(line: Connection) -> None:
        sent = crowd.upload()
        try:
            status, _ = await line.send(request(sent.body, sent.key))
        except CONNECTION_LOST:
            seen.broken += 1
        else:
            seen.answers[status] += 1
            sent.acknowledged = status == 202
        lines.append(line)

    tasks: set[asyncio.Task[None]] = set()
    while (now := time.monotonic()) < until:
        while lines and offered < (now - start) * rate:
            offered += 1
            tasks.add(task := asyncio.create_task(one(lines.popleft())))
            task.add_done_callback(tasks.discard)
        await asyncio.sleep(0.005)
    await asyncio.gather(*tasks)
    for line in lines:
        line.close()


def inflict(folder: Path, seconds: float, *, timed: bool = True) -> str:
    """Measure the server's capacity, offer three times as much, and measure again."""
    crowd, calm, seen, after = Crowd(20), TrafficCounts(), TrafficCounts(), TrafficCounts()
    with Server(folder, *FLAGS) as server:

        async def run() -> tuple[float, int]:
            end = time.monotonic() + min(seconds, 5)
            await upload_continuously(
                server.port, crowd, senders=8, until=lambda: time.monotonic() > end, seen=calm
            )
            capacity = calm.answers[202] / min(seconds, 5)
            before = server.memory()
            end = time.monotonic() + seconds
            await flood(server.port, crowd, seen, 3 * capacity, end)
            growth = server.memory() - before
            end = time.monotonic() + min(seconds, 5)
            await upload_continuously(
                server.port, crowd, senders=1, until=lambda: time.monotonic() > end, seen=after
            )
            return capacity, growth

        capacity, growth = asyncio.run(run())
        server.stop()
    offered = sum(seen.answers.values()) / seconds
    assert set(seen.answers) <= {202, 429, 503}, seen.answers
    assert not timed or seen.answers[503] > 0, "no overload was reached"
    assert seen.broken == 0
    assert growth < GROWTH, growth
    assert set(after.answers) == {202}, after.answers
    assert not (wrong := differences(server.url, crowd)), wrong
    return (
        f"{offered / capacity:.1f} × {capacity:.0f} uploads per second offered: "
        f"{seen.answers[202]:,} accepted, {seen.answers[503]:,} refused with 503; memory grew by "
        f"{growth / 2**20:.0f} MiB; afterwards {after.answers[202]:,} accepted, none refused"
    )


def test_overload(tmp_path: Path) -> None:
    print(inflict(tmp_path, 1.5, timed=False))
