"""The day that counts: today's, unless the clock looks wrong.

A wrong clock may cost nothing. A store therefore keeps the last day on which a collector used it,
and a running collector moves this day on, with or without reports. If the clock is behind that day
or far ahead of it, that day counts: reports are filed under it, nothing is deleted because of its
age, no idempotency key is forgotten, and no survey is over.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import NamedTuple

from deniable.formatting import counted

MAX_DAYS_AHEAD = 30
"""A clock that is further ahead is not trusted: a collector that was off for so long is rare."""
ADVICE = "if the clock is right, restart the collector with --clock-is-right"


class Today(NamedTuple):
    """The day that counts, and why the clock is not trusted; empty if it is."""

    day: date
    doubt: str = ""


def today() -> date:
    """Return the current day in UTC, which does not reveal a time zone."""
    return datetime.now(UTC).date()


def day_that_counts(shown: date, stored: str | None) -> Today:
    """Return the day that counts when the clock shows a day.

    stored : last day on which a collector used the store, as text; None if none ever did
    """
    try:
        last = shown if stored is None else date.fromisoformat(stored)
    except ValueError:
        return Today(shown, f"the store's last day is damaged ({stored!r:.40}); {ADVICE}")
    ahead = (shown - last).days
    if 0 <= ahead <= MAX_DAYS_AHEAD:
        return Today(shown)
    where = f"{counted(abs(ahead), 'day')} {'after' if ahead > 0 else 'before'} {last}"
    doubt = (
        f"the clock shows {shown}, {where}, when a collector last used the store: reports count "
        f"for {last}, nothing is deleted because of its age, and no survey is over; {ADVICE}"
    )
    return Today(last, doubt)
