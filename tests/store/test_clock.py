"""The day that counts, for any clock, and the last day of a store."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import pytest

import deniable.store
from deniable.client.outbox import RETRY_PERIOD
from deniable.collector.settings import MIN_KEY_DAYS
from deniable.store import clock
from deniable.store.clock import MAX_DAYS_AHEAD, Today, day_that_counts
from tests.uploads import DAY


def after(days: int) -> date:
    return DAY + timedelta(days=days)


def test_the_clock_counts_unless_it_is_behind_or_far_ahead() -> None:
    for days in (0, 1, MAX_DAYS_AHEAD):
        assert day_that_counts(after(days), str(DAY)) == Today(after(days))
    for days, said in ((-1, "1 day before"), (MAX_DAYS_AHEAD + 1, "31 days after")):
        day, doubt = day_that_counts(after(days), str(DAY))
        assert day == DAY
        assert f"{said} {DAY}" in doubt and doubt.endswith("with --clock-is-right")


def test_a_store_that_no_collector_used_trusts_the_clock() -> None:
    assert day_that_counts(date.min, None) == Today(date.min)


def test_days_at_both_ends_of_time_are_no_error() -> None:
    assert day_that_counts(date.max, str(date.min)).doubt
    assert day_that_counts(date.min, str(date.max)).day == date.max


@pytest.mark.parametrize("stored", ["", "2025-03-0\x19", "2025-03-09 2025-03-10"])
def test_with_a_damaged_last_day_the_clock_counts_and_is_not_trusted(stored: str) -> None:
    day, doubt = day_that_counts(DAY, stored)
    assert day == DAY
    assert "is damaged" in doubt and "--clock-is-right" in doubt


def test_keys_outlive_the_retries_of_clients() -> None:
    """Of the days for which a key is kept, the first may have begun just before its midnight."""
    assert timedelta(seconds=RETRY_PERIOD) <= timedelta(days=MIN_KEY_DAYS - 1)


def test_a_store_keeps_the_last_day_and_a_backup_has_it(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = [DAY]
    monkeypatch.setattr(clock, "today", lambda: shown[-1])
    with deniable.store.open(url, create=True) as store:
        assert store.today() == Today(DAY)
        shown.append(after(200))
        assert store.today() == Today(after(200)), "no collector has used the store"
        shown.append(DAY)
        assert store.move_day() == str(DAY)
        shown.append(after(2))
        assert store.move_day() == str(after(2))
        for day in (after(1), after(60)):
            shown.append(day)
            assert store.move_day() == str(after(2))
            assert store.today().doubt
        store.backup(tmp_path / "copy.db")
    with deniable.store.open(tmp_path / "copy.db") as copy:
        assert copy.today().day == after(2)
        assert copy.move_day(clock_is_right=True) == str(after(60))
        shown.append(after(61))
        assert copy.today() == Today(after(61))
