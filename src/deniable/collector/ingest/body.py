"""Read the body of a request within limits of time, size and memory, and decompress it."""

from __future__ import annotations

import asyncio
import math
import zlib
from contextlib import suppress
from typing import Self
from weakref import WeakSet

from starlette.types import Receive

from deniable.collector.api.problems import (
    BUSY,
    INCOMPLETE,
    MALFORMED,
    TOO_LARGE,
    TOO_SLOW,
    Problem,
)

GZIP_WINDOW_BITS = 31
"""Value of zlib's `wbits` for one gzip member with header and checksum."""


class BodyLimits:
    """Limits of request bodies: size and time of each, and memory of all together.

    A body uses memory from its first byte until its request is answered.

    max_body : bytes per body; max_memory : bytes of all bodies; seconds : time to receive a body
    """

    def __init__(self, max_body: int, max_memory: int, seconds: float) -> None:
        self.max_body, self.max_memory, self.seconds = max_body, max_memory, seconds
        self.held = 0
        """Bytes that bodies use now."""
        self._last_end = math.inf
        """Time of the event loop at which all bodies must have arrived; infinite until shutdown."""
        self._active: WeakSet[asyncio.Timeout] = WeakSet()

    def end_within(self, seconds: float) -> None:
        """Give current and future bodies only this many seconds from now."""
        self._last_end = asyncio.get_running_loop().time() + seconds
        for timeout in self._active:
            with suppress(RuntimeError):  # its time is over, and its request is being answered
                timeout.reschedule(min(timeout.when() or math.inf, self._last_end))

    def until(self, end: float) -> asyncio.Timeout:
        """Return a context that raises TimeoutError at `end`, or earlier after `end_within`."""
        timeout = asyncio.timeout_at(min(end, self._last_end))
        self._active.add(timeout)
        return timeout


class IncomingBody:
    """The body of one request while it arrives.

    Use it in a `with` statement, which frees its share of the memory limit at the end.
    """

    def __init__(self, receive: Receive, limits: BodyLimits) -> None:
        self._receive, self._limits, self._held = receive, limits, 0
        self._end = asyncio.get_running_loop().time() + limits.seconds
        self._ended = False
        """Whether the body is complete, or its time is over."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._limits.held -= self._held

    def hold(self, count: int) -> None:
        """Use `count` more bytes of the memory limit (fewer if negative), or raise Problem."""
        limits = self._limits
        if limits.held + count > limits.max_memory:
            raise Problem(BUSY, "too many uploads are arriving at once: try again later")
        limits.held += count
        self._held += count

    async def read(self) -> bytes:
        """Return the whole body; raise Problem if it exceeds a limit."""
        chunks: list[bytes] = []
        size = 0
        try:
            async with self._limits.until(self._end):
                while not self._ended:
                    chunk = await self._chunk()
                    size += len(chunk)
                    if size > (limit := self._limits.max_body):
                        raise Problem(TOO_LARGE, f"expected a body of at most {limit} bytes")
                    self.hold(len(chunk))
                    chunks.append(chunk)
        except TimeoutError:
            self._ended = True
            seconds = self._limits.seconds
            raise Problem(TOO_SLOW, f"expected the body within {seconds:g} seconds") from None
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    async def discard(self) -> None:
        """Receive and drop the rest of a refused body, at most `max_body` bytes.

        A client that is still sending might otherwise not read the answer.
        """
        left = self._limits.max_body
        with suppress(TimeoutError, Problem):
            async with self._limits.until(self._end):
                while not self._ended and left > 0:
                    left -= len(await self._chunk())

    async def _chunk(self) -> bytes:
        """Return the next bytes; raise Problem if the client went away, or sent a bad chunk."""
        message = await self._receive()
        if message["type"] == "http.disconnect":
            self._ended = True
            raise Problem(INCOMPLETE, "the body was cut off, or wrongly chunked: send it again")
        self._ended = not message.get("more_body", False)
        chunk: bytes = message.get("body", b"")
        return chunk


def gunzip(data: bytes, limit: int) -> bytes:
    """Decompress one gzip member, without ever producing more than `limit` + 1 bytes."""
    stream = zlib.decompressobj(GZIP_WINDOW_BITS)
    try:
        plain = stream.decompress(data, limit + 1)
    except zlib.error as error:
        raise Problem(MALFORMED, f"the body is not valid gzip: {error}") from None
    if len(plain) > limit:
        raise Problem(TOO_LARGE, f"expected at most {limit} bytes after decompression")
    if not stream.eof:
        raise Problem(MALFORMED, "the gzip body is incomplete: send all of it")
    if stream.unused_data:
        raise Problem(MALFORMED, f"{len(stream.unused_data)} bytes follow the gzip member")
    return plain
