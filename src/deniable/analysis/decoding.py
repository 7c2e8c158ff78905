"""The verb `decode`: estimate how common each value of one question is."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial, reduce
from operator import add

from deniable.analysis.categories import Strings, candidates_of
from deniable.analysis.source import NO_REPORTS, Reports, Source
from deniable.columns import ReportBatch
from deniable.compute.backend import Backend
from deniable.compute.named import default_backend
from deniable.compute.progress import Progress, reports_progress
from deniable.errors import InputError
from deniable.inference.marginal.detection import Correction
from deniable.inference.models import model_of
from deniable.inference.models.base import AnyModel, Counter, ReportCounts
from deniable.mechanisms import Mechanism
from deniable.mechanisms.noise import ONE
from deniable.results import Marginal, Provenance
from deniable.survey import Question, Survey
from deniable.version import __version__


@reports_progress
def decode(
    survey: Survey,
    reports: Reports,
    question: str,
    candidates: Strings | None = None,
    *,
    alpha: float = 0.05,
    correction: Correction = "holm",
    reports_per_client: float = 1.0,
    executor: Backend | None = None,
    progress: Progress | None = None,
) -> Marginal:
    """Estimate how common each value of a question is.

    For a string question, the values are the candidates. Clients may also hold strings that
    are not among the candidates: these do not bias the estimates.

    Parameters
    ----------
    survey : Survey
        Survey that the reports answer.
    reports : ReportBatch, str, Path, Arrow table, data frame, Store, Stored, or several of these
        Reports to analyse: in memory, in files, or in a store.
    question : str
        Name of the question to decode.
    candidates : iterable of str, or Discovery, optional
        Strings to look for, or the result of `discover`. Required for a string question, and not
        allowed for a choice or boolean, whose options are known. Duplicates are ignored.
    alpha : float, default 0.05
        Significance level of the decision which values are present.
    correction : {"holm", "bonferroni", "fdr"} or None, default "holm"
        How `alpha` accounts for testing many values. "holm" and "bonferroni" bound the probability
        of any false detection (family-wise error rate); "holm" detects at least as much. "fdr"
        bounds the expected share of false detections among all detections. None tests each value
        at `alpha`.
    reports_per_client : float, default 1.0
        Average number of reports per client. Reports of one client share its permanent noise, so
        they hold less information than reports of as many clients. Standard errors, intervals
        and tests account for that.
    executor : Backend, optional
        Where the computation runs. Threads of this process by default.
    progress : callable, optional
        Called with the name of the current stage and the fraction of it that is done.

    Returns
    -------
    Marginal
        One row per value: estimate, standard error, 95% confidence interval, p-value, and
        whether the value was detected.

    Raises
    ------
    InputError
        If the survey has no such question, a string question has no candidates, there are no
        reports, or the reports belong to another survey.

    Examples
    --------
    >>> import numpy as np
    >>> from deniable import Survey, decode, simulate
    >>> survey = Survey.from_toml('''
    ... name = "browsers"
    ... version = 1
    ... owner = "you@example.com"
    ... description = "Which browser do you use?"
    ... expires = 2999-12-31
    ... collect = "once"
    ... [questions.browser]
    ... kind = "choice"
    ... options = ["Firefox", "Safari"]
    ... epsilon = 2.0
    ... ''')
    >>> answers = {"browser": ["Firefox"] * 6000 + ["Safari"] * 4000}
    >>> reports = simulate(survey, answers, rng=np.random.default_rng(1))
    >>> result = decode(survey, reports, "browser")
    >>> result.labels, result.estimate.round(1).tolist()
    (('Firefox', 'Safari'), [0.6, 0.4])
    """
    asked = survey.question(question)
    model = model_of(candidates_of(asked, candidates))
    source = Source(reports, survey)
    counts = count_all(source, executor or default_backend(), asked, model)
    inflation = variance_inflation(asked.protocol.mechanisms[0], reports_per_client)
    effective = counts if inflation == 1 else counts.rescaled(counts.reports / inflation)
    marginal = model.marginal(effective, alpha=alpha, correction=correction)
    return replace(
        marginal,
        question=question,
        reports=counts.reports,
        provenance=provenance_of(survey, (asked,), counts.reports, source.origin),
    )


def variance_inflation(mechanism: Mechanism, reports_per_client: float) -> float:
    """Return how much larger variances are than if every report came from another client.

    Two reports of one client about a bit that its value does not set have the correlation
    ρ = (q−p)²φ(1−φ)/(p*(1−p*)). The mean of R such reports has 1 + (R−1)ρ times the variance of
    the mean of R independent reports.
    """
    if not reports_per_client >= 1:
        raise InputError(f"reports_per_client must be at least 1, got {reports_per_client}")
    noise = mechanism.noise
    phi, gain = noise.flip / ONE, (noise.q - noise.p) / ONE
    p_star = float(noise.p_star)
    correlation = gain**2 * phi * (1 - phi) / (p_star * (1 - p_star))
    return 1 + (reports_per_client - 1) * correlation


def count_all(
    source: Source, executor: Backend, question: Question, model: AnyModel
) -> ReportCounts:
    """Count all reports of a question, as the marginal of its model needs them."""
    parts = source.map(executor, partial(_count, question.name, model.counter()))
    counts: ReportCounts = reduce(add, parts)
    if not counts.reports:
        raise InputError(NO_REPORTS)
    return counts


def _count(question: str, counter: Counter, batch: ReportBatch) -> ReportCounts:
    """Count one batch."""
    return counter(batch.column(question))


def provenance_of(
    survey: Survey, questions: Sequence[Question], reports: int, origin: str
) -> Provenance:
    """Return the provenance of a result about these questions."""
    return Provenance(
        survey=survey.name,
        version=survey.version,
        digest=survey.sha256.hex(),
        questions=tuple(q.name for q in questions),
        parameters={q.name: q.protocol.canonical() for q in questions},
        epsilon={q.name: q.loss.per_report for q in questions},
        reports=reports,
        origin=origin,
        library=__version__,
    )
