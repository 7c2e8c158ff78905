"""Amplification by shuffling: ε for an observer who sees only shuffled batches of reports.

The reports of a batch are shuffled before anybody sees them. An observer who knows neither order
nor origin of the reports, such as an analyst, learns less about one client than from its report
alone: the other reports hide it. This holds only against observers who did not see the reports
arrive. It is a promise (ε, δ) of the central model: for any set of outcomes, the probability under
one value is at most e^ε times that under another, plus δ.

Clear fields (cohort, positions, prefix lengths) are visible and never change, so an observer may
know those of a client: only clients with the same clear fields hide it. They are its *crowd*.
"""

from __future__ import annotations

from dataclasses import dataclass

from deniable.errors import InputError, MissingPackage
from deniable.formatting import counted, epsilon_text
from deniable.observers import clones, closed_forms
from deniable.privacy import binary_response, total_variation
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
        Upper bound of ε in nats at this δ, of all batches together.
    local : float
        Privacy loss ε of the same reports of one client without shuffling.
    reports : int
        Number of reports per batch.
    crowd : int
        Number of these reports that hide a client: those with the same clear fields.
    batches : int
        Number of batches with a report of this client.
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
    batches: int
    method: str
    closed_form: float | None

    @property
    def amplifies(self) -> bool:
        """Whether shuffling improves the bound."""
        return self.epsilon < self.local

    def __str__(self) -> str:
        batch = f"a batch of {counted(self.reports, 'report')}"
        if self.batches > 1:
            batch = f"{self.batches:,} batches of {counted(self.reports, 'report')}"
        crowd = (
            f", of which at least {self.crowd:,} share a client's clear fields"
            if self.crowd < self.reports
            else ""
        )
        if not self.amplifies:
            return f"{batch}{crowd}: ε = {epsilon_text(self.local)}, as without shuffling"
        name = "" if self.method == "numerical" else f", {self.method} bound"
        return f"{batch}{crowd}: ε ≤ {epsilon_text(self.epsilon)} at δ = {self.delta:g}{name}"


def amplified(
    survey: SurveyOrPath, reports: int, delta: float = DEFAULT_DELTA, *, batches: int = 1
) -> Amplification:
    """Bound the privacy loss against an observer who sees only shuffled batches of reports.

    The bound assumes that nobody else than the observer is malicious: that the collector shuffles,
    and that the other reports of a batch come from honest clients. Against the collector itself,
    only `Survey.loss` holds.

    Parameters
    ----------
    survey : Survey, str or Path
        The survey, or the path of its file.
    reports : int
        Number of reports per batch, each from a different client.
    delta : float, default 1e-8
        Probability δ with which the bound may fail.
    batches : int, default 1
        Number of batches to which each client contributes a report, about the same answers. The
        reports of one client count as one output, which is hidden by those clients that contribute
        to the same batches. Without permanent noise, the losses of single batches also compose.

    Returns
    -------
    Amplification
        Bound of ε, and how it was computed.

    Raises
    ------
    InputError
        If an argument is out of range.

    Examples
    --------
    >>> from deniable import amplified
    >>> from deniable.survey import example_survey
    >>> bound = amplified(example_survey(), 1_000_000)
    >>> round(bound.local, 3), round(bound.epsilon, 3), round(bound.closed_form, 3)
    (1.0, 0.005, 0.027)
    """
    survey = Survey.of(survey)
    for name, count in (("reports", reports), ("batches", batches)):
        if type(count) is not int or count < 1:
            raise InputError(f"{name} must be a whole number of at least 1, not {count!r:.80}")
    if not 0 < delta < 1:
        raise InputError(f"delta must be between 0 and 1, not {delta!r:.80}")
    parts = [m for question in survey.questions for m in question.protocol.mechanisms]
    local = sum(part.loss_after(batches) for part in parts) * (1 + 1e-12)
    crowd_delta = CROWD_SHARE * delta if survey.smallest_group < 1 else 0.0
    crowd = closed_forms.smallest_crowd(reports, survey.smallest_group, crowd_delta / batches)
    left = delta - crowd_delta
    if batches == 1:
        variation = total_variation([part.worst_outcomes for part in parts])
    else:  # all reports of a client, as one output of which only ε is known
        variation = total_variation([binary_response(local)])
    epsilon, method = _bounded(local, variation, crowd, left)
    if batches > 1 and not any(part.noise.flip for part in parts):
        # Reports without permanent noise are independent.
        composed = _composed(survey.loss.per_report, crowd, batches, left)
        epsilon, method = min((epsilon, method), composed)
    amplifies = epsilon < local
    return Amplification(
        epsilon=min(epsilon, local),
        delta=delta if amplifies else 0.0,
        local=local,
        reports=reports,
        crowd=crowd,
        batches=batches,
        method=method if amplifies else "none",
        closed_form=closed_forms.shuffled_epsilon(local, crowd, left),
    )


def _composed(local: float, crowd: int, batches: int, delta: float) -> tuple[float, str]:
    """Return ε of batches with independent reports, and the method by which it was bounded."""
    try:
        from deniable.observers.clone_composition import composed_batches
    except MissingPackage:
        variation = total_variation([binary_response(local)])
        one = clones.exponential_epsilon(local, variation, crowd, delta / (2 * batches))
        return closed_forms.composed_epsilon(one, batches, delta / 2), "exponential"
    return composed_batches(local, crowd, batches, delta), "numerical"


def _bounded(local: float, variation: float, crowd: int, delta: float) -> tuple[float, str]:
    """Return ε of shuffled outputs, one per client, and the method by which it was bounded."""
    try:
        from deniable.observers.clone_sums import numerical_epsilon
    except MissingPackage:
        return clones.exponential_epsilon(local, variation, crowd, delta), "exponential"
    return numerical_epsilon(local, variation, crowd, delta), "numerical"
