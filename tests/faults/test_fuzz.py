"""Send malformed uploads: each is refused with the right problem, and nothing is stored.

Within the process, every answer is compared with the parser of single reports, which shares only
the code for the header with the parser of batches.
"""

from __future__ import annotations

import asyncio
import gzip
import random
import secrets
from pathlib import Path

import httpx

from deniable.collector.api.problems import Problem
from deniable.collector.app import Collector
from deniable.collector.ingest.body import gunzip
from deniable.collector.ingest.catalogue import Catalogue
from deniable.compute.progress import report_progress
from deniable.errors import UnknownSurvey, WireError
from deniable.store.clock import Today, today
from deniable.survey import from_batch, from_bytes
from deniable.survey.report import BATCH
from tests.collecting import collect, upload
from tests.faults.crowd import SURVEY, Crowd, batch, single
from tests.faults.server import Server
from tests.faults.traffic import CONNECTION_LOST, Connection, request
from tests.vectors import make

SURVEYS = [SURVEY, *make.surveys()]
LIMIT = 4096
HEADERS = (
    "Content-Type: text/plain", "Content-Encoding: gzip", "Content-Encoding: gzip, gzip",
    "Authorization: Bearer \xff", "Authorization: Basic x", "Expect: 100-continue",
    "Range: bytes=0-", "Idempotency-Key: x", "Cookie: a=b", "X: " + "y" * 5000,
)  # fmt: skip


def seeds(rng: random.Random) -> list[bytes]:
    """Return well-formed bodies of every survey, filled with random bytes."""
    found = [single(3), batch(7, 4)]
    for survey in SURVEYS:
        for form, count in ((1, b""), (2, b"\x03\0\0\0")):
            bodies = rng.randbytes(survey.body_size * (form + form // 2))
            found.append(b"dn\x01" + bytes([form]) + survey.digest + count + bodies)
    return found


def mutated(data: bytes, rng: random.Random) -> bytes:
    """Apply one or more mutations that often break parsers."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        at = rng.randrange(len(changed) + 1)
        match rng.randrange(7):
            case 0 if at < len(changed):
                changed[at] ^= 1 << rng.randrange(8)
            case 1 if at < len(changed):
                changed[at] = rng.choice((0, 1, 2, 127, 128, 255))
            case 2:
                del changed[at:]
            case 3:
                changed += rng.randbytes(rng.choice((1, 2, 55)))
            case 4:
                changed[at:at] = rng.randbytes(rng.randrange(1, 8))
            case 5:
                changed[20:24] = rng.choice((0, 1, 2**31, 2**32 - 1, 10**6)).to_bytes(4, "little")
            case 6:
                del changed[at : at + rng.randrange(1, 8)]
    return bytes(changed[:LIMIT])


def verdict(data: bytes, catalogue: Catalogue) -> int:
    """Return the expected status, from the parser of single reports."""
    try:
        if data[3:4] == bytes([BATCH]):
            from_batch(data, catalogue.by_digest)
        else:
            from_bytes(data, catalogue.by_digest)
    except UnknownSurvey:
        return 404
    except WireError:
        return 400
    return 202


def parse(bodies: int, seed: int = 1) -> str:
    """Parse mutated bodies; every fifth is compressed and mutated again."""
    rng, catalogue, day = random.Random(seed), Catalogue(SURVEYS), Today(today())
    sources = seeds(rng)
    seen = {202: 0, 400: 0, 404: 0, 413: 0}
    for i in range(bodies):
        if i % 10_000 == 0:
            report_progress("bodies", i / bodies)
        data = mutated(rng.choice(sources), rng)
        try:
            if i % 5 == 0:
                data = gunzip(mutated(gzip.compress(data, 1), rng), LIMIT)
            status = 202
            catalogue.upload(data, bytes(16), day)
        except Problem as problem:
            status = problem.status
        seen[status] += 1
        if i % 5:
            assert status == verdict(data, catalogue), data.hex()
    return f"{seen[202]:,} well-formed, all others refused with 400, 404 or 413"


def inflict(folder: Path, requests: int, seed: int = 1) -> str:
    """Send mutated bodies and headers over HTTP, with valid uploads in between."""
    rng, crowd = random.Random(seed), Crowd(5)
    sources = [data for data in seeds(rng) if SURVEY.digest in data]
    answers: dict[int, int] = {}
    broken = 0

    async def one_sender(port: int, count: int) -> None:
        nonlocal broken
        line = Connection(port)
        for _ in range(count):
            report_progress("requests", sum(answers.values()) / requests)
            body = mutated(rng.choice(sources), rng)
            extra = rng.choice(HEADERS) + "\r\n" if rng.random() < 0.3 else ""
            data = request(body, secrets.token_hex(16), extra)
            try:
                status, _ = await line.send(data)
                answers[status] = answers.get(status, 0) + 1
            except CONNECTION_LOST:
                broken += 1
        line.close()

    with Server(folder) as server:

        async def run(count: int) -> None:
            await asyncio.gather(*(one_sender(server.port, count // 16) for _ in range(16)))
            one = crowd.upload()
            line = Connection(server.port)
            status, _ = await line.send(request(one.body, one.key))
            line.close()
            assert status == 202

        asyncio.run(run(max(160, requests // 10)))
        before = server.memory()
        asyncio.run(run(requests))
        growth = server.memory() - before
        server.stop()
    assert all(status < 500 for status in answers), answers
    assert broken == 0, broken
    assert growth < 32 << 20, growth
    counts = ", ".join(f"{status}: {count:,}" for status, count in sorted(answers.items()))
    return f"answers by status {counts}; memory grew by {growth / 2**20:.0f} MiB"


def test_the_parser() -> None:
    print(parse(8000))


def test_over_http(tmp_path: Path) -> None:
    print(inflict(tmp_path, 1600))


def test_bombs_within_bounds(tmp_path: Path) -> None:
    """A body compressed ten times is refused: only one layer is decompressed."""
    bomb = bytes(1 << 20)
    for _ in range(3):
        bomb = gzip.compress(bomb)

    async def scenario(collector: Collector, client: httpx.AsyncClient) -> None:
        got = await upload(client, bomb, content_encoding="gzip")
        assert got.status_code == 400
        assert collector.limits.held == 0

    collect(tmp_path, scenario)
