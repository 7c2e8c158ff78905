"""decode: how common each value of one question is."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial, reduce
from operator import add

from deniable.analysis.categories import Strings, candidates_of
from deniable.analysis.source import Reports, Source
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
    """Estimate how common each candidate is, with intervals, and which are there at all.

    reports : a batch, a file, an Arrow table, a store, or any number of these
    candidates : the strings looked for, or what `discover` found; a choice or boolean has its own.
        Given twice, they count once. Strings that nobody listed are allowed for.
    alpha, correction : false detections are controlled at alpha over all candidates ("holm", or
        "bonferroni" with less power), as a share of the detected ("fdr"), or for each by itself
        (None)
    reports_per_client : reports of one client share its permanent noise, and say less together
        than those of as many clients: above 1, standard errors and tests allow for it
    progress : told a stage's name and how much of it is done, from 0 to 1
    """
    asked = survey.question(question)
    model = model_of(candidates_of(asked, candidates))
    source = Source(reports, survey)
    counts = count_all(source, executor or default_backend(), asked, model)
    effect = repetition_effect(asked.protocol.mechanisms[0], reports_per_client)
    effective = counts if effect == 1 else counts.as_if_from(counts.reports / effect)
    found = model.marginal(effective, alpha=alpha, correction=correction)
    return replace(
        found,
        question=question,
        reports=counts.reports,
        provenance=provenance_of(survey, (asked,), counts.reports, source.origin),
    )


def repetition_effect(mechanism: Mechanism, reports_per_client: float) -> float:
    """By how much several reports of each client widen the variance over as many clients' reports.

    Two reports of a bit that the value does not set correlate by ρ = (q−p)²φ(1−φ)/(p*(1−p*)); a
    mean over R of them has 1 + (R−1)ρ times the variance of R independent ones.
    """
    if not reports_per_client >= 1:
        raise InputError(f"expected 1 or more reports a client, got {reports_per_client}")
    noise = mechanism.noise
    phi, gain = noise.flip / ONE, (noise.q - noise.p) / ONE
    p_star = float(noise.p_star)
    correlation = gain**2 * phi * (1 - phi) / (p_star * (1 - p_star))
    return 1 + (reports_per_client - 1) * correlation


def count_all(
    source: Source, executor: Backend, question: Question, model: AnyModel
) -> ReportCounts:
    """What the marginal of a model needs, of all reports."""
    parts = source.map(executor, partial(_count, question.name, model.counter()))
    counts: ReportCounts = reduce(add, parts)
    if not counts.reports:
        raise InputError("expected reports, got none")
    return counts


def _count(question: str, counter: Counter, batch: ReportBatch) -> ReportCounts:
    return counter(batch.column(question))


def provenance_of(
    survey: Survey, questions: Sequence[Question], reports: int, origin: str
) -> Provenance:
    """Where a result of these questions came from."""
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
