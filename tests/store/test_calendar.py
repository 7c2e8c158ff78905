"""Test that no clock, however wrong, makes a store seem older than it is."""

from __future__ import annotations

import random
import shutil
from datetime import date, timedelta
from pathlib import Path

import pytest

import deniable.store
from deniable.client.outbox import RETRY_PERIOD
from deniable.collector.settings import Settings
from deniable.errors import StoreError
from deniable.store import calendar
from deniable.store.calendar import MAX_STEP, SETTLING_DAYS, Calendar, today
from tests.uploads import DAY, MARKS, upload

STORES = Path(__file__).parents[1] / "golden" / "stores"
"""Stores that an earlier version wrote."""


def after(days: int) -> date:
    return DAY + timedelta(days=days)


def test_days_follow_one_another() -> None:
    seen = Calendar(DAY)
    for day in (0, 1, 1, 2, 3):
        seen = seen.observe(after(day))
    assert seen == Calendar(after(3))
    assert seen.warning(after(4)) is None and seen.days_ahead(after(4)) == 0


def test_a_leap_is_not_trusted_until_the_clock_has_gone_on_from_there() -> None:
    seen = Calendar(DAY).observe(after(60))
    assert seen == Calendar(DAY, leap=after(60))
    assert seen.days_ahead(after(60)) == 60
    warning = seen.warning(after(61))
    assert warning and f"until {after(60 + SETTLING_DAYS)}, nothing more is deleted" in warning
    for day in range(61, 60 + SETTLING_DAYS):
        seen = seen.observe(after(day))
        assert seen.latest == DAY
    assert seen.observe(after(60 + SETTLING_DAYS)) == Calendar(after(60 + SETTLING_DAYS))


def test_a_leap_that_passes_leaves_nothing_behind() -> None:
    """A second leap, however far, has to be observed from its own beginning."""
    seen = Calendar(DAY).observe(after(60)).observe(after(0))
    assert seen == Calendar(DAY)
    seen = seen.observe(after(60 + SETTLING_DAYS))
    assert seen.latest == DAY
    assert seen.observe(after(40)) == Calendar(DAY, leap=after(40)), "the clock went back"


def test_a_clock_that_goes_back_changes_nothing_and_is_mentioned() -> None:
    seen = Calendar(DAY).observe(after(-400))
    assert seen == Calendar(DAY) and seen.days_ahead(after(-400)) == -400
    warning = seen.warning(after(-400))
    assert warning and f"reports that arrive now count for {DAY}" in warning


@pytest.mark.parametrize("seed", range(20))
def test_no_short_error_moves_the_latest_day(seed: int) -> None:
    """The clock is right on most days, and wrong for hours at a time, as often as it likes."""
    rng, seen = random.Random(seed), Calendar(DAY)
    for hour in range(24 * 40):
        now = after(hour // 24)
        if rng.random() < 0.3:
            seen = seen.observe(after(rng.randrange(-500, 500)))
        seen = seen.observe(now)
        assert now <= seen.latest <= now + timedelta(days=1)


def test_text_holds_the_whole_calendar() -> None:
    for seen in (Calendar(DAY), Calendar(DAY, after(60))):
        assert Calendar.from_text(seen.to_text()) == seen
    for damaged in ("", "2025-03-0q", "2025-03-09 2025-03-10 2025-03-11"):
        with pytest.raises(StoreError, match="store accept STORE --clock"):
            Calendar.from_text(damaged)


def test_keys_outlive_the_retries_of_clients() -> None:
    """Whatever leaps: the key of an upload is kept for longer than its client sends it again."""
    keep_days = min(Settings().key_days, SETTLING_DAYS)
    # Of keep_days days, the first may have begun just before its midnight.
    assert timedelta(seconds=RETRY_PERIOD) <= timedelta(days=keep_days) - MAX_STEP


# --- in a store ----------------------------------------------------------------------------------


def test_a_store_remembers_the_days_it_has_seen(url: str) -> None:
    now = today()
    with deniable.store.open(url, create=True) as store:
        assert store.calendar() == Calendar(now)
        leapt = store.observe_day(now + timedelta(days=60))
        assert leapt == Calendar(now, now + timedelta(days=60))
    with deniable.store.open(url) as store:
        assert store.calendar() == leapt
        assert store.observe_day(now + timedelta(days=1)).latest == now + timedelta(days=1)
        assert store.observe_day(now - timedelta(days=90)).latest == now + timedelta(days=1)
        assert store.accept_clock(now - timedelta(days=90)).latest == now - timedelta(days=90)
        assert store.calendar() == Calendar(now - timedelta(days=90))


def test_a_backup_has_the_calendar_of_its_store(url: str, tmp_path: Path) -> None:
    to = tmp_path / ("copy.db" if url.startswith(("sqlite:", "postgresql:")) else "copy")
    with deniable.store.open(url, create=True) as store:
        store.accept_clock(DAY)
        store.backup(to)
    with deniable.store.open(to) as copy:
        assert copy.calendar() == Calendar(DAY)


@pytest.mark.parametrize("name", ["habits.db", "habits"])
def test_a_store_of_an_earlier_version_starts_from_its_latest_report(
    name: str, tmp_path: Path
) -> None:
    """It is not known when it was used last: a wrong clock must not be the first to say."""
    shutil.copytree(STORES, tmp_path / "stores")
    with deniable.store.open(tmp_path / "stores" / name) as store:
        (survey,) = store.surveys()
        latest = max(store.days(survey))
        assert store.observe_day(latest + timedelta(days=60)).latest == latest
        assert store.observe_day(latest + timedelta(days=1)).latest == latest + timedelta(days=1)


def test_a_store_of_an_earlier_version_does_not_start_in_the_future(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(STORES, tmp_path / "stores")
    monkeypatch.setattr(calendar, "today", lambda: date(2020, 1, 1))
    for name in ("habits.db", "habits"):
        with deniable.store.open(tmp_path / "stores" / name) as store:
            assert store.calendar().latest == date(2020, 1, 1)


def test_a_damaged_calendar_is_said_and_can_be_replaced(tmp_path: Path) -> None:
    from deniable.store.sql.database import write_setting
    from deniable.store.sql.sqlite import SqliteStore

    with SqliteStore(str(tmp_path / "reports.db"), create=True) as store:
        store.add_survey(MARKS)
        store.append([upload()])
        store._write(lambda db: write_setting(db, "calendar", "2025-03-0\x19"))
        with pytest.raises(StoreError, match="record of days is damaged"):
            store.observe_day()
        assert store.accept_clock(DAY) == store.calendar() == Calendar(DAY)
