"""The result of `associate`: the joint distribution of several questions."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, fields, replace
from itertools import product
from typing import Any, ClassVar, Self

import numpy as np

from deniable.errors import DeniableError, InputError, did_you_mean
from deniable.formatting import Columns, counted
from deniable.kernels.array_types import Floats
from deniable.results.association import AssociationTest, EffectSize, Tests
from deniable.results.base import Provenance, Result
from deniable.results.covariance import Covariance, Interval, residuals
from deniable.results.crosstab import crosstabs
from deniable.results.fit_check import FitCheck
from deniable.results.rows import CellRow, Rows

NO_ANSWER = "(no answer)"
"""Label of the category of clients that gave none of the options."""
OTHER = "(other)"
"""Label of the category of all unlisted values."""
CELL_FIELDS = ("table", "standard_error", "low", "high", "p_value")
"""Fields of a joint table that have one number per cell."""


@dataclass(frozen=True, eq=False, repr=False)
class Joint(Rows[CellRow], Result):
    """The joint distribution of several questions.

    Parameters
    ----------
    questions : tuple of str
        The questions, one axis each.
    labels : tuple of tuple of str
        Categories of each question.
    table : ndarray of float64
        Estimated share of clients in each cell, one axis per question.
    standard_error : ndarray of float64
        Standard error of each cell.
    low, high : ndarray of float64
        Ends of the 95% confidence intervals, clipped to [0, 1].
    p_value : ndarray of float64
        One-sided p-value, per cell, of the hypothesis that the cell is 0.
    covariance : ndarray of float64, shape (cells, cells)
        Covariance of the cells in row-major order.
    log_likelihood : float
        Log-likelihood of all reports, in nats; NaN if the table was made from counts.
    gap_nats : float
        Proven upper bound on the distance of `log_likelihood` from its maximum, in nats.
    passes : int
        Number of passes over the reports.
    converged : bool
        Whether that distance is small enough.
    reports : int
        Number of reports.
    other : tuple of str
        What the last category of each question stands for; empty where there is no such category.
    association : AssociationTest, optional
        Test of independence of two questions, in a result that was read from JSON or unpickled.
    effect : EffectSize, optional
        Cramér's V of two questions, in a result that was read from JSON or unpickled.
    provenance : Provenance, optional
        Where the result comes from.
    made_from : str, default "reports"
        "reports" (maximum likelihood) or "counts" (least squares).
    tests : Tests, optional
        Tests that need the reports.
    fit : FitCheck, optional
        Whether the reports look as the survey promises.
    tested : bool, default True
        Whether there were enough reports, clients and cohorts to test anything. If not, p-values
        are NaN, and tests are refused.

    Examples
    --------
    >>> import numpy as np
    >>> from deniable import Survey, associate, simulate
    >>> survey = Survey.from_toml('''
    ... name = "editors"
    ... version = 1
    ... owner = "Ada"
    ... description = "Which editor do you use, and in which colours?"
    ... expires = 2999-12-31
    ... collect = "once"
    ... [questions.editor]
    ... kind = "choice"
    ... options = ["vim", "emacs"]
    ... epsilon = 2.0
    ... [questions.dark]
    ... kind = "boolean"
    ... epsilon = 2.0
    ... ''')
    >>> answers = {"editor": ["vim", "emacs"] * 500, "dark": [True, False] * 500}
    >>> reports = simulate(survey, answers, rng=np.random.default_rng(1))
    >>> joint = associate(survey, reports, ["editor", "dark"])
    >>> joint.table.shape, joint.test().p_value < 0.001
    ((2, 2), True)
    >>> joint
    <Joint editor × dark: 1,000 reports, 2 × 2 cells>
    >>> joint["vim", "yes"].low > 0.4
    True
    """

    questions: tuple[str, ...]
    labels: tuple[tuple[str, ...], ...]
    table: Floats
    standard_error: Floats
    low: Floats
    high: Floats
    p_value: Floats
    covariance: Floats
    log_likelihood: float
    gap_nats: float
    passes: int
    converged: bool
    reports: int
    other: tuple[str, ...]
    association: AssociationTest | None = field(default=None, compare=False)
    effect: EffectSize | None = field(default=None, compare=False)
    provenance: Provenance | None = None
    made_from: str = "reports"
    tests: Tests | None = field(default=None, compare=False)
    fit: FitCheck | None = None
    tested: bool = True

    _optional: ClassVar = ("fit",)

    def margin(self, question: str) -> Interval:
        """Return the distribution of one question, from this table.

        Parameters
        ----------
        question : str
            Name of the question.

        Returns
        -------
        Interval
            Shares of its categories with their 95% confidence intervals.
        """
        axis = self._axis(question)
        groups = [
            np.arange(size) if i == axis else np.zeros(size, np.intp)
            for i, size in enumerate(self.table.shape)
        ]
        margin = self._covariance.collapsed(groups).intervals()
        return Interval(*(np.ravel(getattr(margin, f)) for f in Interval.__dataclass_fields__))

    def conditional(self, given: str) -> Interval:
        """Return the rates of the other questions' categories for each category of one question.

        Parameters
        ----------
        given : str
            Name of the question that is conditioned on.

        Returns
        -------
        Interval
            Rates of the shape of the table, with their 95% confidence intervals.
        """
        return self._covariance.conditional(self._axis(given))

    def cell(self, *values: str) -> dict[str, float]:
        """Return one cell by its labels.

        Parameters
        ----------
        *values : str
            One category per question.

        Returns
        -------
        dict of str to float
            The numbers table, standard_error, low, high and p_value of the cell.

        Raises
        ------
        UnknownKey
            If the number of categories is wrong, or one of them is not in the table.
        """
        _, *numbers = self[values]
        return dict(zip(CELL_FIELDS, numbers, strict=True))

    def __getitem__(self, key: Hashable) -> CellRow:
        """Return one cell, such as `joint["Firefox", "yes"]`."""
        return super().__getitem__(key if isinstance(key, tuple) else (key,))

    def _keys(self) -> Sequence[tuple[str, ...]]:
        return list(product(*self.labels))

    def _make_rows(self) -> Iterable[CellRow]:
        numbers = [getattr(self, name).ravel().tolist() for name in CELL_FIELDS]
        return map(CellRow, self._keys(), *numbers)

    def _unknown(self, key: Any) -> str:
        if len(key) != len(self.labels):
            wanted = ", ".join(self.questions)
            return f"expected one category per question ({wanted}), got {len(key)}"
        for value, labels, question in zip(key, self.labels, self.questions, strict=True):
            if value not in labels:
                hint = did_you_mean(value, labels)
                return f"question {question!r} has no category {value!r:.200} in this table.{hint}"
        return super()._unknown(key)

    def test(self, method: str = "score") -> AssociationTest:
        """Test whether two questions are independent.

        Parameters
        ----------
        method : str, default "score"
            "score" (calibrated), "paper" (the paper's statistic T), or "lrt" (likelihood ratio).

        Returns
        -------
        AssociationTest
            The outcome of the test.
        """
        self._check_tested()
        if method == "score" and self.association is not None:
            return self.association
        return self._tests.association(method)

    def cramers_v(self) -> EffectSize:
        """Return the strength of the association of two questions.

        Returns
        -------
        EffectSize
            Cramér's V with its 95% confidence interval.
        """
        return self.effect if self.effect is not None else self._tests.effect()

    def mutual_independence(self) -> AssociationTest:
        """Test whether all questions are independent of each other, by the score.

        Returns
        -------
        AssociationTest
            The outcome of the test.
        """
        self._check_tested()
        return self._tests.mutual()

    def untested(self) -> Self:
        """Return the estimates and intervals only, without tests.

        Returns
        -------
        Joint
            The same table without p-values and verdicts.
        """
        unknown = np.full(self.table.shape, np.nan)
        return replace(self, p_value=unknown, fit=None, tested=False)

    @property
    def residuals(self) -> Floats:
        """Differences from independence, in standard errors; for a table of two questions."""
        return residuals(self.table, self.standard_error)

    # --- as a result -----------------------------------------------------------------------------

    def columns(self) -> Columns:
        """Return one row per cell.

        Returns
        -------
        dict of str to sequence
            One column per question, then proportion, standard_error, low, high and p_value.
        """
        where = np.unravel_index(np.arange(self.table.size), self.table.shape)
        named: Columns = {
            question: [labels[i] for i in index]
            for question, labels, index in zip(self.questions, self.labels, where, strict=True)
        }
        for name in CELL_FIELDS:
            shown = "proportion" if name == "table" else name
            named[shown] = getattr(self, name).ravel().tolist()
        return named

    def summary(self) -> str:
        """Return the most important facts in a few words.

        Returns
        -------
        str
            Questions, reports, and the size of the table.
        """
        shape = " × ".join(map(str, self.table.shape))
        reports = counted(self.reports, "report")
        text = f"{' × '.join(self.questions)}: {reports}, {shape} cells"
        return text if self.converged else f"{text}, NOT CONVERGED"

    def heading(self) -> str:
        """Return one line that summarises the result.

        Returns
        -------
        str
            Questions, reports, and whether the fit converged.
        """
        text = f"{' × '.join(self.questions)}: {counted(self.reports, 'report')}"
        if self.made_from == "counts":
            return f"{text}, estimated from counts of their bits"
        state = "converged" if self.converged else "NOT CONVERGED"
        passes = f"{self.passes} pass{'' if self.passes == 1 else 'es'}"
        return (
            f"{text}; {state}: log-likelihood within {self.gap_nats:.2g} of its maximum ({passes})"
        )

    def _json(self) -> dict[str, object]:
        """Add the test of independence and the effect size of two questions; omit the tests."""
        written = super(Joint, self._without_reports())._json()
        del written["tests"]
        return written

    def _without_reports(self) -> Self:
        """Return the result without its reports, but with the tests of two questions."""
        if self.tests is None or len(self.questions) != 2:
            return replace(self, tests=None)
        association = self.test() if self.tested else None
        return replace(self, tests=None, association=association, effect=self.cramers_v())

    def last_categories(self) -> list[str]:
        """Say what (other) or (no answer) stands for, per question that has such a category.

        Returns
        -------
        list of str
            Sentences.
        """
        return [
            f"{NO_ANSWER if labels[-1] == NO_ANSWER else OTHER} of {question}: {meaning}."
            for question, labels, meaning in zip(
                self.questions, self.labels, self.other, strict=True
            )
            if meaning
        ]

    def _crosstab(self) -> str:
        return crosstabs(self)

    # --- copies: the tests hold the reports, which are neither copied nor pickled ----------------

    def __getstate__(self) -> dict[str, object]:
        """Return what JSON holds too; without tests if they cannot be computed any more."""
        try:
            known = self._without_reports()
        except DeniableError:  # for instance, a cluster that held the reports was closed
            known = replace(self, tests=None)
        return super(Joint, known).__getstate__()

    def __copy__(self) -> Self:
        return replace(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        copied = [f.name for f in fields(self) if f.name != "tests"]
        return replace(self, **{name: deepcopy(getattr(self, name), memo) for name in copied})

    @property
    def _covariance(self) -> Covariance:
        return Covariance(self.table, self.covariance)

    @property
    def _tests(self) -> Tests:
        if self.tests is None:
            raise InputError(
                "this test needs the reports, which a result that was read from JSON or unpickled "
                "does not hold: run associate again"
            )
        return self.tests

    def _check_tested(self) -> None:
        if not self.tested:
            raise InputError(self.limitation)

    def _axis(self, question: str) -> int:
        if question not in self.questions:
            hint = did_you_mean(question, self.questions)
            known = ", ".join(self.questions)
            raise InputError(f"this table has the questions {known}, not {question!r}.{hint}")
        return self.questions.index(question)
