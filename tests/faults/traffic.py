"""Senders of uploads: raw HTTP over asyncio, so that they leave most of the CPU to the server."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from tests import gateway
from tests.faults.crowd import Crowd, Sent

ANSWER_TIMEOUT = 30.0
"""Seconds after which an answer counts as missing."""
CONNECTION_LOST = (OSError, asyncio.IncompleteReadError, TimeoutError, ValueError)


def request(body: bytes, key: str, extra: str = "") -> bytes:
    """Return the bytes of one upload request, with the gateway key."""
    head = (
        "POST /v1/reports HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        f"Authorization: Bearer {gateway.TOKEN}\r\n"
        "Content-Type: application/octet-stream\r\n"
        f"Idempotency-Key: {key}\r\n{extra}Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def response(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """Read status and body of one answer."""
    status = 100
    while status < 200:
        head = await reader.readuntil(b"\r\n\r\n")
        status = int(head[9:12])
    size = 0
    for line in head.lower().split(b"\r\n")[1:]:
        if line.startswith(b"content-length:"):
            size = int(line[15:])
    return status, await reader.readexactly(size)


class Connection:
    """One connection, which is reopened when it breaks."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.writer: asyncio.StreamWriter | None = None

    async def send(self, data: bytes) -> tuple[int, bytes]:
        """Send a request and read its answer; raise one of CONNECTION_LOST if there is none."""
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT):
                if self.writer is None:
                    self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
                self.writer.write(data)
                await self.writer.drain()
                return await response(self.reader)
        except CONNECTION_LOST:
            self.close()
            raise

    def close(self) -> None:
        """Close the connection abruptly."""
        if self.writer is not None:
            with suppress(OSError):
                self.writer.transport.abort()
        self.writer = None


@dataclass
class TrafficCounts:
    """Counts and durations that senders observed."""

    answers: Counter[int] = field(default_factory=Counter)
    broken: int = 0
    seconds: list[float] = field(default_factory=list)

    def quantile(self, share: float) -> float:
        """Return a quantile of the durations of answered uploads, in seconds."""
        ordered = sorted(self.seconds)
        return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


async def deliver(
    line: Connection, one: Sent, seen: TrafficCounts, until: Callable[[], bool]
) -> None:
    """Retry an upload under its key until it is acknowledged."""
    data = request(one.body, one.key)
    while not until():
        start = time.perf_counter()
        try:
            status, _ = await line.send(data)
        except CONNECTION_LOST:
            seen.broken += 1
            await asyncio.sleep(0.02)
            continue
        seen.seconds.append(time.perf_counter() - start)
        seen.answers[status] += 1
        if status == 202:
            one.acknowledged = True
            return
        assert status in (429, 503, 507), status
        await asyncio.sleep(0.02)


async def upload_continuously(
    port: int, crowd: Crowd, *, senders: int, until: Callable[[], bool], seen: TrafficCounts
) -> None:
    """Upload without pause from several senders until `until()` is true."""

    async def one_sender() -> None:
        line = Connection(port)
        while not until():
            await deliver(line, crowd.upload(), seen, until)
        line.close()

    await asyncio.gather(*(one_sender() for _ in range(senders)))


async def resend_unacknowledged(
    port: int, crowd: Crowd, seen: TrafficCounts, senders: int = 8
) -> None:
    """Send uploads that were never acknowledged again, under the same keys."""
    left = [one for one in crowd.sent if not one.acknowledged]
    deadline = time.monotonic() + 60

    async def some(mine: list[Sent]) -> None:
        line = Connection(port)
        for one in mine:
            await deliver(line, one, seen, lambda: time.monotonic() > deadline)
        line.close()

    await asyncio.gather(*(some(left[i::senders]) for i in range(senders)))
    assert all(one.acknowledged for one in crowd.sent)
