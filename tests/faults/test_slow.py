"""Test slow clients: their connections are closed in time, and other clients do not wait."""

from __future__ import annotations

import asyncio
import resource
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from statistics import median

from tests.faults.crowd import Crowd, single
from tests.faults.server import Server
from tests.faults.traffic import (
    CONNECTION_LOST,
    Connection,
    TrafficCounts,
    request,
    response,
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


async def hold_connection(port: int, start: bytes) -> None:
    """Send the start of a request and no more; when the server closes the connection, again."""
    while True:
        with suppress(*CONNECTION_LOST):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                writer.write(start)
                await reader.read()
            finally:
                writer.transport.abort()


def inflict_at_limit(folder: Path, slow: int, *flags: str, every: float = 0.25) -> str:
    """Hold more connections than there may be; new clients are served all the same.

    A third each sends headers slowly, sends a body slowly, and is idle after a request.
    """
    limit, waits = 5 * slow // 6, list[float]()
    data = request(single(0), "0" * 32)
    starts = (data[:40], data[:-10], b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
    with Server(folder, "--connections", str(limit), *flags) as server:

        async def upload(number: int) -> None:
            began = time.monotonic()
            line = Connection(server.port)
            status, _ = await line.send(request(single(number), f"{number:032x}"))
            line.close()
            assert status == 202
            waits.append(time.monotonic() - began)

        async def run() -> None:
            start = partial(hold_connection, server.port)
            holding = [asyncio.create_task(start(starts[i % 3])) for i in range(slow)]
            await asyncio.sleep(2)
            async with asyncio.TaskGroup() as group:
                for number in range(1, 9):
                    group.create_task(upload(number))
                    await asyncio.sleep(every)
            for task in holding:
                task.cancel()
            await asyncio.gather(*holding, return_exceptions=True)

        asyncio.run(run())
    return (
        f"{slow:,} slow connections, where {limit:,} may be open: 8 of 8 new clients were served, "
        f"after {median(waits):.2f} s (median) to {max(waits):.2f} s"
    )


def test_new_clients_are_served_at_the_limit(tmp_path: Path) -> None:
    """Slow connections would stay open for ten minutes here, much longer than a client waits."""
    print(inflict_at_limit(tmp_path, 48, "--header-time", "600", "--body-time", "600"))


def test_an_idle_connection_makes_room_at_the_limit(tmp_path: Path) -> None:
    """A connection beyond the limit waits, and is served when an old one was closed for it."""
    one = Crowd(1).upload()
    data = request(one.body, one.key)
    with Server(tmp_path, "--connections", "3", "--header-time", "600") as server:

        async def run() -> None:
            lines = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(4)]
            for _, writer in lines:
                writer.write(data)
            for reader, _ in lines:
                assert (await asyncio.wait_for(response(reader), 30))[0] == 202
            for _, writer in lines:
                writer.transport.abort()

        asyncio.run(run())
