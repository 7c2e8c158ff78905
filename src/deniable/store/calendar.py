"""The days that a store has seen, from which the age of reports and of keys is counted.

A clock that is wrong for a moment must not delete anything. A store therefore records the latest
day that it trusts, and what depends on age uses that day instead of the clock:

* Each day follows the one before. A clock that is further ahead has *jumped*: the days that it
  shows are noted but not trusted.
* Such a day is trusted after `SETTLING_DAYS` later days were noted, each later than the one before,
  or at once if the operator says so. A store that was switched off for months then goes on by
  itself. Clients give up a retry sooner than that, so no key is forgotten while its upload may come
  again.
* A clock that goes back changes nothing: the latest day stays, and noted days that lie ahead of the
  clock are dropped. No error of the clock that passes is therefore ever trusted.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import reduce

from deniable.errors import StoreError
from deniable.formatting import counted

MAX_STEP = timedelta(days=1)
"""Largest step from the latest day that needs no confirmation."""
SETTLING_DAYS = 7
"""Number of later days that must be noted after a jump of the clock until it is trusted."""


def today() -> date:
    """Return the current day in UTC, which does not reveal a time zone."""
    return datetime.now(UTC).date()


@dataclass(frozen=True)
class Calendar:
    """The days that a store has seen.

    Parameters
    ----------
    latest : date
        Latest day that is trusted. The age of reports and keys is counted from it.
    untrusted : tuple of date, default ()
        Days that the clock has shown after a jump, in rising order, at most `SETTLING_DAYS`.

    Examples
    --------
    >>> from datetime import date
    >>> calendar = Calendar(date(2025, 3, 9)).observe(date(2025, 3, 10))
    >>> calendar.observe(date(2025, 5, 9)).latest
    datetime.date(2025, 3, 10)
    """

    latest: date
    untrusted: tuple[date, ...] = ()

    def observe(self, day: date) -> Calendar:
        """Return the calendar after the clock has shown this day."""
        if day - self.latest <= MAX_STEP:
            return Calendar(max(self.latest, day))
        noted = (*(earlier for earlier in self.untrusted if earlier < day), day)
        if len(noted) <= SETTLING_DAYS:
            return Calendar(self.latest, noted)
        first, *later = noted
        return reduce(Calendar.observe, later, Calendar(first))

    def days_ahead(self, day: date) -> int:
        """Return by how many days the clock is ahead of the calendar; 0 if it is trusted.

        The number is negative if the clock is behind.
        """
        ahead = day - self.latest
        return 0 if abs(ahead) <= MAX_STEP else ahead.days

    def warning(self, day: date) -> str | None:
        """Return what to tell the operator if the clock, which shows this day, is not trusted."""
        ahead = self.days_ahead(day)
        if not ahead:
            return None
        where = "after" if ahead > 0 else "before"
        text = (
            f"the clock shows {day}, {counted(abs(ahead), 'day')} {where} the latest day of the "
            f"store, {self.latest}: "
        )
        if ahead > 0:
            missing = SETTLING_DAYS - sum(noted < day for noted in self.untrusted)
            text += (
                "nothing more is deleted because of its age, and no idempotency key is forgotten, "
                f"until the store has been used on {counted(max(1, missing), 'more day')}; if the "
                "clock is right, "
            )
        else:
            text += f"reports that arrive now count for {self.latest}; if the clock is right, "
        return f"{text}run deniable store accept STORE --clock"

    def to_text(self) -> str:
        """Return the calendar as text: the latest day, then those that are not trusted."""
        return " ".join(day.isoformat() for day in (self.latest, *self.untrusted))

    @classmethod
    def from_text(cls, text: str) -> Calendar:
        """Return the calendar that `to_text` wrote; raise StoreError if the text is damaged."""
        try:
            latest, *untrusted = map(date.fromisoformat, text.split())
            return cls(latest, tuple(untrusted))
        except ValueError:
            raise StoreError(
                f"the store's record of days is damaged: {text!r:.40}; if the clock is right, run "
                "deniable store accept STORE --clock"
            ) from None

    @classmethod
    def starting(cls, known: date | None) -> Calendar:
        """Return the calendar of a store without one, given the latest day of its reports."""
        day = today()
        return cls(day if known is None else min(day, known))
