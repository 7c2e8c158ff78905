"""Metrics: read by Prometheus' own parser, named by its conventions, and counting what they say."""

from __future__ import annotations

import re
import time
from collections import Counter
from pathlib import Path
from threading import Event

import httpx
import pytest
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from deniable.collector.api import problems
from deniable.collector.app import Collector, Periodic
from deniable.collector.jobs.runner import Jobs
from deniable.errors import StoreUnavailable
from tests.collecting import collect, upload
from tests.collector.test_jobs import AMPLE, HANG, REQUEST, until
from tests.faults.crowd import SURVEY, single

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "operate.md"
UNITS = ("_seconds", "_bytes", "_uploads", "_reports", "_jobs", "_fds")
WITHOUT_UNIT = {"deniable_build_info", "deniable_store_failing", "deniable_store_damage"}
WITHOUT_UNIT |= {"deniable_clock_doubted"}


async def families(client: httpx.AsyncClient) -> dict[str, Metric]:
    """Return what Prometheus reads."""
    got = await client.get("/metrics")
    assert got.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    found = list(text_string_to_metric_families(got.text))
    assert len({family.name for family in found}) == len(found), "a metric occurs twice"
    return {family.name: family for family in found}


def value(found: dict[str, Metric], name: str, **labels: str) -> float:
    (sample,) = (s for s in found[name].samples if labels.items() <= s.labels.items())
    return sample.value


def test_names_follow_the_conventions_and_stand_in_the_documentation(tmp_path: Path) -> None:
    async def scenario(collector: Collector, client: httpx.AsyncClient) -> None:
        page = PAGE.read_text()
        for name, family in (await families(client)).items():
            assert re.fullmatch(r"(deniable|process)_[a-z_]+", name)
            assert family.documentation.endswith("."), name
            assert family.type in ("counter", "gauge", "histogram"), name
            if family.type == "counter":
                assert all(sample.name == f"{name}_total" for sample in family.samples)
                name += "_total"
            elif name not in WITHOUT_UNIT:
                assert name.endswith(UNITS), f"{name} has no unit"
            assert f"`{name}" in page, f"docs/how-to/operate.md does not list {name}"

    collect(tmp_path, scenario)


def test_refused_uploads_are_counted_by_reason(tmp_path: Path) -> None:
    async def scenario(collector: Collector, client: httpx.AsyncClient) -> None:
        before = await families(client)
        assert {s.labels["reason"] for s in before["deniable_refused_uploads"].samples} == {
            kind.name for kind in problems.UPLOAD_REFUSALS
        }, "a rate would miss the first refusal of a kind that is not there from the start"
        assert all(s.value == 0 for s in before["deniable_refused_uploads"].samples)
        await upload(client, b"nonsense")
        await upload(client, single(1), key="no key")
        await upload(client, single(1), content_type="text/plain")
        await upload(client, single(1), authorization="Bearer x")
        await upload(client, single(1))
        found = await families(client)
        for reason in ("malformed", "idempotency-key", "content-type", "unauthorised"):
            assert value(found, "deniable_refused_uploads", reason=reason) == 1
        assert sum(s.value for s in found["deniable_refused_uploads"].samples) == 4
        assert value(found, "deniable_uploads", status="202") == 1
        assert value(found, "deniable_reports") == 1

    collect(tmp_path, scenario)


def test_commits_take_no_longer_than_the_requests(tmp_path: Path) -> None:
    async def scenario(collector: Collector, client: httpx.AsyncClient) -> None:
        start = time.perf_counter()
        for number in range(3):
            await upload(client, single(number))
        samples = (await families(client))["deniable_commit_seconds"].samples
        found = {sample.name: sample.value for sample in samples if "le" not in sample.labels}
        assert found["deniable_commit_seconds_count"] == 3
        assert 0 < found["deniable_commit_seconds_sum"] < time.perf_counter() - start

    collect(tmp_path, scenario)


def test_the_runbook_has_every_reason() -> None:
    page = PAGE.read_text().partition("### Refused uploads")[2].partition("###")[0]
    for kind in problems.UPLOAD_REFUSALS:
        assert f"`{kind.name}`" in page, f"docs/how-to/operate.md does not explain {kind.name}"


def test_the_backlog_and_the_last_compaction(tmp_path: Path) -> None:
    async def scenario(collector: Collector, client: httpx.AsyncClient) -> None:
        for number in range(6):
            assert (await upload(client, single(number))).status_code == 202
        collector._count_staged()
        before = await families(client)
        assert value(before, "deniable_staged_reports") == 6
        assert value(before, "deniable_compaction_interval_seconds") == 7200
        start = value(before, "deniable_last_compaction_timestamp_seconds")
        assert abs(start - time.time()) < 60, "a collector that starts has an interval of time"
        collector.maintain_store()
        after = await families(client)
        assert value(after, "deniable_staged_reports") == 0
        assert value(after, "deniable_last_compaction_timestamp_seconds") > start
        assert value(after, "deniable_compacted_reports") == 6

    collect(tmp_path, scenario, at_least=3, compact=7200)
    # A restarted collector counts what is there.

    async def restarted(collector: Collector, client: httpx.AsyncClient) -> None:
        assert (await upload(client, single(9))).status_code == 202

    collect(tmp_path, restarted)

    async def again(collector: Collector, client: httpx.AsyncClient) -> None:
        assert value(await families(client), "deniable_staged_reports") == 1

    collect(tmp_path, again)


def test_times_and_bytes_keep_all_their_digits(tmp_path: Path) -> None:
    async def scenario(collector: Collector, client: httpx.AsyncClient) -> None:
        collector.free_bytes = 123_456_789_012
        assert value(await families(client), "deniable_disk_room_bytes") == 123_456_789_012

    collect(tmp_path, scenario)


def test_failures_of_regular_tasks_are_counted() -> None:
    failures, done = Counter[str](), Event()

    def work() -> None:
        if failures["compaction"] == 2:
            done.set()
        raise StoreUnavailable("marker")

    task = Periodic("compaction", 0.001, work, failures)
    assert "compaction" in failures
    assert done.wait(10)
    task.stop()
    assert task.ended_by(time.monotonic() + 10)
    assert failures["compaction"] >= 2


def test_jobs_are_counted_once_by_how_they_ended() -> None:
    ended = Counter[str]()
    jobs = Jobs(AMPLE, ("/bin/false",), outcomes=ended)
    job = jobs.start(REQUEST, "sqlite:///none.db", SURVEY)
    until(lambda: job.state != "running")
    assert ended == {"failed": 1}
    job.cancel()
    assert ended == {"failed": 1}, "a job ends once"
    assert jobs.running() == 0


@pytest.mark.slow
def test_running_jobs() -> None:
    import sys

    ended = Counter[str]()
    jobs = Jobs(AMPLE, (sys.executable, "-c", HANG + "time.sleep(600)"), outcomes=ended)
    job = jobs.start(REQUEST, "sqlite:///none.db", SURVEY)
    assert jobs.running() == 1
    jobs.remove(job.id)
    assert jobs.running() == 0
    assert ended == {"cancelled": 1}
