"""Test a collector whose clock is wrong: nothing is deleted, forgotten, refused or misfiled."""

from __future__ import annotations

import logging
from datetime import date, timedelta
from pathlib import Path

import httpx
import pytest

from deniable.collector.app import Collector
from deniable.errors import InputError
from deniable.store import clock
from tests.collecting import collect, upload
from tests.faults.crowd import SURVEY, single

NOW = date(2026, 11, 18)
LAST = (SURVEY.expires - NOW).days
KEY = f"{1:032x}"


class Clock:
    """A clock that is so many days ahead of NOW."""

    days = 0


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Clock:
    shown = Clock()
    monkeypatch.setattr(clock, "today", lambda: NOW + timedelta(days=shown.days))
    return shown


def stored(collector: Collector) -> dict[int, int]:
    """Return every report, by days after NOW, including those that are not shuffled yet."""
    collector.store.compacted_only = False
    return {(day - NOW).days: count for day, count in collector.store.days(SURVEY).items()}


async def doubted(client: httpx.AsyncClient) -> bool:
    lines = (await client.get("/metrics")).text.splitlines()
    return "deniable_clock_doubted 1" in lines


async def nothing(collector: Collector, client: httpx.AsyncClient) -> None:
    pass


def test_a_clock_at_1970_for_an_hour_changes_nothing(tmp_path: Path, shown: Clock) -> None:
    async def scenario(collector: Collector, client: httpx.AsyncClient) -> None:
        assert (await upload(client, single(1), KEY)).status_code == 202
        shown.days = (date(1970, 1, 1) - NOW).days
        for _ in range(6):
            assert (await upload(client, single(2), f"{2:032x}")).status_code == 202
            collector.maintain_store()
        assert await doubted(client)
        shown.days = 0
        collector.maintain_store()
        assert not await doubted(client)
        assert (await upload(client, single(1), KEY)).status_code == 202
        assert stored(collector) == {0: 2}, "filed under the last day, and repeats are recognised"

    collect(tmp_path, scenario, keep_days=30)


def test_a_clock_a_year_ahead_for_a_week_changes_nothing(
    tmp_path: Path, shown: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(collector: Collector, client: httpx.AsyncClient) -> None:
        assert (await upload(client, single(1), KEY)).status_code == 202
        for hour in range(24 * 7):
            shown.days = 365 + hour // 24
            collector.maintain_store()
        assert (await upload(client, single(2))).status_code == 202
        assert await doubted(client)
        shown.days = 7
        collector.maintain_store()
        assert (await upload(client, single(1), KEY)).status_code == 202
        assert stored(collector) == {0: 2}
        shown.days = 8
        collector.maintain_store()
        assert (await upload(client, single(1), KEY)).status_code == 202
        assert stored(collector) == {0: 2, 8: 1}, "a week later its key is forgotten"

    with caplog.at_level(logging.WARNING, "deniable.collector"):
        collect(tmp_path, scenario, keep_days=30)
    warnings = [text for text in caplog.messages if "the clock shows" in text]
    assert len(warnings) == 7, "once a day"
    assert all("--clock-is-right" in text for text in warnings)


def test_a_collector_that_was_off_for_two_months(tmp_path: Path, shown: Clock) -> None:
    """Its clock is trusted when the operator says so, at the next start."""

    async def before(collector: Collector, client: httpx.AsyncClient) -> None:
        assert (await upload(client, single(1), KEY)).status_code == 202

    async def doubting(collector: Collector, client: httpx.AsyncClient) -> None:
        for shown.days in range(61, 70):
            collector.maintain_store()
        assert (await upload(client, single(2))).status_code == 202
        assert (await upload(client, single(1), KEY)).status_code == 202
        assert stored(collector) == {0: 2} and await doubted(client)

    async def confirmed(collector: Collector, client: httpx.AsyncClient) -> None:
        assert not await doubted(client)
        assert (await upload(client, single(3))).status_code == 202
        collector.maintain_store()
        assert stored(collector) == {69: 1}

    collect(tmp_path, before, keep_days=30)
    shown.days = 61
    collect(tmp_path, doubting, keep_days=30)
    collect(tmp_path, confirmed, keep_days=30, clock_is_right=True)
    shown.days = 70
    collect(tmp_path, nothing, keep_days=30)


def test_a_clock_that_was_ahead_when_the_collector_started(tmp_path: Path, shown: Clock) -> None:
    """The option sets the last day back, too."""

    async def scenario(collector: Collector, client: httpx.AsyncClient) -> None:
        assert not await doubted(client)
        assert (await upload(client, single(1))).status_code == 202
        assert stored(collector) == {0: 1}

    shown.days = 20
    collect(tmp_path, nothing)
    shown.days = 0
    collect(tmp_path, scenario, clock_is_right=True)


def test_the_reports_of_a_survey_that_has_ended_are_deleted_when_they_are_old(
    tmp_path: Path, shown: Clock
) -> None:
    """The last day moves on without reports, and the collector may be restarted meanwhile."""

    async def last_day(collector: Collector, client: httpx.AsyncClient) -> None:
        assert (await upload(client, single(1))).status_code == 202

    async def over(collector: Collector, client: httpx.AsyncClient) -> None:
        assert (await upload(client, single(2))).status_code == 410
        for shown.days in range(LAST + 2, LAST + 31):
            collector._move_day()
            collector.maintain_store()
            assert stored(collector) == {LAST: 1}

    async def old(collector: Collector, client: httpx.AsyncClient) -> None:
        assert not await doubted(client)
        collector.maintain_store()
        assert stored(collector) == {}

    shown.days = LAST
    collect(tmp_path, last_day, keep_days=30)
    shown.days = LAST + 2
    collect(tmp_path, over, keep_days=30)
    shown.days = LAST + 31
    collect(tmp_path, old, keep_days=30)
    with pytest.raises(InputError, match="every survey has ended"):
        collect(tmp_path, old, keep_days=30)


def test_a_survey_is_not_over_because_the_clock_says_so(tmp_path: Path, shown: Clock) -> None:
    """A client whose report is refused with 410 drops it for good; the start is not refused."""

    async def accepted(collector: Collector, client: httpx.AsyncClient) -> None:
        assert (await upload(client, single(1))).status_code == 202

    collect(tmp_path, nothing)
    shown.days = LAST + 60
    collect(tmp_path, accepted)

    async def refused(collector: Collector, client: httpx.AsyncClient) -> None:
        assert (await upload(client, single(2))).status_code == 410

    collect(tmp_path, refused, clock_is_right=True)
