"""The budget of a device: a limit of ε over all surveys, in total and per period.

At its first answer a survey reserves its whole budget, whatever the answer is. A refusal therefore
depends only on which surveys were answered on which days, and reveals nothing about any answer.
Limits per period apply besides the total, never instead of it: a clock can be wrong.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field

from deniable.client.book import Book
from deniable.errors import DeviceBudgetExceeded, InputError, check_integer, check_number
from deniable.privacy import NANO, nanonats_down

MAX_DAYS = 36_500


@dataclass(frozen=True)
class DeviceBudget:
    """Limits of what all surveys together may spend on one device.

    Parameters
    ----------
    total : float or None, default None
        Maximum ε in nats over all surveys, for ever; None means no limit.
    per_days : mapping of int to float, optional
        Further limits: from a number of days to the maximum ε of surveys that are answered for the
        first time within so many days.

    Raises
    ------
    InputError
        If a limit is not positive, or if there are limits per period without a total.

    Examples
    --------
    >>> DeviceBudget(10.0, {30: 4.0}).total
    10.0
    """

    total: float | None = None
    per_days: Mapping[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.per_days, Mapping):
            raise InputError(
                "per_days must be a mapping from days to ε, such as {30: 4.0}, not "
                f"{self.per_days!r:.80}"
            )
        if self.per_days and self.total is None:
            raise InputError(
                "per_days needs a device_budget: a limit per period does not bound the total"
            )
        for days in self.per_days:
            check_integer("the days of per_days", days, 1, MAX_DAYS)
        for name, epsilon in (("device_budget", self.total), *self.per_days.items()):
            if epsilon is None:
                continue
            where = name if name == "device_budget" else f"per_days[{name}]"
            check_number(where, epsilon)
            if not 0 < epsilon < 1e300:
                raise InputError(f"{where} must be a number of nats above 0, not {epsilon!r:.80}")

    def check(self, book: Book, survey: str, extra: int, today: dt.date) -> None:
        """Raise DeviceBudgetExceeded if a survey may not reserve `extra` billionths of a nat."""
        reserved = [pair for account in book.values() for pair in account.reserved]
        before = sum(amount for _, amount in reserved)
        if self.total is not None and before + extra > nanonats_down(self.total):
            raise _exceeded(survey, extra, before, self.total, "in total")
        for days, limit in self.per_days.items() if extra > 0 else ():
            first = today - dt.timedelta(days=days - 1)
            before = sum(amount for day, amount in reserved if day >= first)
            if before + extra > nanonats_down(limit):
                raise _exceeded(survey, extra, before, limit, f"within {days} days")


def _exceeded(
    survey: str, extra: int, before: int, limit: float, period: str
) -> DeviceBudgetExceeded:
    """Return the error; it says nothing that depends on an answer."""
    return DeviceBudgetExceeded(
        f"survey {survey!r} would reserve ε = {extra / NANO:.4g}, but other surveys on this device "
        f"have reserved {before / NANO:.4g} of the {limit:g} that its program allows {period}: no "
        "report was made"
    )
