"""The categories of each question in a joint table, and the result of a table over them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import prod

from deniable.analysis.candidates import Strings, candidates_of
from deniable.inference.joint.collapse import how_many_to_fit
from deniable.inference.models import model_of
from deniable.inference.models.base import AnyModel, Axis, ReportCounts, TableSettings
from deniable.results import Covariance, Joint
from deniable.results.joint import Tests
from deniable.survey import Question


def axes_of(
    questions: Sequence[Question],
    candidates: Mapping[str, Strings],
    count: Callable[[Question, AnyModel], ReportCounts],
    settings: TableSettings,
) -> tuple[list[AnyModel], list[Axis]]:
    """The model of each question's fitted categories, and how they are shown.

    count : counts a question's reports for the marginal of its model
    """
    # The paper's model fits what is shown; so does leaving Other out.
    if not settings.fitted and settings.other in (True, "mixture"):
        options = [
            len(q.protocol.mechanisms[0].labels) + 1 for q in questions if q.kind != "string"
        ]
        most = how_many_to_fit(settings.top, len(questions) - len(options), prod(options))
        settings = replace(settings, fitted=most)
    models, axes = [], []
    for question in questions:
        whole = model_of(candidates_of(question, candidates.get(question.name)))
        model, axis = whole.fitted(question.name, partial(count, question, whole), settings)
        models.append(model)
        axes.append(axis)
    return models, axes


def joint_of(
    questions: Sequence[str], axes: Sequence[Axis], shown: Covariance, reports: int, tests: Tests
) -> Joint:
    """The result of a table with its covariance.

    Estimates that have no likelihood have converged in one pass.
    """
    intervals = shown.intervals()
    return Joint(
        questions=tuple(questions),
        labels=tuple(axis.shown for axis in axes),
        table=shown.table,
        standard_error=shown.standard_errors,
        low=intervals.low,
        high=intervals.high,
        p_value=shown.p_values(),
        covariance=shown.matrix,
        log_likelihood=float("nan"),
        gap_nats=float("nan"),
        passes=1,
        converged=True,
        reports=reports,
        other=tuple(axis.meaning for axis in axes),
        tests=tests,
    )
