"""The ledger: the privacy loss that a client has spent on each survey, and the limit of it.

The ledger recognises repeated values. Each report is charged its ε per report, but all reports with
the same permanent noise together are charged at most ε in total, which bounds their loss. They are
recognised by a fingerprint, keyed with the client's secret, of everything that the noise is derived
from. A changed value, a changed parameter, another slot or a new secret is charged anew. Without
permanent noise (f = 0) every report is charged in full.

Charging min(Σ ε per report, ε in total) is sound. Let x be the log-likelihood ratio of a report
about a bit with permanent noise, 1 against 0; those of several reports add up. Let the permanent
bit be 1 with probability κ if the true bit is set, and φ if not. The log-likelihood ratio about the
true bit is then g(x) = ln((κeˣ + 1 − κ)/(φeˣ + 1 − φ)), which increases from ln((1−κ)/(1−φ)) to
ln(κ/φ). Symmetric noise has κ = 1 − φ = 1 − f/2, and g(x) = 2·atanh((1−f)·tanh(x/2)) is odd, and
concave for x ≥ 0. So reports of one such bit together lose at most the sum of their separate
losses, and at most ln((1−f/2)/(f/2)).

With asymmetric noise, g alone may be convex. But two values differ in equal numbers of bits that
only the one and only the other sets, and fresh noise is symmetric, so x is between −X and X. The
loss is a multiple of G(X) = g(X) − g(−X), whose derivative is
sinh(k)/(cosh(k) + cosh(X)) + sinh(−l)/(cosh(l) + cosh(X)), k = ln(κ/(1−κ)), l = ln(φ/(1−φ)). It
decreases with X if κ ≥ ½ ≥ φ, so G is concave, and G(X₁ + X₂) ≤ G(X₁) + G(X₂). `BitMechanism`
refuses other noise. Numbers with permanent noise have only one side of G, for which this fails:
their first report is charged ε in total.

The budget covers all versions of a survey name. Amounts are integers in billionths of a nat,
rounded up. The file is replaced atomically and synced before the report exists. A process that is
killed in between has charged for a report that was never sent; the reverse cannot happen.
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
    """Charge for one slot of a report.

    Parameters
    ----------
    noise_id : str
        Fingerprint of the permanent noise; without permanent noise, the name of the slot.
    per_report : int
        Loss of this report in billionths of a nat.
    in_total : int or None
        Limit of the loss of all reports with this noise; None if there is no limit.
    """

    noise_id: str
    per_report: int
    in_total: int | None


@dataclass
class _Entry:
    """All reports with the same noise: the sum of their charges, and its limit or None."""

    charged: int
    limit: int | None

    @property
    def spent(self) -> int:
        """Loss of all these reports in billionths of a nat."""
        return self.charged if self.limit is None else min(self.charged, self.limit)


Entries = dict[str, _Entry]
"""Entries of one survey by name of the permanent noise."""


@dataclass
class _Account:
    """All entries of one survey, and what is remembered for people to see.

    budget : at the last charge; reports : charged so far. None if an older release wrote the file.
    """

    entries: Entries
    budget: int | None = None
    reports: int | None = None

    @property
    def spent(self) -> int:
        """Loss on this survey in billionths of a nat."""
        return sum(entry.spent for entry in self.entries.values())


Book = dict[str, _Account]
"""Accounts by survey name."""


@dataclass(frozen=True)
class Spending:
    """What a ledger says about one survey.

    Parameters
    ----------
    survey : str
        Name of the survey.
    spent : float
        Privacy loss ε in nats that was spent so far, over all versions.
    budget : float or None
        Largest ε that may be spent, as the version that was answered last says; None if unknown.
    reports : int or None
        Number of reports that were charged; None if unknown.

    Examples
    --------
    >>> Spending("homepages", spent=2.0, budget=3.0, reports=1).budget
    3.0
    """

    survey: str
    spent: float
    budget: float | None
    reports: int | None


class Ledger:
    """Record of the spent privacy loss of one person, for all surveys.

    Parameters
    ----------
    path : str, Path or None, default None
        File; None keeps the ledger in memory only. Several processes may share a file.

    Examples
    --------
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

    def __repr__(self) -> str:
        return f"<Ledger in {'memory' if self.path is None else self.path}>"

    def spent(self, survey: str) -> float:
        """Return the loss that was spent on a survey name so far.

        Parameters
        ----------
        survey : str
            Name of the survey.

        Returns
        -------
        float
            Privacy loss ε in nats.
        """
        return self._read().get(survey, _Account({})).spent / NANO

    def spending(self) -> tuple[Spending, ...]:
        """Return what was spent on each survey; nothing is written.

        Returns
        -------
        tuple of Spending
            One per survey, sorted by name; empty if the file does not exist.

        Raises
        ------
        LedgerError
            If the file cannot be read.

        Examples
        --------
        >>> ledger = Ledger()
        >>> ledger.charge("homepages", 3_000_000_000, [Charge("full", 2_000_000_000, None)])
        >>> ledger.spending()
        (Spending(survey='homepages', spent=2.0, budget=3.0, reports=1),)
        """
        return tuple(
            Spending(
                survey,
                account.spent / NANO,
                None if account.budget is None else account.budget / NANO,
                account.reports,
            )
            for survey, account in sorted(self._read().items())
        )

    def charge(self, survey: str, budget: int, charges: Sequence[Charge]) -> None:
        """Record the charges of one report, or raise BudgetExceeded and change nothing.

        Parameters
        ----------
        survey : str
            Name of the survey.
        budget : int
            Maximum loss on this survey name, in billionths of a nat.
        charges : sequence of Charge
            One per slot of the report.

        Raises
        ------
        BudgetExceeded
            If the charges would exceed the budget.
        LedgerError
            If the file cannot be read.
        """
        if type(budget) is not int:
            raise LedgerError(f"the budget must be an integer, not {budget!r:.80}")
        if self.path is None:
            with self._lock:
                _spend(self._memory, survey, budget, charges)
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with locked(self.path):
            book = self._read()
            _spend(book, survey, budget, charges)
            replace_private(self.path, _to_json(book))

    def _read(self) -> Book:
        """Return the book in memory or in the file."""
        if self.path is None:
            return self._memory
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise LedgerError(f"cannot read the ledger {self.path}: {error.strerror}") from None
        try:
            return _from_json(json.loads(data))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise LedgerError(
                f"{self.path} is not a ledger ({error}). The spent privacy loss is unknown, so "
                "no report is made: restore the file from a backup"
            ) from None


def _spend(book: Book, survey: str, budget: int, charges: Sequence[Charge]) -> None:
    """Add the charges to the book, or raise BudgetExceeded and change nothing."""
    account = book.get(survey) or _Account({}, reports=0)
    entries, before = account.entries, account.spent
    extra = 0
    changed: Entries = {}
    for charge in charges:
        noise_id, limit = charge.noise_id, charge.in_total
        old = changed.get(noise_id) or entries.get(noise_id) or _Entry(0, limit)
        entry = _Entry(old.charged + charge.per_report, _larger_limit(old.limit, limit))
        extra += entry.spent - old.spent
        changed[noise_id] = entry
    if before + extra > budget:
        raise BudgetExceeded(
            f"survey {survey!r}: this answer needs ε = {_shown(extra)}, but {_shown(before)} of "
            f"the budget of {_shown(budget)} is already spent: no report was made"
        )
    entries.update(changed)
    account.budget = budget
    account.reports = None if account.reports is None else account.reports + 1
    book[survey] = account


def _shown(amount: int) -> str:
    """Return billionths of a nat as ε with four digits; published losses are just below them.

    >>> _shown(4_999_999_995), _shown(1_098_612_289)
    ('5', '1.099')
    """
    return f"{amount / NANO:.4g}"


def _larger_limit(a: int | None, b: int | None) -> int | None:
    """Return the larger of two limits, where None means no limit."""
    return None if a is None or b is None else max(a, b)


def _to_json(book: Book) -> bytes:
    """Return the contents of the file."""
    surveys = {
        survey: {
            noise_id: [entry.charged, entry.limit] for noise_id, entry in account.entries.items()
        }
        for survey, account in book.items()
    }
    history = {survey: [account.budget, account.reports] for survey, account in book.items()}
    data = {"format": FORMAT, "surveys": surveys, "history": history}
    return json.dumps(data, separators=(",", ":")).encode()


def _from_json(data: Any) -> Book:
    """Return the book in the parsed contents of a file, after checking every number."""
    if data["format"] != FORMAT:
        raise ValueError(f"its format is {data['format']!r}, not {FORMAT!r}")
    book: Book = {}
    history = data.get("history", {})  # older releases neither write nor keep it
    for survey, entries in data["surveys"].items():
        budget, reports = history.get(survey, (None, None))
        _check_amounts(survey, budget, reports)
        book[survey] = _Account({}, budget, reports)
        for noise_id, (charged, limit) in entries.items():
            if charged is None:
                raise ValueError(f"an entry of {survey!r} is {[charged, limit]}")
            _check_amounts(survey, charged, limit)
            book[survey].entries[noise_id] = _Entry(charged, limit)
    return book


def _check_amounts(survey: str, *amounts: object) -> None:
    """Raise ValueError unless each amount is None or an integer from 0."""
    if any(x is not None and (type(x) is not int or x < 0) for x in amounts):
        raise ValueError(f"an entry of {survey!r} is {list(amounts)}")
