"""The result of `decode`: how common each candidate of one question is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import numpy as np

from deniable.formatting import SMALLEST_P, Z95, Columns, PValue, counted, percent, percent_within
from deniable.kernels.array_types import Floats, Indices, Mask
from deniable.results.base import Provenance, Result
from deniable.results.fit_check import FitCheck
from deniable.results.rows import ComparedByFields, Rows, ValueRow


@dataclass(frozen=True, eq=False)
class Measured(ComparedByFields):
    """A number with its uncertainty.

    Parameters
    ----------
    estimate : float
        Estimate.
    standard_error : float
        Standard error.
    low, high : float
        Ends of the 95% confidence interval.

    Examples
    --------
    >>> print(Measured.normal(0.4, 0.01))
    40.0% ± 2.0%
    """

    estimate: float
    standard_error: float
    low: float
    high: float

    @classmethod
    def normal(cls, estimate: float, standard_error: float) -> Measured:
        """Return an estimate whose error has a normal distribution, with its interval.

        Parameters
        ----------
        estimate : float
            Estimate.
        standard_error : float
            Standard error.

        Returns
        -------
        Measured
            The estimate with its 95% confidence interval.
        """
        reach = Z95 * standard_error
        return cls(estimate, standard_error, estimate - reach, estimate + reach)

    def __str__(self) -> str:
        return percent_within(self.estimate, Z95 * self.standard_error)


UNMEASURED = Measured(np.nan, np.nan, np.nan, np.nan)


@dataclass(frozen=True, eq=False, repr=False)
class Marginal(Rows[ValueRow], Result):
    """How common each candidate of one question is, and which candidates occur at all.

    Parameters
    ----------
    estimate : ndarray of float64, shape (candidates,)
        Estimated share of clients that hold each candidate. Estimates are unbiased and never
        clipped, so they may be below 0. NaN where nothing can be estimated.
    standard_error : ndarray of float64, shape (candidates,)
        Standard errors of the estimates.
    low, high : ndarray of float64, shape (candidates,)
        Ends of the 95% confidence intervals.
    p_value : ndarray of float64, shape (candidates,)
        One-sided p-values of "no client holds this candidate", before the correction. Those below
        1e-300 are given as 1e-300.
    detected : ndarray of bool, shape (candidates,)
        Whether the test rejects that hypothesis after the correction. False where the candidate is
        not identified.
    identified : ndarray of bool, shape (candidates,)
        False where the reports cannot distinguish the candidate from others or from the background.
    groups : tuple of tuple of int
        Candidates that set the same bits in every stratum. Only their sum is identified: each
        member has an equal share of it, an interval from 0 to the whole sum, and the p-value of
        "no client holds any of them".
    detection_threshold : float
        Share of clients at which a typical candidate is detected half of the time; 1 if there are
        too few cohorts or reports to detect it however common it is.
    mass_found : Measured
        Share of clients that hold a detected candidate.
    mass_unexplained : Measured
        Share of the other clients: other answers, and for a boolean question also "no".
    background : ndarray of float64, shape (strata,)
        Average increase of a bit's frequency by unlisted strings, per stratum.
    overdispersion : float
        Standard deviation of a bit's frequency beyond the noise of the mechanism; the largest of
        all slots.
    reports : int
        Number of reports that carry information about the candidates.
    alpha : float
        Significance level.
    correction : str or None
        Correction for testing many candidates: "holm", "bonferroni", "fdr" or None.
    labels : tuple of str, optional
        The candidates.
    question : str, default ""
        Name of the question.
    provenance : Provenance, optional
        Where the result comes from.
    where : mapping of str to tuple of str, optional
        Answers to other questions that select the subgroup of clients that the result describes.
        All shares are then shares of this subgroup. None means all clients.
    subgroup : Measured, optional
        Share of all clients that are in the subgroup.
    total_reports : int, optional
        Number of all reports, if only some of them carry information about the candidates.
    log_p_value : ndarray of float64, shape (candidates,), optional
        Natural logarithms of the p-values, also of those below 1e-300. Computed from `p_value` by
        default.
    fit : FitCheck, optional
        Whether the reports look as the survey promises.
    reports_per_client : float, default 1.0
        Average number of reports per client.
    tested : bool, default True
        Whether there were enough reports, clients and cohorts to test anything. If not, p-values
        and what depends on them are NaN.

    Examples
    --------
    >>> import numpy as np
    >>> from deniable import Survey, decode, simulate
    >>> survey = Survey.from_toml('''
    ... name = "editors"
    ... version = 1
    ... owner = "Ada"
    ... description = "Which editor do you use?"
    ... expires = 2999-12-31
    ... collect = "once"
    ... [questions.editor]
    ... kind = "choice"
    ... options = ["vim", "emacs"]
    ... epsilon = 2.0
    ... ''')
    >>> answers = {"editor": ["vim"] * 700 + ["emacs"] * 300}
    >>> reports = simulate(survey, answers, rng=np.random.default_rng(1))
    >>> marginal = decode(survey, reports, "editor")
    >>> marginal
    <Marginal editor: 1,000 reports; 2 of 2 candidates detected>
    >>> marginal["vim"].detected, "nano" in marginal
    (True, False)
    >>> marginal.names, marginal.detected.tolist()
    (('vim', 'emacs'), [True, True])
    >>> bool(marginal.low[0] < 0.7 < marginal.high[0])
    True
    """

    estimate: Floats
    standard_error: Floats
    low: Floats
    high: Floats
    p_value: Floats
    detected: Mask
    identified: Mask
    groups: tuple[tuple[int, ...], ...]
    detection_threshold: float
    mass_found: Measured
    mass_unexplained: Measured
    background: Floats
    overdispersion: float
    reports: int
    alpha: float
    correction: str | None
    labels: tuple[str, ...] | None = None
    question: str = ""
    provenance: Provenance | None = None
    where: Mapping[str, tuple[str, ...]] | None = None
    subgroup: Measured | None = None
    total_reports: int | None = None
    log_p_value: Floats = field(default_factory=lambda: np.empty(0))
    fit: FitCheck | None = None
    reports_per_client: float = 1.0
    tested: bool = True

    _optional: ClassVar = ("where", "subgroup", "total_reports", "fit")

    def __post_init__(self) -> None:
        if self.log_p_value.shape != self.p_value.shape:
            logarithms = np.log(np.maximum(self.p_value, SMALLEST_P))
            object.__setattr__(self, "log_p_value", logarithms)

    @property
    def names(self) -> tuple[str, ...]:
        """The candidates, or their numbers if they have no labels."""
        return self.labels or tuple(str(i) for i in range(len(self.estimate)))

    @property
    def order(self) -> Indices:
        """Indices of the candidates, largest estimate first; those without an estimate last."""
        return np.argsort(-np.nan_to_num(self.estimate, nan=-np.inf), kind="stable")

    def columns(self) -> Columns:
        """Return one row per candidate, largest estimate first.

        Returns
        -------
        dict of str to sequence
            Columns value, estimate, standard_error, low, high, p_value and detected.
        """
        order = self.order
        named: Columns = {"value": [self.names[i] for i in order]}
        for name in ("estimate", "standard_error", "low", "high", "p_value", "detected"):
            named[name] = getattr(self, name)[order].tolist()
        logarithms = self.log_p_value[order].tolist()
        named["p_value"] = list(map(PValue, self.p_value[order].tolist(), logarithms))
        return named

    def _keys(self) -> Sequence[str]:
        return [self.names[i] for i in self.order]

    def _make_rows(self) -> Iterable[ValueRow]:
        return map(ValueRow._make, zip(*self.columns().values(), strict=True))

    def summary(self) -> str:
        """Return the most important facts in a few words.

        Returns
        -------
        str
            Question, reports, and detected candidates.
        """
        about = f"{self.title}: {self.reports_phrase}"
        if self.subgroup is not None:
            about += f"; the subgroup is {self.subgroup} of clients"
            if not self.identified.any():
                return f"{about}: too small to say anything about it"
        if self.is_boolean:
            yes = Measured.normal(float(self.estimate[0]), float(self.standard_error[0]))
            return f"{about}; yes {yes}, no {percent(1 - yes.estimate)} of {self.whom}"
        candidates = counted(len(self.estimate), "candidate")
        if not self.tested:
            return f"{about}; {candidates}"
        return f"{about}; {int(self.detected.sum())} of {candidates} detected"

    def heading(self) -> str:
        """Return one line that summarises the result.

        Returns
        -------
        str
            Reports, detected candidates, their share of clients, and the detection threshold.
        """
        if not self.tested or (self.subgroup is not None and not self.identified.any()):
            return self.summary()
        found = f", held by {self.mass_found} of {self.whom}" if not self.is_boolean else ""
        return f"{self.summary()}{found}; detection threshold {percent(self.detection_threshold)}"

    @property
    def reports_phrase(self) -> str:
        """Number of reports that carry information, of how many."""
        if self.total_reports is None:
            return counted(self.reports, "report")
        return f"{self.reports:,} of {counted(self.total_reports, 'report')}"

    @property
    def whom(self) -> str:
        """Whom the shares are shares of: all clients, or the subgroup."""
        return "clients" if self.subgroup is None else "the subgroup"

    @property
    def is_boolean(self) -> bool:
        """Whether the question is a boolean: clients that do not hold "yes" hold "no"."""
        return self.provenance is not None and self.provenance.is_boolean(self.question)

    def untested(self) -> Self:
        """Return the estimates and intervals only, without tests.

        Returns
        -------
        Marginal
            The same result with nothing detected, and without p-values.
        """
        unknown = np.full(self.p_value.shape, np.nan)
        return replace(
            self,
            p_value=unknown,
            log_p_value=unknown,
            detected=np.zeros(unknown.shape, bool),
            detection_threshold=np.nan,
            mass_found=UNMEASURED,
            mass_unexplained=UNMEASURED,
            fit=None,
            tested=False,
        )

    @property
    def title(self) -> str:
        """The question, and the conditions if the result describes a subgroup."""
        conditions = " and ".join(
            f"{name} = {' or '.join(answers)}" for name, answers in (self.where or {}).items()
        )
        question = self.question or "marginal"
        return f"{question} where {conditions}" if conditions else question

    def _json(self) -> dict[str, object]:
        """Leave out what is as usual."""
        written = super()._json()
        if self.reports_per_client == 1:
            del written["reports_per_client"]
        if not (self.log_p_value < np.log(SMALLEST_P)).any():
            del written["log_p_value"]  # the p-values say as much
        return written

    @property
    def z(self) -> Floats:
        """Estimates divided by their standard errors; 0 where there is no estimate."""
        z = np.zeros(self.estimate.shape)
        known = np.isfinite(self.estimate) & (self.standard_error > 0)
        np.divide(self.estimate, self.standard_error, out=z, where=known)
        return z

    def top(self, count: int) -> Indices:
        """Return the most common detected candidates.

        Parameters
        ----------
        count : int
            Maximum number of candidates.

        Returns
        -------
        ndarray of int
            Indices of the candidates, largest estimate first.
        """
        detected = np.flatnonzero(self.detected)
        return detected[np.argsort(-self.estimate[detected], kind="stable")][:count]
