"""The mechanisms that can ask a question, side by side."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

from deniable.errors import InputError
from deniable.formatting import Columns
from deniable.results.base import Result
from deniable.results.rows import Rows


@dataclass(frozen=True)
class MechanismRow:
    """One mechanism at one ε.

    Parameters
    ----------
    name : str
        Name of the design, such as "one bit per option".
    epsilon : float
        Privacy loss ε that was asked for: per report if collected once, in total if repeatedly.
    per_report : float
        Privacy loss ε of one report.
    variance : float
        Variance of an estimated share from one report per client, times the number of clients.
        The value is rare if the answers are strings; otherwise all answers are equally common.
    variance_30 : float
        The same if each client reports an unchanged value 30 times; NaN if collected once.
    bound : float
        Best known lower bound of `variance`, for any mechanism with this ε per report.
    liar : float
        Number of clients as which one lying client can count in the estimate of a share.
    bytes : int
        Size of a report in a batch.
    groups : int
        Number of groups of clients with equal clear fields, which are sent without noise.
    encode_microseconds : float
        Time that a client takes to make a report; NaN if it was not measured.
    decode_seconds : float
        Time that the analysis of 100,000 reports takes; NaN if it was not measured.

    Examples
    --------
    >>> from deniable.analysis import compare_mechanisms
    >>> row = compare_mechanisms(kind="boolean", epsilons=[1.0], timed=False)["one bit, ε = 1"]
    >>> round(row.variance, 2), round(row.bound, 2)
    (1.17, 1.17)
    """

    name: str
    epsilon: float
    per_report: float
    variance: float
    variance_30: float
    bound: float
    liar: float
    bytes: int
    groups: int
    encode_microseconds: float
    decode_seconds: float

    @property
    def label(self) -> str:
        """Name of the row: mechanism and ε."""
        return f"{self.name}, ε = {self.epsilon:g}"


@dataclass(frozen=True, eq=False, repr=False)
class MechanismTable(Rows[MechanismRow], Result):
    """The mechanisms that can ask a question, at several ε.

    Parameters
    ----------
    question : str
        Kind of the question, in words.
    collect : str
        "once" or "repeatedly".
    mechanisms : tuple of MechanismRow
        One row per mechanism and ε.

    Raises
    ------
    InputError
        If there are no rows.

    Examples
    --------
    >>> from deniable.analysis import compare_mechanisms
    >>> compare_mechanisms(kind="boolean", epsilons=[1.0], timed=False)
    <MechanismTable a yes-or-no question, collected once: one bit>
    """

    question: str
    collect: str
    mechanisms: tuple[MechanismRow, ...]

    def __post_init__(self) -> None:
        if not self.mechanisms:
            raise InputError("expected at least one mechanism")

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the mechanisms."""
        return tuple(dict.fromkeys(row.name for row in self.mechanisms))

    def columns(self) -> Columns:
        """Return the rows as a table.

        Returns
        -------
        dict of str to sequence
            One column per field of `MechanismRow`; without those that are NaN in all rows.
        """
        rows = [asdict(row) for row in self.mechanisms]
        columns = {name: [row[name] for row in rows] for name in rows[0]}
        return {
            name: column
            for name, column in columns.items()
            if any(value == value for value in column)
        }

    def _keys(self) -> Sequence[str]:
        return [row.label for row in self.mechanisms]

    def _make_rows(self) -> Iterable[MechanismRow]:
        return self.mechanisms

    def summary(self) -> str:
        """Return the most important facts in a few words.

        Returns
        -------
        str
            The question, and the names of the mechanisms.
        """
        return f"{self.question}, collected {self.collect}: {'; '.join(self.names)}"

    def heading(self) -> str:
        """Return one line that summarises the table.

        Returns
        -------
        str
            The question, and the names of the mechanisms.
        """
        return self.summary()
