"""Senders: raw HTTP over asyncio, quick enough to share two cores with what they load."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from tests.faults.crowd import Crowd, Sent

PATIENCE = 30.0
"""Seconds after which an answer counts as missing."""
GONE = (OSError, asyncio.IncompleteReadError, TimeoutError, ValueError)


def request(body: bytes, key: str, extra: str = "") -> bytes:
    """The bytes of one upload."""
    head = (
        "POST /v1/reports HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        "Content-Type: application/octet-stream\r\n"
        f"Idempotency-Key: {key}\r\n{extra}Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def response(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """The status and the body of one answer."""
    status = 100
    while status < 200:
        head = await reader.readuntil(b"\r\n\r\n")
        status = int(head[9:12])
    size = 0
    for line in head.lower().split(b"\r\n")[1:]:
        if line.startswith(b"content-length:"):
            size = int(line[15:])
    return status, await reader.readexactly(size)


class Line:
    """One connection, opened again when it breaks."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.writer: asyncio.StreamWriter | None = None

    async def send(self, data: bytes) -> tuple[int, bytes]:
        """Send a request and read its answer; raises one of GONE if there is none."""
        try:
            async with asyncio.timeout(PATIENCE):
                if self.writer is None:
                    self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
                self.writer.write(data)
                await self.writer.drain()
                return await response(self.reader)
        except GONE:
            self.close()
            raise

    def close(self) -> None:
        """Cut it."""
        if self.writer is not None:
            with suppress(OSError):
                self.writer.transport.abort()
        self.writer = None


@dataclass
class Seen:
    """What senders saw."""

    answers: Counter[int] = field(default_factory=Counter)
    broken: int = 0
    seconds: list[float] = field(default_factory=list)

    def quantile(self, share: float) -> float:
        """Of the seconds that answered uploads took."""
        ordered = sorted(self.seconds)
        return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


async def deliver(line: Line, one: Sent, seen: Seen, until: Callable[[], bool]) -> None:
    """Send the upload again and again, under its one key, until it is acknowledged."""
    data = request(one.body, one.key)
    while not until():
        start = time.perf_counter()
        try:
            status, _ = await line.send(data)
        except GONE:
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


async def pour(
    port: int, crowd: Crowd, *, senders: int, until: Callable[[], bool], seen: Seen
) -> None:
    """Upload without pause from several senders, until told to stop."""

    async def one_sender() -> None:
        line = Line(port)
        while not until():
            await deliver(line, crowd.upload(), seen, until)
        line.close()

    await asyncio.gather(*(one_sender() for _ in range(senders)))


async def settle(port: int, crowd: Crowd, seen: Seen, senders: int = 8) -> None:
    """Deliver what was never acknowledged, under the same keys."""
    left = [one for one in crowd.sent if not one.acknowledged]
    deadline = time.monotonic() + 60

    async def some(mine: list[Sent]) -> None:
        line = Line(port)
        for one in mine:
            await deliver(line, one, seen, lambda: time.monotonic() > deadline)
        line.close()

    await asyncio.gather(*(some(left[i::senders]) for i in range(senders)))
    assert all(one.acknowledged for one in crowd.sent)
