"""The result of a joint decode: how values of several questions go together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.formatting import Columns
from deniable.results.association import AssociationTest, EffectSize
from deniable.results.base import Provenance, Result
from deniable.results.covariance import Covariance, Interval

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Tests:
    """What needs the reports themselves; a result that was read from JSON has none."""

    association: Callable[[str], AssociationTest]
    effect: Callable[[], EffectSize]
    mutual: Callable[[], AssociationTest]
    conditional: Callable[[tuple[int, int]], AssociationTest]


@dataclass(frozen=True, eq=False)
class Joint(Result):
    """A joint distribution, certified and with its uncertainty.

    labels : each question's categories; table, standard_error, low, high, p_value : float64 with
    one axis a question; [low, high] is a 95% interval clipped to [0, 1], p_value that of "this
    cell is 0". covariance : float64[cells, cells], row-major. log_likelihood : nats, all reports;
    the maximum lies at most gap_nats above it. passes : over the data. other : what the last
    category of each question stands for, "" where there is none. shrunk : point estimates shrunk
    towards independence, if asked for; tests and intervals never refer to it. made_from :
    "reports", by maximum likelihood, or "counts", by least squares: then there is no likelihood,
    log_likelihood and gap_nats are NaN.
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
    shrunk: Floats | None = None
    shrinkage: float | None = None
    association: AssociationTest | None = None
    effect: EffectSize | None = None
    provenance: Provenance | None = None
    made_from: str = "reports"
    tests: Tests | None = field(default=None, repr=False)

    def margin(self, question: str) -> Interval:
        """One question by itself, from this table."""
        axis = self._axis(question)
        groups = [
            np.arange(size) if i == axis else np.zeros(size, np.intp)
            for i, size in enumerate(self.table.shape)
        ]
        found = self._covariance.collapsed(groups).intervals()
        return Interval(*(np.ravel(getattr(found, f)) for f in Interval.__dataclass_fields__))

    def conditional(self, given: str) -> Interval:
        """Rates of the other questions' values among those with each value of `given`."""
        return self._covariance.conditional(self._axis(given))

    def cell(self, *values: str) -> dict[str, float]:
        """One cell by its labels."""
        if len(values) != len(self.labels):
            raise InputError(f"expected {len(self.labels)} labels, got {len(values)}")
        at = []
        for value, labels, question in zip(values, self.labels, self.questions, strict=True):
            if value not in labels:
                raise InputError(f"question {question!r} has no category {value!r} in this table")
            at.append(labels.index(value))
        names = ("table", "standard_error", "low", "high", "p_value")
        return {name: float(getattr(self, name)[tuple(at)]) for name in names}

    def test(self, method: str = "score") -> AssociationTest:
        """Are two questions independent? `score` (calibrated), `paper` (its T), or `lrt`."""
        if method == "score" and self.association is not None:
            return self.association
        return self._tests.association(method)

    def cramers_v(self) -> EffectSize:
        """How strong the association of two questions is, from 0 to 1."""
        return self.effect if self.effect is not None else self._tests.effect()

    def mutual_independence(self) -> AssociationTest:
        """Are all questions independent of each other? By likelihood ratio."""
        return self._tests.mutual()

    def conditional_independence(self, first: str, second: str) -> AssociationTest:
        """Are two questions independent given the others? By likelihood ratio."""
        return self._tests.conditional((self._axis(first), self._axis(second)))

    # --- as a result -----------------------------------------------------------------------------

    def columns(self) -> Columns:
        """Return every cell, with a column per question."""
        where = np.unravel_index(np.arange(self.table.size), self.table.shape)
        named: Columns = {
            question: [labels[i] for i in index]
            for question, labels, index in zip(self.questions, self.labels, where, strict=True)
        }
        for name in ("table", "standard_error", "low", "high", "p_value"):
            shown = "proportion" if name == "table" else name
            named[shown] = getattr(self, name).ravel().tolist()
        return named

    def heading(self) -> str:
        if self.made_from == "counts":
            return f"{' × '.join(self.questions)}: {self.reports:,} reports, from their counts"
        state = "certified to" if self.converged else "NOT CONVERGED: gap"
        return (
            f"{' × '.join(self.questions)}: {self.reports:,} reports, {state} "
            f"{self.gap_nats:.2g} nats in {self.passes} passes"
        )

    def _json(self) -> dict[str, object]:
        """With the association test and the effect size of two questions, without the reports."""
        known = replace(self, tests=None)
        if self.tests is not None and len(self.questions) == 2:
            known = replace(known, association=self.test(), effect=self.cramers_v())
        written = super(Joint, known)._json()
        del written["tests"]
        return written

    @property
    def _covariance(self) -> Covariance:
        return Covariance(self.table, self.covariance)

    @property
    def _tests(self) -> Tests:
        if self.tests is None:
            raise InputError("this result was read back without its reports: associate them again")
        return self.tests

    def _axis(self, question: str) -> int:
        if question not in self.questions:
            raise InputError(f"this table is of {', '.join(self.questions)}; got {question!r}")
        return self.questions.index(question)
