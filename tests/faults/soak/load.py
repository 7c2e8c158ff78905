"""Clients of all kinds at once: devices, a gateway, retries, cut and slow connections, mistakes."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from tests.faults.crowd import SURVEY, single
from tests.faults.soak.observed import Observations
from tests.faults.soak.uploads import NumberedUpload, Uploads
from tests.faults.test_repeats import CUTS, send_and_cut
from tests.faults.test_slow import send_slowly
from tests.faults.traffic import CONNECTION_LOST, Connection, TrafficCounts

ROUTE = "POST /v1/reports"
LATER = (410, 429, 503, 507)
"""Answers after which a sender tries again; 410 while the clock is wrong."""
WAIT_SECONDS = 0.1
"""How long a sender waits before it tries again."""
IDLE_SECONDS = 1.0
"""A connection that was idle for longer is opened anew: the collector may be closing it."""
MAX_BODY = 1 << 16
"""Largest body that the collector accepts, in bytes: enough for the batches of the gateway."""
NEVER_SENT = 1 << 40
"""Serial number of a report that is sent only under the key of another."""
DEVICES = 8
SLOW_CLIENTS = 6
SHARES = {"device": 0.78, "gateway": 0.02, "again": 0.1, "cut": 0.06, "mistake": 0.04}
"""Share of each kind of client in the requests per second; slow clients are additional."""


def upload_headers(key: str, token: str = "", kind: str = "octet-stream") -> dict[str, str]:
    """Return the headers of an upload; devices have no token."""
    headers = {"Content-Type": f"application/{kind}", "Idempotency-Key": key}
    return headers | ({"Authorization": f"Bearer {token}"} if token else {})


def request(body: bytes, headers: dict[str, str]) -> bytes:
    """Return the bytes of an upload."""
    given = {"Host": "127.0.0.1", **headers, "Content-Length": str(len(body))}
    lines = ["POST /v1/reports HTTP/1.1", *(f"{name}: {value}" for name, value in given.items())]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


class Line(Connection):
    """A connection that is not used after it was idle."""

    _used = 0.0

    async def send(self, data: bytes) -> tuple[int, bytes]:
        if time.monotonic() - self._used > IDLE_SECONDS:
            self.close()
        try:
            return await super().send(data)
        finally:
            self._used = time.monotonic()


@dataclass
class Load:
    """Sends requests until `running` is false; a token of the gateway comes with every batch."""

    port: int
    uploads: Uploads
    seen: Observations
    gateway_token: str
    rng: random.Random
    running: bool = True

    async def run(self, rate: float) -> None:
        """Send this many requests per second in all, until `running` is false."""
        kinds: list[tuple[str, Callable[[Line], Awaitable[None]], int]] = [
            ("device", self.device, DEVICES),
            ("gateway", self.gateway, 1),
            ("again", self.again, 2),
            ("cut", self.cut, 2),
            ("mistake", self.mistake, 1),
        ]
        await asyncio.gather(
            *(
                self._paced(work, rate * SHARES[kind] / senders)
                for kind, work, senders in kinds
                for _ in range(senders)
            ),
            *(self._slow(i % 2 == 0) for i in range(SLOW_CLIENTS)),
        )

    async def _paced(self, work: Callable[[Line], Awaitable[None]], rate: float) -> None:
        """Do the work at random times, so often per second on average; never catch up."""
        line = Line(self.port)
        while self.running:
            await asyncio.sleep(min(self.rng.expovariate(rate), 5 / rate))
            await work(line)
        line.close()

    # --- uploads that are counted --------------------------------------------------------------

    async def device(self, line: Line) -> None:
        await self.deliver(line, self.uploads.create())

    async def gateway(self, line: Line) -> None:
        await self.deliver(line, self.uploads.create(is_batch=True))

    async def again(self, line: Line) -> None:
        """Send an upload again that may have been counted, sometimes twice at once."""
        if not len(self.uploads):
            return
        old = self.uploads[self.rng.randrange(len(self.uploads))]
        self.seen.counts["sent again"] += 1
        if self.rng.random() < 0.2:
            twin = Line(self.port)
            self.seen.counts["sent again"] += 1
            await asyncio.gather(self.deliver(line, old), self.deliver(twin, old))
            twin.close()
        else:
            await self.deliver(line, old)

    async def cut(self, _: Line) -> None:
        """Send a new upload, and cut the connection; it is sent again at the end, or earlier."""
        seen = TrafficCounts()
        one = self.uploads.create()
        await send_and_cut(self.port, one, self.rng.choice(CUTS), self.rng, seen)  # type: ignore[arg-type]
        self.seen.counts["connections cut"] += seen.broken

    async def deliver(self, line: Line, one: NumberedUpload) -> None:
        """Send an upload under its key until it is acknowledged, or the run ends."""
        token = self.gateway_token if one.is_batch else ""
        data = request(one.body, upload_headers(one.key, token))
        while self.running:
            start = self.seen.now()
            try:
                status, body = await line.send(data)
            except CONNECTION_LOST:
                self.seen.broken.append((start, self.seen.now()))
                await asyncio.sleep(WAIT_SECONDS)
                continue
            self.seen.answer(ROUTE, status, body)
            if status == 202:
                self.seen.acknowledged(start)
                one.acknowledged = True
                return
            if status not in LATER:
                self.seen.fault(f"upload {one.number} was refused with {status}: {body[:200]!r}")
                return
            await asyncio.sleep(WAIT_SECONDS)

    async def deliver_rest(self, seconds: float) -> None:
        """Send what was never acknowledged again, under the same keys.

        A slow machine may need long, but in any `seconds` something must be acknowledged.
        """
        self.running = True

        async def some(mine: list[NumberedUpload]) -> None:
            line = Line(self.port)
            for one in mine:
                await self.deliver(line, one)
            line.close()

        before = 0
        while (rest := self.uploads.unacknowledged()) and len(rest) != before:
            before = len(rest)
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await asyncio.gather(*(some(rest[i::DEVICES]) for i in range(DEVICES)))
        if rest:
            self.seen.fault(f"{len(rest)} uploads are never acknowledged")

    # --- requests that are refused --------------------------------------------------------------

    async def mistake(self, line: Line) -> None:
        """Send a request that must be refused, for each reason in turn."""
        key, good = self.rng.randbytes(16).hex(), single(0)
        headers = upload_headers(key)
        stored = [one for one in map(self.uploads.__getitem__, self._some()) if one.acknowledged]
        requests = [
            (400, request(good[:-1], headers)),
            (400, request(good, upload_headers("short"))),
            (401, request(good, upload_headers(key, token="dn_0_0"))),
            (404, request(good.replace(SURVEY.digest, bytes(16)), headers)),
            (413, request(bytes(MAX_BODY + 1), headers)),
            (415, request(good, upload_headers(key, kind="x-unknown"))),
        ]
        for one in stored[:1]:
            requests.append((409, request(single(NEVER_SENT), upload_headers(one.key))))
        expected, data = self.rng.choice(requests)
        start = self.seen.now()
        self.seen.counts["mistakes"] += 1
        try:
            status, body = await line.send(data)
        except CONNECTION_LOST:
            self.seen.broken.append((start, self.seen.now()))
            await asyncio.sleep(WAIT_SECONDS)
        else:
            self.seen.answer(ROUTE, status, body, expected)

    def _some(self) -> list[int]:
        return self.rng.choices(range(len(self.uploads)), k=5) if len(self.uploads) else []

    async def _slow(self, headers: bool) -> None:
        """Send headers, or a body, one byte at a time, until the collector closes the connection.

        A body that is complete would be counted; this one never is.
        """
        data = request(bytes(MAX_BODY), upload_headers(self.rng.randbytes(16).hex()))
        head, end, body = data.partition(b"\r\n\r\n")
        parts = (b"", data) if headers else (head + end, body)
        while self.running:
            try:
                await send_slowly(self.port, *parts, every=0.25)
                self.seen.counts["slow clients"] += 1
            except CONNECTION_LOST:
                pass
            await asyncio.sleep(self.rng.uniform(0.1, 1))
