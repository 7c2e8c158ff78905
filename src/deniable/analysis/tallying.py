"""What every verb needs: counts of the reports of one question, and the provenance of a result."""

from collections.abc import Sequence
from functools import partial, reduce
from operator import add

from deniable.analysis.source import NO_REPORTS, Source
from deniable.columns import ReportBatch
from deniable.compute.backend import Backend
from deniable.errors import InputError
from deniable.inference.models.base import AnyModel, Counter, ReportCounts
from deniable.results import Provenance
from deniable.results.base import TEST_DATA
from deniable.survey import Question, Survey
from deniable.version import __version__


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
    """Return the provenance of a result about these questions; test data are marked."""
    if survey.testing:
        origin = f"{TEST_DATA}; {origin}" if origin else TEST_DATA
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
