"""Bodies of requests: chunks, memory of all of them together, and decompression."""

from __future__ import annotations

import asyncio
import gzip
import tracemalloc
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import deniable.store
from deniable.collector.api.problems import BUSY, TOO_LARGE, TOO_SLOW, Problem
from deniable.collector.ingest.body import BodyLimits, IncomingBody, gunzip
from deniable.collector.ingest.writer import CommitWriter
from deniable.collector.metrics import Metrics
from deniable.store import Outcome
from tests.uploads import MARKS, upload


def incoming(chunks: Iterable[bytes], limits: BodyLimits) -> IncomingBody:
    """Return a body that arrives in these chunks."""
    messages = [{"type": "http.request", "body": chunk, "more_body": True} for chunk in chunks]
    messages[-1]["more_body"] = False
    left = iter(messages)

    async def receive() -> dict[str, Any]:
        return next(left)

    return IncomingBody(receive, limits)


def test_a_body_is_all_its_chunks() -> None:
    async def scenario() -> None:
        limits = BodyLimits(max_body=10, max_memory=100, seconds=60)
        for chunks in ([b"whole"], [b"in", b" ", b"parts"], [b"", b""]):
            with incoming(chunks, limits) as body:
                assert await body.read() == b"".join(chunks)
        with incoming([b"12345", b"67890", b"1"], limits) as body:
            with pytest.raises(Problem) as caught:
                await body.read()
            assert caught.value.kind is TOO_LARGE

    asyncio.run(scenario())


def test_all_bodies_together_have_a_limit() -> None:
    async def scenario() -> None:
        limits = BodyLimits(max_body=50, max_memory=60, seconds=60)
        with incoming([b"x" * 40], limits) as first:
            await first.read()
            with incoming([b"x" * 10, b"x" * 10], limits) as second:
                await second.read()
            assert limits.held == 40
            with incoming([b"x" * 10, b"x" * 11], limits) as third:
                with pytest.raises(Problem) as caught:
                    await third.read()
                assert caught.value.kind is BUSY
            assert limits.held == 40
        assert limits.held == 0

    asyncio.run(scenario())


def test_a_shutdown_while_a_slow_body_is_refused() -> None:
    """The refusal holds its timeout, which is over, as long as its error is alive."""

    async def silent() -> dict[str, Any]:
        await asyncio.sleep(3600)
        raise AssertionError

    async def scenario() -> None:
        limits = BodyLimits(max_body=10, max_memory=100, seconds=0.01)
        slow, problems = IncomingBody(silent, limits), list[Problem]()
        try:
            await slow.read()
        except Problem as problem:
            problems.append(problem)
        assert problems[0].kind is TOO_SLOW
        limits.seconds = 3600
        other = asyncio.create_task(IncomingBody(silent, limits).read())
        await asyncio.sleep(0)
        limits.end_within(0.01)
        with pytest.raises(Problem, match="within 3600 seconds"):
            await asyncio.wait_for(other, 60)

    asyncio.run(scenario())


def test_decompression_stops_at_the_limit() -> None:
    """A bomb is refused before it takes memory."""
    bomb = gzip.compress(bytes(50_000_000))
    tracemalloc.start()
    try:
        with pytest.raises(Problem) as caught:
            gunzip(bomb, 1000)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert caught.value.kind is TOO_LARGE
    assert peak < 1_000_000
    assert gunzip(gzip.compress(bytes(1000)), 1000) == bytes(1000)


def test_a_writer_that_was_stopped_takes_no_uploads(tmp_path: Path) -> None:
    """Nobody would commit them, and their requests would wait for ever."""

    async def scenario() -> None:
        with deniable.store.open(tmp_path / "reports.db", create=True) as store:
            store.add_survey(MARKS)
            writer = CommitWriter(store, Metrics(), 9, 9, lambda: None)
            future = writer.submit(upload(3))
            await asyncio.to_thread(writer.stop)
            assert await future is Outcome.STORED
            with pytest.raises(Problem) as caught:
                writer.submit(upload(3))
            assert caught.value.kind is BUSY and len(writer) == 0

    asyncio.run(scenario())
