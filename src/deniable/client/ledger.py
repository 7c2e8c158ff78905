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

import datetime as dt
import os
from _thread import allocate_lock
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deniable.client.book import Account, Book, Entries, Entry, from_json, to_json
from deniable.client.files import check_unshared, locked, make_private_folder, replace_private
from deniable.errors import BudgetExceeded, LedgerError, SurveyRefused
from deniable.privacy import NANO

if TYPE_CHECKING:
    from pathlib import Path

    from deniable.client.device_budget import DeviceBudget


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
    reserved : float, default 0.0
        Privacy loss in nats that counts towards the budget of the device: the largest budget of
        any version so far.
    since : datetime.date or None, default None
        Day of the first answer, as far as known.
    owner : str or None, default None
        Owner of the survey that was answered last, in the words of its file; None if unknown.

    Examples
    --------
    >>> Spending("homepages", spent=2.0, budget=3.0, reports=1).budget
    3.0
    """

    survey: str
    spent: float
    budget: float | None
    reports: int | None
    reserved: float = 0.0
    since: dt.date | None = None
    owner: str | None = None


class Ledger:
    """Record of the spent privacy loss of one person, for all surveys.

    Parameters
    ----------
    path : str, Path or None, default None
        File; None keeps the ledger in memory only. Several processes may share a file. A symbolic
        link is followed.
    device_budget : float or None, default None
        Maximum ε in nats over all surveys of the ledger; each reserves its whole budget at its
        first answer. None means no limit.
    per_days : mapping of int to float, optional
        Further limits for periods, such as {30: 4.0}: at most ε = 4 for surveys that are answered
        for the first time within 30 days.

    Raises
    ------
    InputError
        If a limit is invalid, or if there are limits per period without a device budget.

    Examples
    --------
    >>> ledger = Ledger()
    >>> ledger.charge("homepages", 3_000_000_000, [Charge("full", 2_000_000_000, None)])
    >>> ledger.spent("homepages")
    2.0
    """

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        device_budget: float | None = None,
        per_days: Mapping[int, float] | None = None,
    ) -> None:
        from pathlib import Path

        self.path = None if path is None else Path(path)
        self.device_budget: DeviceBudget | None = None
        if device_budget is not None or per_days is not None:
            from deniable.client.device_budget import DeviceBudget

            self.device_budget = DeviceBudget(device_budget, {} if per_days is None else per_days)
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
        return self._book().get(survey, Account()).spent / NANO

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
        >>> [(each.survey, each.spent, each.reserved) for each in ledger.spending()]
        [('homepages', 2.0, 3.0)]
        """
        return tuple(
            Spending(
                survey,
                account.spent / NANO,
                None if account.budget is None else account.budget / NANO,
                account.reports,
                account.set_aside / NANO,
                min((day for day, _ in account.reserved), default=None),
                account.owner,
            )
            for survey, account in sorted(self._book().items())
        )

    def charge(
        self,
        survey: str,
        budget: int,
        charges: Sequence[Charge],
        *,
        owner: str | None = None,
        accept_owner_change: bool = False,
        today: dt.date | None = None,
    ) -> None:
        """Record the charges of one report, or raise an error and spend nothing.

        Parameters
        ----------
        survey : str
            Name of the survey.
        budget : int
            Maximum loss on this survey name, in billionths of a nat.
        charges : sequence of Charge
            One per slot of the report.
        owner : str or None, default None
            Owner of the survey; None if unknown.
        accept_owner_change : bool, default False
            Whether the owner may differ from that of earlier answers.
        today : datetime.date or None, default None
            Day of the answer; None means the system's date.

        Raises
        ------
        BudgetExceeded
            If the charges would exceed the budget.
        DeviceBudgetExceeded
            If the budget of the survey would exceed that of the device.
        SurveyRefused
            If the owner has changed.
        LedgerError
            If the file cannot be read or written, or if other users can change it.
        """
        if type(budget) is not int:
            raise LedgerError(f"the budget must be an integer, not {budget!r:.80}")
        today = today or dt.date.today()
        if self.path is None:
            with self._lock:
                self._admit(self._memory, survey, budget, owner, accept_owner_change, today)
                _spend(self._memory[survey], survey, budget, charges)
            return
        path = _real(self.path)
        try:
            make_private_folder(path.parent)
            with locked(path):
                book = _read(path, today)
                changed = self._admit(book, survey, budget, owner, accept_owner_change, today)
                try:
                    _spend(book[survey], survey, budget, charges)
                except BudgetExceeded:
                    # What was reserved must not depend on whether the survey's budget sufficed,
                    # because that depends on the answers.
                    if changed:
                        replace_private(path, to_json(book))
                    raise
                replace_private(path, to_json(book))
        except OSError as error:
            raise LedgerError(
                f"cannot write the ledger {path}: {error.strerror or error}; no report was made. "
                "Free disk space, or choose a folder that this user may write"
            ) from None

    def _admit(
        self,
        book: Book,
        survey: str,
        budget: int,
        owner: str | None,
        accept_owner_change: bool,
        today: dt.date,
    ) -> bool:
        """Reserve the survey's budget and note its owner, or raise; return whether that is new.

        It depends on the survey and the day only, never on the answers.
        """
        account = book.get(survey) or Account(reports=0)
        known, extra = account.owner, budget - account.set_aside
        if owner != known and None not in (owner, known) and not accept_owner_change:
            raise SurveyRefused(
                f"survey {survey!r} of {known!r:.200} was answered on this device before, and now "
                f"a survey of this name comes from {owner!r:.200}: no report was made. Both would "
                "share the budget and the permanent noise, so that their reports could be linked. "
                "A program that knows that they belong together passes accept_owner_change=True"
            )
        if self.device_budget is not None:
            self.device_budget.check(book, survey, max(0, extra), today)
        if survey in book and extra <= 0 and owner in (None, known):
            return False
        account.reserve(budget, today)
        account.owner = known if owner is None else owner
        book[survey] = account
        return True

    def _book(self) -> Book:
        """Return the book in memory or in the file."""
        if self.path is None:
            return self._memory
        return _read(_real(self.path), dt.date.today())


def _real(path: Path) -> Path:
    """Return the file that a path leads to; its lock and its replacements lie next to it."""
    return type(path)(os.path.realpath(path))


def _read(path: Path, today: dt.date) -> Book:
    """Return the book in a file; it is empty if there is no file."""
    try:
        check_unshared(path)
        data = path.read_bytes()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise LedgerError(f"cannot read the ledger {path}: {error.strerror}") from None
    try:
        return from_json(data, today)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise LedgerError(
            f"{path} is not a ledger ({error}). The spent privacy loss is unknown, so "
            "no report is made: restore the file from a backup"
        ) from None


def _spend(account: Account, survey: str, budget: int, charges: Sequence[Charge]) -> None:
    """Add the charges to the account, or raise BudgetExceeded and change nothing."""
    entries, before = account.entries, account.spent
    extra = 0
    changed: Entries = {}
    for charge in charges:
        noise_id, limit = charge.noise_id, charge.in_total
        old = changed.get(noise_id) or entries.get(noise_id) or Entry(0, limit)
        entry = Entry(old.charged + charge.per_report, _larger_limit(old.limit, limit))
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


def _shown(amount: int) -> str:
    """Return billionths of a nat as ε with four digits; published losses are just below them.

    >>> _shown(4_999_999_995), _shown(1_098_612_289)
    ('5', '1.099')
    """
    return f"{amount / NANO:.4g}"


def _larger_limit(a: int | None, b: int | None) -> int | None:
    """Return the larger of two limits, where None means no limit."""
    return None if a is None or b is None else max(a, b)
