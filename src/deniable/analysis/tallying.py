"""What every verb needs: counts and checks of the reports, and the provenance of a result."""

from collections.abc import Sequence
from functools import partial, reduce
from operator import add
from typing import cast

import numpy as np

from deniable.analysis.source import NO_REPORTS, Source
from deniable.columns import ReportBatch
from deniable.compute.executors import Executor
from deniable.errors import InputError
from deniable.inference.fit_check import FitTest, fit_check
from deniable.inference.fit_counts import FitCounter, FitCounts
from deniable.inference.models.base import AnyModel, Counter, ReportCounts
from deniable.kernels.array_types import Floats
from deniable.protocols import Bins
from deniable.results import FitCheck, Histogram, Marginal, Provenance
from deniable.results.base import TEST_DATA
from deniable.survey import Question, Survey
from deniable.survey.detection import is_tested
from deniable.version import __version__


def count_all(
    source: Source, executor: Executor, question: Question, model: AnyModel
) -> ReportCounts:
    """Count all reports of a question, as the marginal of its model needs them.

    The counts may be 0 although there are reports, if none of them holds a whole string.
    """
    parts = source.map(executor, partial(_count, question.name, model.counter()))
    counts: ReportCounts = reduce(add, parts)
    if not counts.reports and not source.count:
        raise InputError(NO_REPORTS)
    return counts


def _count(question: str, counter: Counter, batch: ReportBatch) -> ReportCounts:
    """Count one batch."""
    return counter(batch.column(question))


def count_and_check(
    source: Source, executor: Executor, question: Question, model: AnyModel
) -> tuple[ReportCounts, FitCounts]:
    """Count all reports of a question as `count_all` does, and what `fit_check` needs to know."""
    check = FitCounter((question.name,), source.count)
    function = partial(_count_both, question.name, model.counter(), check)
    counts, checks = zip(*source.map(executor, function), strict=True)
    total: ReportCounts = reduce(add, counts)
    if not total.reports and not source.count:
        raise InputError(NO_REPORTS)
    return total, reduce(add, checks)


def _count_both(
    question: str, counter: Counter, check: FitCounter, batch: ReportBatch
) -> tuple[ReportCounts, FitCounts]:
    """Count one batch for both purposes."""
    return _count(question, counter, batch), check(batch)


def check_all(
    source: Source,
    executor: Executor,
    questions: Sequence[Question],
    shares: Sequence[FitTest] = (),
    reports_per_client: float = 1.0,
) -> FitCheck:
    """Check whether the reports of these questions look as the survey promises."""
    counter = FitCounter(tuple(q.name for q in questions), source.count)
    counts: FitCounts = reduce(add, source.map(executor, counter))
    return fit_check(source.survey, questions, counts, shares, reports_per_client)


def has_tests(
    survey: Survey, questions: Sequence[Question], reports: float, reports_per_client: float = 1.0
) -> bool:
    """Return whether results about these questions, from this many reports, are tested."""
    repeated = survey.collect == "repeatedly" or reports_per_client > 1
    return is_tested(questions, reports, reports / reports_per_client if repeated else None)


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


def histogram_of(question: Question, marginal: Marginal, covariance: Floats) -> Histogram:
    """Return the marginal of a number question as a histogram."""
    protocol = cast(Bins, question.protocol)
    return Histogram.of(marginal, np.array(protocol.edges), covariance, protocol.unit)
