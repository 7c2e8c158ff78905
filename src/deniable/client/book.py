"""What a ledger holds in memory and in its file: one account per survey name.

The file is JSON in UTF-8. Readers ignore keys at the top level that they do not know, so older
releases read what this one writes; they do not keep `owners` and `reserved` when they write.
"""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import dataclass, field
from typing import Any

FORMAT = "deniable-ledger/1"
MAX_AMOUNT = 10**310
"""Largest amount that a file may have: above every budget, and small enough to show as ε."""


@dataclass
class Entry:
    """All reports with the same noise: the sum of their charges, and its limit or None."""

    charged: int
    limit: int | None

    @property
    def spent(self) -> int:
        """Loss of all these reports in billionths of a nat."""
        return self.charged if self.limit is None else min(self.charged, self.limit)


Entries = dict[str, Entry]
"""Entries of one survey by name of the permanent noise."""


@dataclass
class Account:
    """All entries of one survey, and what else is remembered about it.

    Parameters
    ----------
    entries : dict
        Entries by name of the permanent noise.
    budget : int or None
        Budget at the last charge; None if an older release wrote the file.
    reports : int or None
        Number of charged reports; None if unknown.
    owner : str or None
        Owner of the survey that was answered last; None if unknown.
    reserved : list of pairs
        Amounts that were set aside for this survey, each with its day.
    """

    entries: Entries = field(default_factory=dict)
    budget: int | None = None
    reports: int | None = None
    owner: str | None = None
    reserved: list[tuple[dt.date, int]] = field(default_factory=list)

    @property
    def spent(self) -> int:
        """Loss on this survey in billionths of a nat."""
        return sum(entry.spent for entry in self.entries.values())

    @property
    def set_aside(self) -> int:
        """Sum of the reservations in billionths of a nat."""
        return sum(amount for _, amount in self.reserved)

    def reserve(self, amount: int, today: dt.date) -> None:
        """Set aside at least this amount in total."""
        if (extra := amount - self.set_aside) > 0:
            self.reserved.append((today, extra))


Book = dict[str, Account]
"""Accounts by survey name."""


def to_json(book: Book) -> bytes:
    """Return the contents of the file."""
    data = {
        "format": FORMAT,
        "surveys": {
            survey: {
                noise: [entry.charged, entry.limit] for noise, entry in account.entries.items()
            }
            for survey, account in book.items()
        },
        "history": {survey: [account.budget, account.reports] for survey, account in book.items()},
        "owners": {survey: a.owner for survey, a in book.items() if a.owner is not None},
        "reserved": {
            survey: [[day.isoformat(), amount] for day, amount in account.reserved]
            for survey, account in book.items()
        },
    }
    return json.dumps(data, separators=(",", ":")).encode()


def from_json(data: bytes, today: dt.date) -> Book:
    """Return the book in the contents of a file, after checking everything.

    An account without reservations was written by an older release. Its budget, as far as known, is
    taken as reserved today, which is too late rather than too early.
    """
    raw = json.loads(data.decode(), object_pairs_hook=_without_repetition)
    if raw["format"] != FORMAT:
        raise ValueError(f"its format is {raw['format']!r}, not {FORMAT!r}")
    book: Book = {}
    history, owners, reserved = (raw.get(key, {}) for key in ("history", "owners", "reserved"))
    for survey, entries in raw["surveys"].items():
        budget, reports = history.get(survey, (None, None))
        _check_amounts(survey, budget, reports)
        owner = owners.get(survey)
        if owner is not None and type(owner) is not str:
            raise ValueError(f"the owner of {survey!r} is {owner!r:.80}")
        account = book[survey] = Account({}, budget, reports, owner)
        for noise_id, (charged, limit) in entries.items():
            if charged is None:
                raise ValueError(f"an entry of {survey!r} is {[charged, limit]}")
            _check_amounts(survey, charged, limit)
            account.entries[noise_id] = Entry(charged, limit)
        for day, amount in reserved.get(survey, ()):
            if amount is None:
                raise ValueError(f"a reservation of {survey!r} has no amount")
            _check_amounts(survey, amount)
            account.reserved.append((dt.date.fromisoformat(day), amount))
        account.reserve(max(budget or 0, account.spent), today)
    return book


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object; raise ValueError if it has a key twice, since one would be lost."""
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a key is repeated")
    return made


def _check_amounts(survey: str, *amounts: object) -> None:
    """Raise ValueError unless each amount is None or an integer from 0 to MAX_AMOUNT."""
    if any(x is not None and (type(x) is not int or not 0 <= x <= MAX_AMOUNT) for x in amounts):
        raise ValueError(f"an entry of {survey!r} is {list(amounts)!s:.80}")
