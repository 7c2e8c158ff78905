"""Test uploads: accepted ones are stored once, others are refused with a specific problem."""

from __future__ import annotations

import asyncio
import gc
import gzip
import weakref
from collections.abc import AsyncIterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from deniable.collector.api.problems import Problem
from deniable.collector.app import Collector
from deniable.collector.ingest import upload_route as ingest
from deniable.collector.ingest.body import gunzip
from deniable.collector.ingest.catalogue import Catalogue
from deniable.errors import InputError
from deniable.store.clock import today
from deniable.survey import Survey
from tests import gateway
from tests.collecting import collect, upload
from tests.faults.crowd import SURVEY, batch, single, stored

KEY = "0123456789abcdef" * 2


def kept(folder: Path) -> list[int]:
    return stored(f"sqlite:///{folder / 'reports.db'}")


def test_a_report_and_a_batch_are_stored(tmp_path: Path) -> None:
    async def scenario(collector: Collector, client: httpx.AsyncClient) -> None:
        one = await upload(client, single(7))
        assert (one.status_code, one.json()) == (202, {"accepted": 1})
        many = await upload(client, batch(100, 50), **gateway.HEADERS)
        assert (many.status_code, many.json()) == (202, {"accepted": 50})
        zipped = await upload(
            client, gzip.compress(batch(200, 5)), content_encoding="gzip", **gateway.HEADERS
        )
        assert zipped.json() == {"accepted": 5}
        beacon = await client.post(
            f"/v1/reports?key={KEY}", content=single(8),
            headers={"content-type": "application/octet-stream"},
        )  # fmt: skip
        assert beacon.status_code == 202
        assert collector.store.waiting(SURVEY) == 57
        assert collector.metrics.totals["reports"] == 57
        assert collector.limits.held == 0

    collect(tmp_path, scenario)
    assert kept(tmp_path) == [7, 8, *range(100, 150), *range(200, 205)]


def test_the_same_key_counts_once(tmp_path: Path) -> None:
    async def scenario(collector: Collector, client: httpx.AsyncClient) -> None:
        together = await asyncio.gather(
            *(upload(client, batch(0, 5), KEY, **gateway.HEADERS) for _ in range(5))
        )
        assert [a.status_code for a in together] == [202] * 5
        again = await upload(
            client, gzip.compress(batch(0, 5)), KEY, content_encoding="gzip", **gateway.HEADERS
        )
        assert (again.status_code, again.json()) == (202, {"accepted": 5})
        other = await upload(client, batch(1, 5), KEY, **gateway.HEADERS)
        assert other.status_code == 409
        assert other.json()["type"] == "urn:deniable:problem:key-reused"
        assert collector.metrics.totals["repeated_uploads"] == 5

    collect(tmp_path, scenario)
    assert kept(tmp_path) == [0, 1, 2, 3, 4]


def changed(data: bytes, at: int, byte: int) -> bytes:
    return data[:at] + bytes([byte]) + data[at + 1 :]


REFUSED: list[tuple[str, bytes, dict[str, str], int, str]] = [
    ("empty", b"", {}, 400, "malformed"),
    ("half a batch", batch(0, 5)[:-1], gateway.HEADERS, 400, "malformed"),
    ("more than a batch", batch(0, 5) + b"x", gateway.HEADERS, 400, "malformed"),
    ("another version", changed(single(0), 2, 9), {}, 400, "malformed"),
    ("no reports", batch(0, 5)[:20] + bytes(4), {}, 400, "malformed"),
    (
        "one bad cohort in a batch", changed(batch(0, 5), 24 + 18 + 1, 255), gateway.HEADERS, 400,
        "malformed",
    ),
    ("another digest", changed(single(0), 4, single(0)[4] ^ 1), {}, 404, "unknown-survey"),
    ("no key", single(0), {"idempotency_key": ""}, 400, "idempotency-key"),
    ("a key in capitals", single(0), {"idempotency_key": KEY.upper()}, 400, "idempotency-key"),
    ("a short key", single(0), {"idempotency_key": KEY[:-1]}, 400, "idempotency-key"),
    ("text", single(0), {"content_type": "text/plain"}, 415, "content-type"),
    ("brotli", single(0), {"content_encoding": "br"}, 415, "content-type"),
    ("not gzip", single(0), {"content_encoding": "gzip"}, 400, "malformed"),
    (
        "half of gzip", gzip.compress(single(0))[:-1], {"content_encoding": "gzip"}, 400,
        "malformed",
    ),
    (
        "two gzip members", 2 * gzip.compress(single(0)), {"content_encoding": "gzip"}, 400,
        "malformed",
    ),
    ("too large", bytes(10_001), {}, 413, "too-large"),
    ("a bomb", gzip.compress(bytes(10**7)), {"content_encoding": "gzip"}, 413, "too-large"),
    ("an unknown token", single(0), {"authorization": "Bearer x"}, 401, "unauthorised"),
    ("a batch without a key", batch(0, 2), {}, 401, "unauthorised"),
]  # fmt: skip


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case[0])
def test_each_refusal_has_its_own_problem(
    case: tuple[str, bytes, dict[str, str], int, str], tmp_path: Path
) -> None:
    _, body, headers, status, name = case

    async def scenario(collector: Collector, client: httpx.AsyncClient) -> None:
        got = await upload(client, body, **headers)
        assert got.status_code == status, got.text
        assert got.headers["content-type"] == "application/problem+json"
        if case[0] == "text":
            wanted = "the header Content-Type: application/octet-stream; got text/plain"
            assert wanted in got.json()["detail"]
        content = got.json()
        assert content["type"] == f"urn:deniable:problem:{name}"
        assert content["status"] == status
        assert content["detail"]
        assert collector.limits.held == 0

    collect(tmp_path, scenario, max_body=10_000)
    assert kept(tmp_path) == []


def test_a_misspelt_token_is_refused(tmp_path: Path) -> None:
    """Without it the upload would be one without a key, which is outside of every quota."""

    async def scenario(collector: Collector, client: httpx.AsyncClient) -> None:
        headers = {"content-type": "application/octet-stream"}
        path = f"/v1/reports?key={KEY}&tokn=dn_"
        got = await client.post(path, content=single(0), headers=headers)
        assert (got.status_code, got.json()["type"]) == (400, "urn:deniable:problem:query")
        assert "expected only the fields key and token" in got.json()["detail"]

    collect(tmp_path, scenario)


def test_a_query_of_thousands(tmp_path: Path) -> None:
    async def scenario(collector: Collector, client: httpx.AsyncClient) -> None:
        headers = {"content-type": "application/octet-stream"}
        path = "/v1/reports?" + "a&" * 5000 + f"key={KEY}"
        got = await client.post(path, content=single(0), headers=headers)
        assert (got.status_code, got.json()["type"]) == (400, "urn:deniable:problem:query")

    collect(tmp_path, scenario)


def test_a_body_without_a_length_is_capped_too(tmp_path: Path) -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(1000):
            yield bytes(1000)

    async def scenario(collector: Collector, client: httpx.AsyncClient) -> None:
        headers = {"content-type": "application/octet-stream", "idempotency-key": KEY}
        got = await client.post("/v1/reports", content=endless(), headers=headers)
        assert got.status_code == 413

    collect(tmp_path, scenario, max_body=10_000)


def test_a_bomb_never_unfolds() -> None:
    with pytest.raises(Problem, match="at most 1000"):
        gunzip(gzip.compress(bytes(10**8)), 1000)


def test_large_bodies_are_checked_aside(tmp_path: Path) -> None:
    many = ingest.MAX_INLINE_BYTES // SURVEY.body_size + 1

    async def scenario(collector: Collector, client: httpx.AsyncClient) -> None:
        zipped = gzip.compress(batch(0, many), 0)
        assert len(zipped) > ingest.MAX_INLINE_BYTES
        got = await upload(client, zipped, content_encoding="gzip", **gateway.HEADERS)
        assert got.json() == {"accepted": many}
        cut = batch(0, many)[:-1]
        assert (await upload(client, cut, **gateway.HEADERS)).status_code == 400

    collect(tmp_path, scenario)
    assert kept(tmp_path) == list(range(many))


def survey_until(expires: date, version: int = 1) -> Survey:
    return Survey(
        "faults", version, SURVEY.owner, SURVEY.description, expires, SURVEY.collect,
        SURVEY.budget, SURVEY.questions,
    )  # fmt: skip


@pytest.mark.parametrize(("days_ago", "status"), [(0, 202), (1, 202), (2, 410)])
def test_an_expired_survey(days_ago: int, status: int, tmp_path: Path) -> None:
    """One day of grace: in the client's time zone it may still be the last day."""
    ended = survey_until(today() - timedelta(days=days_ago), 2)
    ended.publish(tmp_path / "ended.json")
    body = single(0).replace(SURVEY.digest, ended.digest)

    async def scenario(collector: Collector, client: httpx.AsyncClient) -> None:
        got = await upload(client, body)
        assert got.status_code == status
        assert (await client.get("/v1/surveys/faults")).status_code == 200

    surveys = tuple(str(tmp_path / name) for name in ("survey.json", "ended.json"))
    collect(tmp_path, scenario, surveys=surveys)


def test_several_versions_at_once(tmp_path: Path) -> None:
    second = survey_until(SURVEY.expires, 2)
    second.publish(tmp_path / "second.json")

    async def scenario(collector: Collector, client: httpx.AsyncClient) -> None:
        assert (await upload(client, single(1))).status_code == 202
        body = single(2).replace(SURVEY.digest, second.digest)
        assert (await upload(client, body)).status_code == 202
        assert collector.store.waiting(SURVEY) == collector.store.waiting(second) == 1

    surveys = tuple(str(tmp_path / name) for name in ("survey.json", "second.json"))
    collect(tmp_path, scenario, surveys=surveys)


def test_one_version_cannot_be_two_surveys() -> None:
    with pytest.raises(InputError, match="a changed survey needs a new version"):
        Catalogue([SURVEY, survey_until(date(2998, 1, 1))])


async def slow(seconds: float) -> AsyncIterator[bytes]:
    yield single(0)[:10]
    await asyncio.sleep(seconds)
    yield single(0)[10:]


def test_a_slow_body_is_refused(tmp_path: Path) -> None:
    async def scenario(collector: Collector, client: httpx.AsyncClient) -> None:
        headers = {"content-type": "application/octet-stream", "idempotency-key": KEY}
        got = await client.post("/v1/reports", content=slow(30), headers=headers)
        assert (got.status_code, got.json()["type"]) == (408, "urn:deniable:problem:too-slow")
        assert collector.limits.held == 0

    collect(tmp_path, scenario, body_time=0.2)


def test_an_incomplete_body_is_answered_and_counted(tmp_path: Path) -> None:
    """This is how the server reports a malformed chunk; without an answer it would send a 500."""

    async def scenario(collector: Collector, client: httpx.AsyncClient) -> None:
        messages = iter([{"type": "http.request", "body": b"dn", "more_body": True}])
        sent: list[Any] = []

        async def receive() -> Any:
            return next(messages, {"type": "http.disconnect"})

        async def send(message: Any) -> None:
            sent.append(message)

        headers = [(b"content-type", b"application/octet-stream"), (b"idempotency-key", b"0" * 32)]
        scope = {"type": "http", "method": "POST", "path": "/v1/reports", "query_string": b""}
        await collector({**scope, "headers": headers}, receive, send)
        assert sent[0]["status"] == 408
        assert b"problem:incomplete" in sent[1]["body"]
        assert collector.metrics.answers[408] == 1
        assert collector.limits.held == 0

    collect(tmp_path, scenario)


def test_stopping_hurries_bodies_under_way(tmp_path: Path) -> None:
    async def scenario(collector: Collector, client: httpx.AsyncClient) -> None:
        headers = {"content-type": "application/octet-stream", "idempotency-key": KEY}
        sending = asyncio.create_task(client.post("/v1/reports", content=slow(60), headers=headers))
        while not collector.limits.held:
            await asyncio.sleep(0.01)
        collector.begin_shutdown()
        assert (await sending).status_code == 408
        assert (await client.get("/readyz")).status_code == 503

    collect(tmp_path, scenario, body_time=60.0, stop_time=0.1)


def test_memory_is_bounded(tmp_path: Path) -> None:
    """Incomplete bodies use memory; a body that would exceed the limit is refused."""

    async def slow_batch() -> AsyncIterator[bytes]:
        yield batch(0, 500)
        await asyncio.sleep(30)
        yield b""

    async def scenario(collector: Collector, client: httpx.AsyncClient) -> None:
        headers = {"content-type": "application/octet-stream", "idempotency-key": KEY}
        sending = [
            asyncio.create_task(client.post("/v1/reports", content=slow_batch(), headers=headers))
            for _ in range(2)
        ]
        while collector.limits.held < 18_000:
            await asyncio.sleep(0.01)
        got = await upload(client, batch(0, 500), **gateway.HEADERS)
        assert got.status_code == 503
        assert 1 <= int(got.headers["retry-after"]) <= 10
        for task in sending:
            task.cancel()
        await asyncio.gather(*sending, return_exceptions=True)
        assert (await upload(client, batch(0, 500), **gateway.HEADERS)).status_code == 202
        assert collector.limits.held == 0

    collect(tmp_path, scenario, max_body=10_000, max_memory=20_000)


@pytest.mark.parametrize(("body", "status"), [(single(0), 202), (b"x", 400)])
def test_an_answered_request_is_let_go_of_at_once(body: bytes, status: int, tmp_path: Path) -> None:
    """The server closes the connection of an unread body once nothing refers to its `receive`."""

    async def scenario(collector: Collector, client: httpx.AsyncClient) -> None:
        headers = [(b"content-type", b"application/octet-stream"), (b"idempotency-key", b"0" * 32)]
        scope = {
            "type": "http", "method": "POST", "path": "/v1/reports", "query_string": b"",
            "headers": headers,
        }  # fmt: skip
        sent = []

        async def receive() -> Any:
            return {"type": "http.request", "body": body}

        async def send(message: Any) -> None:
            sent.append(message)

        held = weakref.ref(receive)
        await collector(scope, receive, send)
        assert sent[0]["status"] == status
        del receive
        assert held() is None

    gc.disable()
    try:
        collect(tmp_path, scenario)
    finally:
        gc.enable()


def test_cross_origin(tmp_path: Path) -> None:
    async def scenario(collector: Collector, client: httpx.AsyncClient) -> None:
        asked = await client.options("/v1/reports")
        assert asked.status_code == 204
        assert asked.headers["access-control-allow-origin"] == "https://a.example"
        allowed = asked.headers["access-control-allow-headers"]
        assert {"idempotency-key", "content-type", "authorization"} <= set(allowed.split(", "))
        for got in (await upload(client, single(0)), await upload(client, b"")):
            assert got.headers["access-control-allow-origin"] == "https://a.example"
            assert "set-cookie" not in got.headers
        for path in ("/v1/surveys", "/v1/surveys/faults", "/v1/surveys/none"):
            got = await client.get(path)
            assert got.headers["access-control-allow-origin"] == "https://a.example"
        assert "access-control-allow-origin" not in (await client.get("/metrics")).headers

    collect(tmp_path, scenario, cors="https://a.example")


def test_an_unforeseen_failure_is_answered(tmp_path: Path, caplog: Any) -> None:
    async def scenario(collector: Collector, client: httpx.AsyncClient) -> None:
        del collector.catalogue
        got = await upload(client, single(0))
        assert (got.status_code, got.json()["type"]) == (500, "urn:deniable:problem:failed")
        assert (await client.get("/v1/surveys")).status_code == 500

    collect(tmp_path, scenario)
    assert "AttributeError" in caplog.text
    assert "catalogue" not in caplog.text, "only the kind of an error is logged, never its text"
