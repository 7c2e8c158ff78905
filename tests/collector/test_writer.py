"""Test the writer: group commits, durability before acknowledgement, and a failing store."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from threading import Event

import httpx
import pytest

from deniable import store
from deniable.collector import app as collector_app
from deniable.collector.app import Collector
from deniable.collector.ingest import writer
from deniable.errors import StoreError, StoreFull, StoreUnavailable
from deniable.store import Outcome, Upload
from deniable.store.sqlite import SqliteStore
from tests import gateway
from tests.collecting import collect, upload
from tests.faults.crowd import SURVEY, batch, single


class Held(SqliteStore):
    """A SQLite store whose commits wait for permission, and fail on demand."""

    def __init__(self, url: str, *, create: bool = False, compacted_only: bool = False) -> None:
        super().__init__(url, create=create)
        self.let, self.entered = Event(), Event()
        self.groups, self.fail = list[int](), list[StoreError]()
        self.left: int | None = None

    def append(self, uploads: Sequence[Upload]) -> list[Outcome]:
        self.entered.set()
        self.let.wait(20)
        self.groups.append(len(uploads))
        if self.fail:
            raise self.fail.pop()
        return super().append(uploads)

    def room(self) -> int | None:
        return self.left


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "open", Held)
    monkeypatch.setattr(collector_app.stores, "open", Held)


def of(collector: Collector) -> Held:
    assert isinstance(collector.store, Held)
    return collector.store


async def queue_up(
    collector: Collector, client: httpx.AsyncClient, count: int
) -> list[asyncio.Task[httpx.Response]]:
    """Submit one upload, which is being committed, and `count` that are queued behind it."""
    tasks = [asyncio.create_task(upload(client, batch(0, 10), **gateway.HEADERS))]
    while not of(collector).entered.is_set():
        await asyncio.sleep(0.005)
    tasks += [
        asyncio.create_task(upload(client, batch(10 * i + 10, 10), **gateway.HEADERS))
        for i in range(count)
    ]
    while len(collector.writer) < count:
        await asyncio.sleep(0.005)
    return tasks


@pytest.mark.usefixtures("held")
def test_what_waits_is_committed_together(tmp_path: Path) -> None:
    async def scenario(collector: Collector, client: httpx.AsyncClient) -> None:
        tasks = await queue_up(collector, client, 20)
        assert not any(task.done() for task in tasks), "acknowledged before it was durable"
        of(collector).let.set()
        assert {(await task).status_code for task in tasks} == {202}
        assert of(collector).groups == [1, 8, 8, 4]
        assert sum(collector.store.days(SURVEY).values()) == 210

    collect(tmp_path, scenario, group=8)


@pytest.mark.usefixtures("held")
def test_a_full_queue_refuses(tmp_path: Path) -> None:
    async def scenario(collector: Collector, client: httpx.AsyncClient) -> None:
        tasks = await queue_up(collector, client, 3)
        assert (await client.get("/readyz")).status_code == 503
        got = await upload(client, single(9))
        assert got.status_code == 503
        assert got.json()["type"] == "urn:deniable:problem:busy"
        assert int(got.headers["retry-after"]) >= 1
        of(collector).let.set()
        assert {(await task).status_code for task in tasks} == {202}
        assert (await upload(client, single(9))).status_code == 202
        assert (await client.get("/readyz")).status_code == 200

    collect(tmp_path, scenario, max_queue=3)


@pytest.mark.usefixtures("held")
@pytest.mark.parametrize(
    ("error", "status", "name"),
    [
        (StoreUnavailable("gone: marker"), 503, "store-unavailable"),
        (StoreFull("full: marker"), 507, "disk-full"),
    ],
    ids=["unavailable", "full"],
)
def test_a_commit_that_fails_acknowledges_nothing(
    error: StoreError, status: int, name: str, tmp_path: Path
) -> None:
    async def scenario(collector: Collector, client: httpx.AsyncClient) -> None:
        of(collector).fail.append(error)
        of(collector).let.set()
        got = await upload(client, single(1), "ab" * 16)
        assert (got.status_code, got.json()["type"]) == (status, f"urn:deniable:problem:{name}")
        assert int(got.headers["retry-after"]) >= 1
        assert "marker" not in got.text
        assert collector.store.days(SURVEY) == {}
        assert collector.writer.failing
        assert (await upload(client, single(1), "ab" * 16)).status_code == 202
        assert not collector.writer.failing

    collect(tmp_path, scenario)


def test_a_store_that_is_read_only_is_not_ready_until_a_write_succeeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "RETRY_SECONDS", 0.01)

    async def scenario(collector: Collector, client: httpx.AsyncClient) -> None:
        assert isinstance(collector.store, SqliteStore)
        collector.store._writer.execute("PRAGMA query_only = ON")
        assert (await upload(client, single(1))).status_code == 503
        await asyncio.sleep(0.05)  # the store can be read, and was tried again
        assert (await client.get("/readyz")).status_code == 503
        with pytest.raises(StoreError, match=r"reports.db is not writable for this user"):
            collector.store.check_writable()
        collector.store._writer.execute("PRAGMA query_only = OFF")
        while (await client.get("/readyz")).status_code == 503:
            await asyncio.sleep(0.01)
        assert not collector.writer.failing

    collect(tmp_path, scenario)


@pytest.mark.slow
@pytest.mark.usefixtures("held")
def test_a_disk_nearly_full_refuses_until_there_is_room(tmp_path: Path) -> None:
    async def scenario(collector: Collector, client: httpx.AsyncClient) -> None:
        of(collector).let.set()
        of(collector).left = 999
        while not collector.disk_low:
            await asyncio.sleep(0.01)
        got = await upload(client, single(1))
        assert (got.status_code, got.headers["retry-after"]) == (507, "60")
        assert (await client.get("/readyz")).status_code == 503
        of(collector).left = 1000
        while collector.disk_low:
            await asyncio.sleep(0.01)
        assert (await upload(client, single(1))).status_code == 202
        assert "deniable_disk_room_bytes 1000\n" in (await client.get("/metrics")).text

    collect(tmp_path, scenario, reserve=1000)


@pytest.mark.usefixtures("held")
def test_stopping_commits_what_waits(tmp_path: Path) -> None:
    async def scenario(
        collector: Collector, client: httpx.AsyncClient
    ) -> list[asyncio.Task[httpx.Response]]:
        tasks = await queue_up(collector, client, 9)
        of(collector).let.set()
        return tasks

    collect(tmp_path, scenario)
    with store.open(f"sqlite:///{tmp_path / 'reports.db'}") as kept:
        assert sum(kept.days(SURVEY).values()) == 100
