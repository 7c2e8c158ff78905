"""The ledger: what this person has spent on each survey, and the refusal to spend more.

It recognises a repeated value. Every report is charged its ε once, but all reports that share one
permanent noise together are never charged above ε for ever: that is all they can tell. They are
recognised by a fingerprint keyed with the client's secret of exactly what that noise was derived
from, so a changed value, a changed parameter, another slot or a new secret is a new spend. Where
there is no permanent noise (f = 0) every report is charged in full.

Charging min(Σ once, for ever) is right: with x the log-likelihood ratio of a report about a
permanent bit, what it tells about the true bit is 2·atanh(c·tanh(x/2)), c = 1−f, concave in x, so
reports of one permanent bit tell at most the sum of what each tells alone, and at most
2·atanh(c) = ln((1−f/2)/(f/2)).

The budget spans all versions of a survey's name. Amounts are whole billionths of a nat, rounded up.
The file is replaced whole, synced, before the report exists; a process killed in between has paid
for a report that was never sent, never the other way round.
"""

from __future__ import annotations

import json
from _thread import allocate_lock
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deniable.client.files import locked, replace_private
from deniable.errors import BudgetExceeded, LedgerError
from deniable.privacy import NANO

if TYPE_CHECKING:
    from pathlib import Path

FORMAT = "deniable-ledger/1"


@dataclass(frozen=True)
class Charge:
    """One slot's report: whose noise it shares, and what it costs."""

    noise: str
    """Fingerprint of the permanent noise, or the slot's name where there is none."""
    per_report: int
    in_total: int | None


@dataclass
class _Entry:
    """The reports that share one noise: the sum of their charges, and its limit if it has one."""

    charged: int
    limit: int | None

    @property
    def cost(self) -> int:
        return self.charged if self.limit is None else min(self.charged, self.limit)


Book = dict[str, dict[str, _Entry]]  # survey name → noise → entry


class Ledger:
    """In the file at `path`, or in memory only when that is None.

    >>> ledger = Ledger()
    >>> ledger.charge("homepages", 3_000_000_000, [Charge("full", 2_000_000_000, None)])
    >>> ledger.spent("homepages")
    2.0
    """

    def __init__(self, path: str | Path | None = None) -> None:
        from pathlib import Path

        self.path = None if path is None else Path(path)
        self._memory: Book = {}
        self._lock = allocate_lock()

    def spent(self, survey: str) -> float:
        """What was spent on this survey's name so far, in nats."""
        return _cost(self._read().get(survey, {})) / NANO

    def charge(self, survey: str, budget: int, charges: Sequence[Charge]) -> None:
        """Spend, or raise BudgetExceeded and change nothing."""
        if type(budget) is not int:
            raise LedgerError(f"expected a whole budget, got {budget!r}")
        if self.path is None:
            with self._lock:
                _spend(self._memory, survey, budget, charges)
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with locked(self.path):
            book = self._read()
            _spend(book, survey, budget, charges)
            replace_private(self.path, _written(book))

    def _read(self) -> Book:
        if self.path is None:
            return self._memory
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise LedgerError(f"cannot read the ledger {self.path}: {error}") from None
        try:
            return _parsed(json.loads(data))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise LedgerError(
                f"{self.path} is not a ledger ({error}): what was spent is not known, so nothing "
                "is sent; restore it from a backup"
            ) from None


def _spend(book: Book, survey: str, budget: int, charges: Sequence[Charge]) -> None:
    page = book.setdefault(survey, {})
    before = _cost(page)
    extra = 0
    new: dict[str, _Entry] = {}
    for charge in charges:
        old = new.get(charge.noise) or page.get(charge.noise) or _Entry(0, charge.in_total)
        entry = _Entry(old.charged + charge.per_report, _larger(old.limit, charge.in_total))
        extra += entry.cost - old.cost
        new[charge.noise] = entry
    if before + extra > budget:
        raise BudgetExceeded(
            f"survey {survey!r}: this answer costs ε = {extra / NANO:.9f}, "
            f"{before / NANO:.9f} of the budget {budget / NANO:.9f} is spent; nothing was sent"
        )
    page.update(new)


def _larger(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else max(a, b)


def _cost(page: dict[str, _Entry]) -> int:
    return sum(entry.cost for entry in page.values())


def _written(book: Book) -> bytes:
    pages = {
        survey: {noise: [entry.charged, entry.limit] for noise, entry in page.items()}
        for survey, page in book.items()
    }
    return json.dumps({"format": FORMAT, "surveys": pages}, separators=(",", ":")).encode()


def _parsed(data: Any) -> Book:
    if data["format"] != FORMAT:
        raise ValueError(f"format {data['format']!r}, expected {FORMAT!r}")
    book: Book = {}
    for survey, page in data["surveys"].items():
        book[survey] = {}
        for noise, (charged, limit) in page.items():
            amounts = (charged,) if limit is None else (charged, limit)
            if any(type(x) is not int or x < 0 for x in amounts):
                raise ValueError(f"an entry of {survey!r} is {[charged, limit]}")
            book[survey][noise] = _Entry(charged, limit)
    return book
