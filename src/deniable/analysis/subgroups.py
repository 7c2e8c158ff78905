"""The part of `decode` that looks at a subgroup: the clients that gave certain answers.

The joint table of the question and of the conditions is fitted as `associate` fits it. Its cells
inside the subgroup, divided by the share of the subgroup, are the answer.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from math import prod
from operator import itemgetter

import numpy as np

from deniable.analysis.associating import likelihood_rows
from deniable.analysis.categories import Strings, candidates_of, check_listed
from deniable.analysis.conditions import Subgroup
from deniable.analysis.source import Source
from deniable.analysis.tallying import count_all, has_tests, histogram_of
from deniable.compute.executors import Executor
from deniable.errors import InputError
from deniable.inference.distributions import normal_quantile
from deniable.inference.joint.collapse import collapse_influence
from deniable.inference.joint.conditioning import Rates, one_step
from deniable.inference.joint.evidence import Evidence, evidence_of
from deniable.inference.joint.solver import MAX_CELLS, maximise
from deniable.inference.joint.uncertainty import covariance, stratum_influence, widen_errors
from deniable.inference.joint.unlisted import add_unlisted
from deniable.inference.marginal.detection import Correction, rejection_cutoff
from deniable.inference.models import Candidates, model_of
from deniable.inference.models.base import AnyModel, Axis, ReportCounts, TableSettings
from deniable.kernels.array_types import Floats, Indices
from deniable.results import Covariance, Marginal
from deniable.results.covariance import Interval
from deniable.results.joint import OTHER
from deniable.results.marginal import Measured

MAX_CONDITION_STRINGS = 10
"""Candidates of a condition's string question that get categories besides the answers asked for."""


def decode_subgroup(
    subgroup: Subgroup,
    source: Source,
    candidates: Mapping[str, Strings],
    executor: Executor,
    *,
    alpha: float,
    correction: Correction,
    inflation: float,
) -> Marginal:
    """Estimate the distribution of a question within a subgroup.

    Parameters
    ----------
    subgroup : Subgroup
        The question, and the conditions.
    source : Source
        The reports.
    candidates : mapping
        Candidates of string questions, by question.
    executor : Executor
        Where the computation runs.
    alpha, correction
        Significance level, and how it accounts for several candidates; see `decode`.
    inflation : float
        Factor of all variances, for clients that report repeatedly.
    """
    questions, cohorts = subgroup.questions, source.survey.cohorts
    listed = _candidates(subgroup, candidates)
    tables = [model_of(each) for each in listed]
    counted = [
        cache(partial(count_all, source, executor, q, model))
        for q, model in zip(questions, tables, strict=True)
    ]
    tested = has_tests(source.survey, questions, source.count, inflation)
    models, axes = _axes(subgroup, tables, counted, TableSettings(alpha=alpha, tested=tested))
    by_name = {q.name: model for q, model in zip(questions, models, strict=True)}
    rows = partial(likelihood_rows, by_name, cohorts > 1)
    held = source.hold(executor, rows).hold(itemgetter(0))
    evidence = evidence_of(held, [len(axis.labels) for axis in axes])
    rates = Rates(_cells(evidence, axes, subgroup, inflation))
    names, fitted = listed[0].names, axes[0].labels
    rows_of = np.array([fitted.index(name) if name in fitted else -1 for name in names], np.intp)
    among_all = tables[0].marginal(counted[0](), alpha=alpha, correction=correction).p_value
    marginal = replace(
        _marginal(rates, rows_of, among_all, alpha, correction),
        labels=names,
        question=questions[0].name,
        reports=counted[0]().reports if questions[0].kind == "string" else source.count,
        where=subgroup.where,
    )
    if questions[0].kind != "number":
        return marginal
    return histogram_of(questions[0], marginal, rates.covariance[np.ix_(rows_of, rows_of)])


def _candidates(subgroup: Subgroup, given: Mapping[str, Strings]) -> list[Candidates]:
    """Return the candidates of all questions; those of a condition include its answers."""
    asked, *others = subgroup.questions
    check_listed(given, [question.name for question in subgroup.questions])
    listed = [candidates_of(asked, given.get(asked.name))]
    for question, answers in zip(others, subgroup.answers, strict=True):
        strings: Strings | None = given.get(question.name)
        if question.kind == "string":
            known = () if strings is None else candidates_of(question, strings).names
            strings = [*answers, *known]
        listed.append(candidates_of(question, strings))
    return listed


def _axes(
    subgroup: Subgroup,
    models: Sequence[AnyModel],
    counted: Sequence[Callable[[], ReportCounts]],
    settings: TableSettings,
) -> tuple[list[AnyModel], list[Axis]]:
    """Return the models of the fitted categories, and the axes, the question's own first.

    The question gets a category for each string that is detected among all clients.
    """
    by_question = [replace(settings, top=MAX_CELLS)]
    for answers in subgroup.answers:
        by_question.append(replace(settings, top=MAX_CONDITION_STRINGS, required=answers))
    names = [question.name for question in subgroup.questions]
    fitted = [
        model.fitted(name, count, each)
        for model, name, count, each in zip(models, names, counted, by_question, strict=True)
    ]
    axes = [axis for _, axis in fitted]
    sizes = [len(axis.labels) for axis in axes]
    if prod(sizes) > MAX_CELLS:
        parts = " × ".join(f"{s} of {n!r}" for s, n in zip(sizes, names, strict=True))
        raise InputError(
            f"the table of this subgroup would have {prod(sizes):,} cells ({parts}), more than the "
            f"limit of {MAX_CELLS:,}: list fewer candidates, or give fewer conditions"
        )
    return [model for model, _ in fitted], axes


def _cells(
    evidence: Evidence, axes: Sequence[Axis], subgroup: Subgroup, inflation: float
) -> Covariance:
    """Return the cells of the subgroup, one per fitted category of the question."""
    fit = maximise(evidence)
    fitted = covariance(evidence, fit.table)
    # On the axes of conditions, category 0 is inside the subgroup, and category 1 outside.
    groups = [np.arange(len(axes[0].labels))]
    for axis, answers in zip(axes[1:], subgroup.answers, strict=True):
        groups.append(np.array([int(label not in answers) for label in axis.labels], np.intp))
    table = one_step(evidence, fitted).table
    shown = Covariance(table, fitted.matrix).collapsed(groups)
    with_other = [axis.labels[-1] == OTHER for axis in axes]
    if any(with_other):
        influence = stratum_influence(evidence, fitted)
        widened = add_unlisted(fitted, influence, [axis.unlisted for axis in axes])
        shown = Covariance(table, widened.matrix).collapsed(groups)
        shown = widen_errors(shown, collapse_influence(influence, groups), with_other)
    numbered = np.arange(shown.table.size).reshape(len(axes[0].labels), -1)[:, 0]
    matrix = inflation * shown.matrix[np.ix_(numbered, numbered)]
    return Covariance(shown.table.ravel()[numbered], matrix)


def _marginal(
    rates: Rates, rows: Indices, among_all: Floats, alpha: float, correction: Correction
) -> Marginal:
    """Return the rates of all candidates within a subgroup.

    rows : cell of each candidate; −1 if it has none, because it was not detected among all clients
    among_all : float64[m], p-values of "no client at all holds it"
    """
    fitted = rows >= 0
    cells = np.eye(len(rates.cells.table))[rows]
    within = rates.of(cells)
    # A value of the subgroup is one of all clients. The test among all clients is exact in small
    # crowds, where the normal approximation within the subgroup is not.
    p_value = np.where(fitted, np.maximum(rates.absence_p_values()[rows], among_all), np.nan)
    # All candidates count as tested, also those that only the reports of all clients ruled out.
    cutoff = rejection_cutoff(np.nan_to_num(p_value, nan=1.0), alpha, correction)
    detected = fitted & (p_value <= cutoff)
    found = _measured(rates.of(cells[detected].sum(axis=0, keepdims=True)))
    errors = rates.cells.standard_errors[rows[fitted]]
    threshold = normal_quantile(cutoff) * float(np.median(errors)) if fitted.any() else np.nan
    share = rates.share
    return Marginal(
        estimate=np.where(fitted, within.estimate, np.nan),
        standard_error=np.where(fitted, within.standard_error, np.inf),
        low=np.where(fitted, within.low, 0.0),
        high=np.where(fitted, within.high, 1.0),
        p_value=p_value,
        detected=detected,
        identified=fitted & rates.known,
        groups=(),
        detection_threshold=min(threshold / share.estimate, 1.0) if rates.known else np.nan,
        mass_found=found,
        mass_unexplained=Measured(
            1 - found.estimate, found.standard_error, 1 - found.high, 1 - found.low
        ),
        background=np.empty(0),
        overdispersion=np.nan,
        reports=0,
        alpha=alpha,
        correction=correction,
        subgroup=share,
    )


def _measured(interval: Interval) -> Measured:
    """Return the only rate of an interval."""
    return Measured(
        *(float(getattr(interval, f)[0]) for f in ("estimate", "standard_error", "low", "high"))
    )
