"""Test a collector whose clock is wrong: nothing is deleted, forgotten, refused or misfiled."""

from __future__ import annotations

import logging
from datetime import date, timedelta
from pathlib import Path

import httpx
import pytest

import deniable.store
from deniable.collector.app import Collector
from deniable.errors import InputError
from deniable.store import calendar
from tests import gateway
from tests.collecting import collect, upload
from tests.faults.crowd import SURVEY, batch, single

NOW = date(2026, 11, 18)
KEY = f"{1:032x}"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(calendar, "today", lambda: NOW + timedelta(days=clock.days))
    return clock


class Clock:
    """A clock that is so many days ahead."""

    days = 0


def stored(collector: Collector) -> dict[date, int]:
    """Return every report, by day, including those that are not shuffled yet."""
    with deniable.store.open(collector.settings.store) as store:
        return store.days(SURVEY)


def days_ahead(metrics: str) -> float:
    (line,) = (x for x in metrics.splitlines() if x.startswith("deniable_clock_ahead_seconds "))
    return float(line.split()[1]) / 86_400


def test_a_clock_that_is_ahead_for_a_moment_deletes_and_forgets_nothing(
    tmp_path: Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(collector: Collector, client: httpx.AsyncClient) -> None:
        for i in range(4):
            got = await upload(client, batch(100 * i, 100), f"{i + 1:032x}", **gateway.HEADERS)
            assert got.status_code == 202
        collector.maintain_store()
        clock.days = 60
        with caplog.at_level(logging.WARNING, "deniable.collector"):
            for _ in range(6):
                collector.maintain_store()
        assert "60 days after the latest day of the store" in caplog.text
        assert days_ahead((await client.get("/metrics")).text) == 60
        clock.days = 0
        collector.maintain_store()
        assert days_ahead((await client.get("/metrics")).text) == 0
        assert stored(collector) == {NOW: 400}
        assert (await upload(client, batch(0, 100), KEY, **gateway.HEADERS)).status_code == 202
        assert stored(collector) == {NOW: 400}, "the repeated upload was recognised"
        assert collector.metrics.totals["deleted_reports"] == 0

    collect(tmp_path, scenario, at_least=100, keep_days=30)


def test_a_machine_that_was_switched_off_goes_on_by_itself(tmp_path: Path, clock: Clock) -> None:
    async def before(collector: Collector, client: httpx.AsyncClient) -> None:
        assert (await upload(client, single(1), KEY)).status_code == 202

    async def after(collector: Collector, client: httpx.AsyncClient) -> None:
        assert (await upload(client, single(2))).status_code == 202
        for day in range(60, 67):
            clock.days = day
            collector.maintain_store()
            assert stored(collector) == {NOW: 1, NOW + timedelta(days=60): 1}
        clock.days = 67
        collector.maintain_store()
        assert stored(collector) == {NOW + timedelta(days=60): 1}
        assert (await upload(client, single(1), KEY)).status_code == 202, "its key is forgotten"
        assert stored(collector)[NOW + timedelta(days=67)] == 1

    collect(tmp_path, before, keep_days=30)
    clock.days = 60
    collect(tmp_path, after, keep_days=30)


def test_a_clock_that_is_wrong_after_a_pause_deletes_and_forgets_nothing(
    tmp_path: Path, clock: Clock
) -> None:
    """A machine that was off for a long weekend does not trust its clock yet."""

    async def before(collector: Collector, client: httpx.AsyncClient) -> None:
        assert (await upload(client, single(1), KEY)).status_code == 202

    async def after(collector: Collector, client: httpx.AsyncClient) -> None:
        for days in (64, 3):
            clock.days = days
            collector.maintain_store()
        assert (await upload(client, single(1), KEY)).status_code == 202
        assert stored(collector) == {NOW: 1}, "nothing was deleted, and the key is known"

    collect(tmp_path, before, keep_days=30)
    clock.days = 3
    collect(tmp_path, after, keep_days=30)


def test_an_operator_may_accept_the_clock_at_once(tmp_path: Path, clock: Clock) -> None:
    async def scenario(collector: Collector, client: httpx.AsyncClient) -> None:
        assert (await upload(client, single(1), KEY)).status_code == 202
        clock.days = 60
        collector.maintain_store()
        assert stored(collector) == {NOW: 1}
        collector.store.accept_clock()
        collector.maintain_store()
        assert stored(collector) == {}

    collect(tmp_path, scenario, keep_days=30)


def test_a_clock_that_is_behind_does_not_make_new_reports_old(tmp_path: Path, clock: Clock) -> None:
    """Reports filed under an earlier day would be deleted, and counted again when retried."""

    async def scenario(collector: Collector, client: httpx.AsyncClient) -> None:
        clock.days = -60
        assert (await upload(client, single(1), KEY)).status_code == 202
        collector.maintain_store()
        assert days_ahead((await client.get("/metrics")).text) == -60
        clock.days = 0
        collector.maintain_store()
        assert (await upload(client, single(1), KEY)).status_code == 202
        assert stored(collector) == {NOW: 1}

    collect(tmp_path, scenario, keep_days=30)


def test_a_survey_is_not_over_because_the_clock_says_so(tmp_path: Path, clock: Clock) -> None:
    """A client whose report is refused with 410 drops it for good."""

    async def scenario(collector: Collector, client: httpx.AsyncClient) -> None:
        ends = (SURVEY.expires - NOW).days
        clock.days = ends + 60
        assert (await upload(client, single(1))).status_code == 202
        collector.store.accept_clock()
        collector.maintain_store()
        assert (await upload(client, single(2))).status_code == 410

    collect(tmp_path, scenario)


def test_a_collector_starts_although_the_clock_says_that_its_survey_is_over(
    tmp_path: Path, clock: Clock
) -> None:
    async def nothing(collector: Collector, client: httpx.AsyncClient) -> None:
        pass

    async def scenario(collector: Collector, client: httpx.AsyncClient) -> None:
        assert (await upload(client, single(1))).status_code == 202

    collect(tmp_path, nothing)
    clock.days = (SURVEY.expires - NOW).days + 60
    collect(tmp_path, scenario)


def test_reports_of_surveys_that_have_ended_are_still_maintained(
    tmp_path: Path, clock: Clock
) -> None:
    """Analysts read them, and they are deleted when they are old; without them, nothing starts."""
    clock.days = (SURVEY.expires - NOW).days

    async def last_day(collector: Collector, client: httpx.AsyncClient) -> None:
        assert (await upload(client, single(1))).status_code == 202

    async def over(collector: Collector, client: httpx.AsyncClient) -> None:
        assert (await upload(client, single(2))).status_code == 410
        assert sum(stored(collector).values()) == 1
        clock.days += 30
        collector.store.accept_clock()
        collector.maintain_store()
        assert stored(collector) == {}

    collect(tmp_path, last_day, keep_days=30)
    clock.days += 2
    with deniable.store.open(tmp_path / "reports.db") as store:
        store.accept_clock()
    collect(tmp_path, over, keep_days=30)
    with pytest.raises(InputError, match="every survey has ended"):
        collect(tmp_path, over, keep_days=30)
