"""A request's body: read within a deadline, a size and a memory budget, and decompressed."""

from __future__ import annotations

import asyncio
import math
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Self

from starlette.types import Receive

from deniable.collector.api.problems import BUSY, MALFORMED, TOO_LARGE, TOO_SLOW, Problem

GZIP = 31
"""zlib's name for: one gzip member, header and checksum required."""


class Disconnected(Exception):
    """The client went away before its body was complete; nobody waits for an answer."""


class BodyLimits:
    """What bodies may use: each its bytes and seconds, all of them together a budget of memory.

    A body counts towards the budget from its first byte until the answer is known.
    """

    def __init__(self, max_body: int, max_memory: int, seconds: float) -> None:
        self.max_body, self.max_memory, self.seconds = max_body, max_memory, seconds
        self.held = 0
        self._last = math.inf
        self._under_way: set[asyncio.Timeout] = set()

    def hold(self, count: int) -> None:
        """Hold so many bytes more, or refuse the request."""
        if self.held + count > self.max_memory:
            raise Problem(BUSY, "too many bodies at once: try again later")
        self.held += count

    def end(self) -> float:
        """When a body that begins now must be complete."""
        return min(asyncio.get_running_loop().time() + self.seconds, self._last)

    def hurry(self, seconds: float) -> None:
        """Nobody may read for longer than this from now on."""
        self._last = asyncio.get_running_loop().time() + seconds
        for timeout in self._under_way:
            timeout.reschedule(min(timeout.when() or math.inf, self._last))

    @asynccontextmanager
    async def until(self, end: float) -> AsyncIterator[None]:
        """Raises TimeoutError at `end`, or earlier if there is hurry."""
        timeout = asyncio.timeout_at(end)
        self._under_way.add(timeout)
        try:
            async with timeout:
                yield
        finally:
            self._under_way.discard(timeout)


class Incoming:
    """One request's body, on its way; what it holds of the budget is given back at the end."""

    def __init__(self, receive: Receive, limits: BodyLimits) -> None:
        self._receive, self._limits, self._held = receive, limits, 0
        self._end = limits.end()
        self._over = False
        """Nothing more will come, or nothing more is waited for."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._limits.held -= self._held

    def hold(self, count: int) -> None:
        """Hold so many bytes of the budget more, or refuse the request; fewer if negative."""
        self._limits.hold(count)
        self._held += count

    async def read(self) -> bytes:
        """Return the whole body."""
        chunks: list[bytes] = []
        size = 0
        try:
            async with self._limits.until(self._end):
                while not self._over:
                    chunk = await self._chunk()
                    size += len(chunk)
                    if size > (limit := self._limits.max_body):
                        raise Problem(TOO_LARGE, f"expected at most {limit} bytes, got more")
                    self.hold(len(chunk))
                    chunks.append(chunk)
        except TimeoutError:
            self._over = True
            wait = self._limits.seconds
            raise Problem(TOO_SLOW, f"expected the body within {wait:g} s") from None
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    async def discard(self) -> None:
        """Let the rest pass by, so that a client which is still sending can read its refusal."""
        left = self._limits.max_body
        with suppress(TimeoutError, Disconnected):
            async with self._limits.until(self._end):
                while not self._over and left > 0:
                    left -= len(await self._chunk())

    async def _chunk(self) -> bytes:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            raise Disconnected
        self._over = not message.get("more_body", False)
        chunk: bytes = message.get("body", b"")
        return chunk


def gunzip(data: bytes, limit: int) -> bytes:
    """The one gzip member in `data`; never makes more than `limit` bytes and one."""
    stream = zlib.decompressobj(GZIP)
    try:
        plain = stream.decompress(data, limit + 1)
    except zlib.error as error:
        raise Problem(MALFORMED, f"the body is not gzip: {error}") from None
    if len(plain) > limit:
        raise Problem(TOO_LARGE, f"expected at most {limit} bytes once decompressed, got more")
    if not stream.eof:
        raise Problem(MALFORMED, "the gzip body ends too early: send it whole")
    if stream.unused_data:
        raise Problem(
            MALFORMED, f"expected one gzip member, got {len(stream.unused_data)} bytes after it"
        )
    return plain
