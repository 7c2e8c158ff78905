"""Test that no clock, however wrong, makes a store seem older than it is."""

from __future__ import annotations

import random
from datetime import date, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner

import deniable.store
from deniable.cli.app import app
from deniable.client.outbox import RETRY_PERIOD
from deniable.collector.settings import Settings
from deniable.errors import StoreError
from deniable.store.calendar import MAX_STEP, SETTLING_DAYS, Calendar, today
from tests.uploads import DAY, MARKS, upload


def after(days: int) -> date:
    return DAY + timedelta(days=days)


def test_days_follow_one_another() -> None:
    seen = Calendar(DAY)
    for day in (0, 1, 1, 2, 3):
        seen = seen.observe(after(day))
    assert seen == Calendar(after(3))
    assert seen.warning(after(4)) is None and seen.days_ahead(after(4)) == 0


def test_a_jump_is_not_trusted_until_the_clock_has_gone_on_from_there() -> None:
    seen = Calendar(DAY).observe(after(60))
    assert seen == Calendar(DAY, (after(60),))
    assert seen.days_ahead(after(60)) == 60
    for day, days in ((60, "7 more days"), (61, "6 more days")):
        warning = seen.observe(after(day)).warning(after(day))
        assert warning and f"until the store has been used on {days}" in warning
    for day in range(61, 60 + SETTLING_DAYS):
        seen = seen.observe(after(day))
        assert seen.latest == DAY
    assert seen.observe(after(60 + SETTLING_DAYS)) == Calendar(after(60 + SETTLING_DAYS))


def test_a_jump_that_passes_leaves_nothing_behind() -> None:
    """A second jump, however far, has to be observed from its own beginning."""
    seen = Calendar(DAY).observe(after(60)).observe(after(0))
    assert seen == Calendar(DAY)
    seen = seen.observe(after(60 + SETTLING_DAYS))
    assert seen.latest == DAY
    assert seen.observe(after(40)) == Calendar(DAY, (after(40),)), "the clock went back"


@pytest.mark.parametrize("errors", [(61,), (61, 68), (10, 61, 600)])
@pytest.mark.parametrize("days", range(3, 12))
def test_no_error_is_trusted_while_a_pause_is_not(days: int, errors: tuple[int, ...]) -> None:
    """The store was not used for three days; its clock is right again, and then wrong at times."""
    seen = Calendar(DAY)
    for day in range(3, days + 1):
        seen = seen.observe(after(day))
    for error in errors:
        seen = seen.observe(after(days + error))
    assert seen.latest <= after(days)
    for day in range(days, 14):
        seen = seen.observe(after(day))
    assert seen == Calendar(after(13)), "the pause is over"


@pytest.mark.parametrize("every", [2, 7, 30])
def test_a_store_that_is_rarely_used_goes_on_too(every: int) -> None:
    """Its latest day is then that of the seventh use before, never one that is yet to come."""
    seen = Calendar(DAY)
    for use in range(1, 30):
        seen = seen.observe(after(every * use))
        assert seen.latest == after(every * max(0, use - SETTLING_DAYS))
    assert seen.warning(after(every * 29))


def test_a_calendar_at_the_end_of_time_is_no_error() -> None:
    assert Calendar(date.max).observe(DAY) == Calendar(date.max)
    assert Calendar(DAY).warning(date.max)


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
    for seen in (Calendar(DAY), Calendar(DAY, (after(60),)), Calendar(DAY, (after(7), after(9)))):
        assert Calendar.from_text(seen.to_text()) == seen
    earlier_version = f"{DAY} {after(60)}"
    assert Calendar.from_text(earlier_version) == Calendar(DAY, (after(60),))
    for damaged in ("", "2025-03-0q", "2025-03-09 2025-03-1"):
        with pytest.raises(StoreError, match="store accept STORE --clock"):
            Calendar.from_text(damaged)


def test_keys_outlive_the_retries_of_clients() -> None:
    """Whatever the clock shows, a key is kept for longer than its upload is sent again."""
    keep_days = min(Settings().key_days, SETTLING_DAYS)
    # Of keep_days days, the first may have begun just before its midnight.
    assert timedelta(seconds=RETRY_PERIOD) <= timedelta(days=keep_days) - MAX_STEP


# --- in a store ----------------------------------------------------------------------------------


def test_a_store_remembers_the_days_it_has_seen(url: str) -> None:
    now = today()
    with deniable.store.open(url, create=True) as store:
        assert store.calendar() == Calendar(now)
        jumped = store.observe_day(now + timedelta(days=60))
        assert jumped == Calendar(now, (now + timedelta(days=60),))
    with deniable.store.open(url) as store:
        assert store.calendar() == jumped
        assert store.observe_day(now + timedelta(days=1)).latest == now + timedelta(days=1)
        assert store.observe_day(now - timedelta(days=90)).latest == now + timedelta(days=1)
        assert store.accept_clock(now - timedelta(days=90)).latest == now - timedelta(days=90)
        assert store.calendar() == Calendar(now - timedelta(days=90))


def test_a_backup_has_the_calendar_of_its_store(url: str, tmp_path: Path) -> None:
    to = tmp_path / "copy.db"
    with deniable.store.open(url, create=True) as store:
        store.accept_clock(DAY)
        store.backup(to)
    with deniable.store.open(to) as copy:
        assert copy.calendar() == Calendar(DAY)


class _Damaged(Calendar):
    """A calendar that is written with a flipped bit."""

    def to_text(self) -> str:
        return "2025-03-0\x19"


def test_a_damaged_calendar_is_said_and_can_be_replaced(url: str) -> None:
    with deniable.store.open(url, create=True) as store:
        store.add_survey(MARKS)
        store.append([upload()])
        store._write_calendar(_Damaged(DAY))
        with pytest.raises(StoreError, match="record of days is damaged"):
            store.observe_day()
        assert ["record of days is damaged" in problem for problem in store.check()] == [True]
        assert store.accept_clock(DAY) == store.calendar() == Calendar(DAY)
        assert store.check() == []


def test_a_store_at_the_end_of_time_is_compacted(tmp_path: Path) -> None:
    with deniable.store.open(path := tmp_path / "reports.db", create=True) as store:
        store.add_survey(MARKS)
        store.append([upload()])
        store.accept_clock(date.max)
    done = CliRunner().invoke(app, ["compact", str(path), "--keep-keys", "36500"])
    assert done.exit_code == 0 and "before the latest day of the store, 9999-12-31" in done.output
