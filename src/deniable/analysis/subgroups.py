"""The part of `decode` that looks at a subgroup: the clients that gave certain answers.

The joint table of the question and of the conditions is fitted as `associate` fits it. Its cells
inside the subgroup, divided by the share of the subgroup, are the answer.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from math import prod
from operator import itemgetter
from typing import cast

import numpy as np
from scipy import stats

from deniable.analysis.associating import likelihood_rows
from deniable.analysis.categories import Strings, candidates_of, check_listed
from deniable.analysis.source import Source
from deniable.analysis.tallying import count_all
from deniable.arguments import BOOLEANS
from deniable.compute.backend import Backend
from deniable.errors import InputError, did_you_mean
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
from deniable.protocols import Bins
from deniable.results import Covariance, Histogram, Marginal
from deniable.results.covariance import Interval
from deniable.results.joint import OTHER
from deniable.results.marginal import Measured
from deniable.survey import Question, Survey

Answer = str | bool
Where = Mapping[str, Answer | Iterable[Answer]]
"""Answers that put a client into a subgroup, by question."""
MAX_CONDITION_STRINGS = 10
"""Candidates of a condition's string question that get categories besides the answers asked for."""


@dataclass(frozen=True)
class Subgroup:
    """A question, and the answers to other questions that select clients.

    Parameters
    ----------
    questions : tuple of Question
        First the question whose distribution is wanted, then those of the conditions.
    answers : tuple of tuple of str
        For each condition, the answers of which a client must have given one.
    """

    questions: tuple[Question, ...]
    answers: tuple[tuple[str, ...], ...]

    @property
    def where(self) -> dict[str, tuple[str, ...]]:
        """The answers, by question."""
        return {q.name: a for q, a in zip(self.questions[1:], self.answers, strict=True)}

    @classmethod
    def of(cls, survey: Survey, question: str, where: Where) -> "Subgroup":
        """Return a subgroup; raise InputError if a condition cannot be asked for."""
        if not isinstance(where, Mapping):
            raise InputError(
                'where must map questions to answers, such as {"browser": "Firefox"}, got '
                f"{type(where).__name__}"
            )
        if question in where:
            raise InputError(
                f"question {question!r} cannot be decoded and be a condition at the same time: "
                "leave it out of where (--where on the command line)"
            )
        asked, *others = map(survey.question, (question, *where))
        return cls((asked, *others), tuple(_answers(q, where[q.name]) for q in others))


def _answers(question: Question, given: Answer | Iterable[Answer]) -> tuple[str, ...]:
    """Return the labels of the answers that a condition gives, without duplicates."""
    values = list(given) if isinstance(given, Iterable) and not isinstance(given, str) else [given]
    if not values:
        raise InputError(f"where gives no answer to question {question.name!r}")
    if question.kind == "string":
        if wrong := [v for v in values if not isinstance(v, str)]:
            raise InputError(
                f"question {question.name!r} is a string question: where must give a string, got "
                f"{wrong[0]!r}"
            )
        return tuple(dict.fromkeys(map(str, values)))
    if question.kind == "boolean":
        options = {word: "yes" if value else "no" for word, value in BOOLEANS.items()}
        keys = [str(v).strip().lower() for v in values]
    else:
        options = {label: label for label in question.protocol.mechanisms[0].labels}
        keys = [str(v) for v in values]
    for key, value in zip(keys, values, strict=True):
        if key not in options:
            raise InputError(
                f"where: {value!r} is not an answer to question {question.name!r}, which has the "
                f"answers {', '.join(dict.fromkeys(options.values()))}."
                f"{did_you_mean(key, options)}"
            )
    return tuple(dict.fromkeys(options[key] for key in keys))


def decode_subgroup(
    subgroup: Subgroup,
    source: Source,
    candidates: Mapping[str, Strings],
    executor: Backend,
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
    executor : Backend
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
    models, axes = _axes(subgroup, tables, counted, alpha)
    by_name = {q.name: model for q, model in zip(questions, models, strict=True)}
    rows = partial(likelihood_rows, by_name, executor.arrays, cohorts > 1)
    held = source.hold(executor, rows).hold(itemgetter(0))
    evidence = evidence_of(held, [len(axis.labels) for axis in axes], executor.arrays)
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


def histogram_of(question: Question, marginal: Marginal, covariance: Floats) -> Histogram:
    """Return the marginal of a number question as a histogram."""
    protocol = cast(Bins, question.protocol)
    return Histogram.of(marginal, np.array(protocol.edges), covariance, protocol.unit)


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
    alpha: float,
) -> tuple[list[AnyModel], list[Axis]]:
    """Return the models of the fitted categories, and the axes, the question's own first.

    The question gets a category for each string that is detected among all clients.
    """
    settings = [TableSettings(top=MAX_CELLS, alpha=alpha)]
    for answers in subgroup.answers:
        settings.append(TableSettings(top=MAX_CONDITION_STRINGS, alpha=alpha, required=answers))
    names = [question.name for question in subgroup.questions]
    fitted = [
        model.fitted(name, count, each)
        for model, name, count, each in zip(models, names, counted, settings, strict=True)
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
    threshold = float(stats.norm.isf(cutoff) * np.median(errors)) if fitted.any() else np.nan
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
