"""Send every upload one to five times at once and cut connections: each counts once."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from pathlib import Path

from deniable.compute.progress import report_progress
from tests.faults.crowd import Crowd, Sent, differences
from tests.faults.server import Server
from tests.faults.traffic import (
    ANSWER_TIMEOUT,
    CONNECTION_LOST,
    TrafficCounts,
    request,
    resend_unacknowledged,
    response,
)

CUTS = ("in the body", "before the answer", "in the answer", "nowhere")


async def send_and_cut(
    port: int, one: Sent, cut: str, rng: random.Random, seen: TrafficCounts
) -> None:
    """Send an upload once, and cut the connection at the given point."""
    data = request(one.body, one.key)
    with suppress(*CONNECTION_LOST):
        async with asyncio.timeout(ANSWER_TIMEOUT):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                writer.write(data[: rng.randrange(len(data))] if cut == "in the body" else data)
                await writer.drain()
                if cut == "in the answer":
                    await reader.read(rng.randrange(1, 20))
                elif cut == "nowhere":
                    status, _ = await response(reader)
                    seen.answers[status] += 1
                    one.acknowledged |= status == 202
                elif cut == "before the answer":
                    await asyncio.sleep(rng.choice([0, 0.001, 0.005]))
                seen.broken += cut != "nowhere"
            finally:
                writer.transport.abort()


def inflict(folder: Path, uploads: int, seed: int = 1) -> str:
    """Send uploads repeatedly; return the counts."""
    crowd, seen, rng = Crowd(50), TrafficCounts(), random.Random(seed)
    with Server(folder) as server:

        async def run() -> None:
            for start in range(0, uploads, 40):
                report_progress("uploads", start / uploads)
                await asyncio.gather(
                    *(
                        send_and_cut(server.port, one, rng.choice(CUTS), rng, seen)
                        for one in (crowd.upload() for _ in range(min(40, uploads - start)))
                        for _ in range(rng.randint(1, 5))
                    )
                )
            await resend_unacknowledged(server.port, crowd, seen)

        asyncio.run(run())
        server.stop()
    assert not (wrong := differences(server.url, crowd)), wrong
    assert set(seen.answers) == {202}, seen.answers
    return f"{seen.broken:,} connections cut: every upload counted once"


def test_repeats(tmp_path: Path) -> None:
    print(inflict(tmp_path, 120))
