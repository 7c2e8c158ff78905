"""Amplification by shuffling: ε for an observer who sees only a shuffled batch of reports.

The reports of a batch are shuffled before anybody sees them. An observer who knows neither order
nor origin of the reports, such as an analyst, learns less about one client than from its report
alone: the other reports hide it. This holds only against observers who did not see the reports
arrive. It is a promise (ε, δ) of the central model: for any set of outcomes, the probability under
one value is at most e^ε times that under another, plus δ.

Clear fields (cohort, positions, prefix lengths) are visible and never change, so an observer may
know those of a client: only clients with the same clear fields hide it. They are its *crowd*.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from deniable.errors import InputError, MissingPackage
from deniable.formatting import counted, epsilon_text
from deniable.observers import clones
from deniable.privacy import total_variation
from deniable.survey import Survey, SurveyOrPath

DEFAULT_DELTA = 1e-8
CROWD_SHARE = 0.1
"""Share of δ for the chance that the crowd is smaller than stated."""


@dataclass(frozen=True)
class Amplification:
    """Privacy of one client against an observer of shuffled batches only; see `amplified`.

    Parameters
    ----------
    epsilon, delta : float
        Upper bound of ε in nats at this δ.
    local : float
        Privacy loss ε of one report without shuffling.
    reports : int
        Number of reports of the batch.
    crowd : int
        Number of these reports that hide a client: those with the same clear fields.
    method : str
        "numerical"; "exponential" if NumPy is not installed; or "none" if shuffling adds nothing.
    closed_form : float or None
        The formula of Feldman, McMillan and Talwar, for comparison; None if it does not apply.

    Examples
    --------
    >>> from deniable.survey import example_survey
    >>> amplified(example_survey(), 1_000_000).crowd
    1000000
    """

    epsilon: float
    delta: float
    local: float
    reports: int
    crowd: int
    method: str
    closed_form: float | None

    @property
    def amplifies(self) -> bool:
        """Whether shuffling improves the bound."""
        return self.epsilon < self.local

    def __str__(self) -> str:
        batch = f"a batch of {counted(self.reports, 'report')}"
        crowd = (
            f", of which at least {self.crowd:,} share a client's clear fields"
            if self.crowd < self.reports
            else ""
        )
        if not self.amplifies:
            return f"{batch}{crowd}: ε = {epsilon_text(self.local)}, as without shuffling"
        name = "" if self.method == "numerical" else f", {self.method} bound"
        return f"{batch}{crowd}: ε ≤ {epsilon_text(self.epsilon)} at δ = {self.delta:g}{name}"


def amplified(survey: SurveyOrPath, reports: int, delta: float = DEFAULT_DELTA) -> Amplification:
    """Bound the privacy loss against an observer who sees only a shuffled batch of reports.

    The bound assumes that nobody else than the observer is malicious: that the collector shuffles,
    and that the other reports of a batch come from honest clients. Against the collector itself,
    only `Survey.loss` holds. Nothing is known about reports that are collected repeatedly.

    Parameters
    ----------
    survey : Survey, str or Path
        The survey, or the path of its file. Reports must be collected once.
    reports : int
        Number of reports of the batch, each from a different client.
    delta : float, default 1e-8
        Probability δ with which the bound may fail.

    Returns
    -------
    Amplification
        Bound of ε, and how it was computed.

    Raises
    ------
    InputError
        If an argument is out of range, or the survey is collected repeatedly.

    Examples
    --------
    >>> from deniable import amplified
    >>> from deniable.survey import example_survey
    >>> bound = amplified(example_survey(), 1_000_000)
    >>> round(bound.local, 3), round(bound.epsilon, 3), round(bound.closed_form, 3)
    (1.0, 0.005, 0.027)
    """
    survey = Survey.of(survey)
    if survey.collect != "once":
        raise InputError(
            "shuffling is only known to add to the privacy of reports that are collected once"
        )
    if type(reports) is not int or reports < 1:
        raise InputError(f"reports must be a whole number of at least 1, not {reports!r:.80}")
    if not 0 < delta < 1:
        raise InputError(f"delta must be between 0 and 1, not {delta!r:.80}")
    parts = [m for question in survey.questions for m in question.protocol.mechanisms]
    local = sum(part.loss_after(1) for part in parts) * (1 + 1e-12)
    crowd_delta = CROWD_SHARE * delta if survey.smallest_group < 1 else 0.0
    crowd = smallest_crowd(reports, survey.smallest_group, crowd_delta)
    left = delta - crowd_delta
    variation = total_variation([part.worst_outcomes for part in parts])
    epsilon, method = _bounded(local, variation, crowd, left)
    amplifies = epsilon < local
    return Amplification(
        epsilon=min(epsilon, local),
        delta=delta if amplifies else 0.0,
        local=local,
        reports=reports,
        crowd=crowd,
        method=method if amplifies else "none",
        closed_form=shuffled_epsilon(local, crowd, left),
    )


def _bounded(local: float, variation: float, crowd: int, delta: float) -> tuple[float, str]:
    """Return ε of shuffled outputs, one per client, and the method by which it was bounded."""
    try:
        from deniable.observers.clone_sums import numerical_epsilon
    except MissingPackage:
        return clones.exponential_epsilon(local, variation, crowd, delta), "exponential"
    return numerical_epsilon(local, variation, crowd, delta), "numerical"


def shuffled_epsilon(epsilon: float, crowd: int, delta: float) -> float | None:
    """Return ε of `crowd` shuffled reports at δ; None if the formula does not apply.

    This is theorem 3.1 of Feldman, McMillan and Talwar, "Hiding among the clones" (2021).

    epsilon : ε of one report

    >>> round(shuffled_epsilon(1.0, 10**6, 1e-8), 3), shuffled_epsilon(1.0, 100, 1e-8)
    (0.027, None)
    """
    if crowd < 2 or epsilon > math.log(crowd / (16 * math.log(2 / delta))):
        return None
    ratio = math.exp(epsilon)
    root = 8 * math.sqrt(ratio * math.log(4 / delta) / crowd)
    bound = math.log1p((ratio - 1) / (ratio + 1) * (root + 8 * ratio / crowd))
    return min(epsilon, bound * (1 + 1e-12))


def smallest_crowd(reports: int, share: float, delta: float) -> int:
    """Return a size that the group of a client has, except with probability δ.

    Each of the other clients is in the group with probability `share`. Chernoff: a binomial count
    with mean m is below m − √(2m·ln(1/δ)) with probability at most δ.

    >>> smallest_crowd(10**6, 1 / 64, 1e-8), smallest_crowd(1000, 1.0, 1e-8)
    (14868, 1000)
    """
    if share >= 1:
        return reports
    mean = (reports - 1) * share
    return 1 + max(0, math.ceil(mean - math.sqrt(2 * mean * math.log(1 / delta))))
