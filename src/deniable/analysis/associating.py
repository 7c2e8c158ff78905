"""associate: how values of several questions go together.

Marginals choose each question's categories; everything else is Other, a category of its own,
since ignoring it biases every cell. Reports then become rows of likelihoods, and the rows a table,
certified to be within a hundredth of a nat of the best.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from math import prod
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from deniable.analysis.candidates import Strings, candidates_of
from deniable.analysis.decoding import count_all, provenance
from deniable.analysis.reading import NO_ANSWER, OTHER, OptionReading, Reading, reading_of
from deniable.analysis.source import Reports, Source
from deniable.columns import ReportBatch
from deniable.compute.executor import Executor, default_executor
from deniable.compute.progress import Progress, told
from deniable.errors import InputError
from deniable.inference.association import (
    association_test,
    conditional_independence,
    mutual_independence,
)
from deniable.inference.collapse import choose_categories, collapse_evidence, how_many_to_fit
from deniable.inference.covariance import covariance
from deniable.inference.design import Design
from deniable.inference.effect import cramers_v
from deniable.inference.em import Fit
from deniable.inference.evidence import Evidence, evidence_of, gather, layout_of
from deniable.inference.hashed import Hashed
from deniable.inference.likelihood import Likelihood, likelihood_rows
from deniable.inference.other import NoOther, likelihood_with_other, mixture_other, product_other
from deniable.inference.piece import Piece
from deniable.inference.shrink import shrunk_evidence
from deniable.inference.solver import maximise_evidence
from deniable.results import Covariance, Joint
from deniable.results.association import AssociationTest
from deniable.results.joint import Tests
from deniable.survey import Question, Survey

OtherModel = Literal["mixture", "product"]


@told
def associate(
    survey: Survey,
    reports: Reports | Any,
    questions: Sequence[str],
    *,
    candidates: Mapping[str, Strings] | None = None,
    top: int = 10,
    other: bool | OtherModel = True,
    fitted: int | None = None,
    alpha: float = 0.05,
    nats: float = 0.01,
    max_passes: int = 200,
    shrink: np.random.Generator | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> Joint:
    """Estimate the joint distribution of two questions or more.

    candidates : for each string question the strings looked for, or what `discover` found; the
        `top` most common of those detected at `alpha` become categories
    other : True or "mixture" models everything else by what the marginal saw of it, "product" by
        independent bits as the paper does; False leaves it out, which biases the table
    fitted : fit up to this many detected strings of each question, then add up those beyond `top`
        into Other; with the mixture about twice `top` unless given. With fewer, intervals of cells
        with Other are too narrow where questions are associated. Tests always refer to the table
        shown.
    nats, max_passes : stop when the table is certified to be this near the best, or give up
    shrink : also give point estimates shrunk towards independence, for weak signals; the
        generator splits reports into folds
    progress : told a stage's name and how much of it is done, from 0 to 1
    """
    if len(questions) < 2 or len(set(questions)) != len(questions):
        raise InputError(f"expected two or more different questions, got {list(questions)}")
    asked = [survey.question(name) for name in questions]
    given = dict(candidates or {})
    if extra := given.keys() - set(questions):
        raise InputError(f"candidates for {sorted(extra)}, which are not among {list(questions)}")
    executor = executor or default_executor()
    source = Source(reports, survey)
    # The paper's model fits what is shown; so does leaving Other out.
    fit_count = fitted or (_fit_count(asked, top) if other in (True, "mixture") else top)
    axes = [
        _axis(q, given.get(q.name), source, top, other, fit_count, alpha, executor) for q in asked
    ]
    rows = source.hold(executor, partial(_rows, axes))
    scale = sum(rows.map(_log_scale))
    shape = [len(axis.labels) for axis in axes]
    layout = partial(_piece, layout_of(executor), survey.cohorts > 1)
    evidence = evidence_of(rows.hold(layout), shape, executor)
    fit = maximise_evidence(evidence, nats=nats, max_passes=max_passes)
    joint = _joint(
        evidence, fit, questions=tuple(questions), labels=[axis.shown for axis in axes],
        groups=[axis.groups for axis in axes], other=tuple(axis.other for axis in axes),
        log_scale=scale, shrink=shrink,
    )  # fmt: skip
    return _with(joint, provenance=provenance(source, asked, int(evidence.weight)))


def associate_likelihoods(
    rows: Sequence[NDArray[np.floating[Any]]],
    labels: Sequence[Sequence[str]],
    *,
    questions: Sequence[str] | None = None,
    strata: NDArray[np.integer[Any]] | None = None,
    nats: float = 0.01,
    executor: Executor | None = None,
) -> Joint:
    """The same from any mechanism at all: one array of P(report | category) a question.

    rows : float[N, categories] each; a factor common to a row does not matter
    strata : integers[N] where reports of different questions share clear fields, such as a cohort
    One question gives its marginal.
    """
    scaled = []
    for array in rows:
        largest = array.max(axis=1, keepdims=True)
        if not (largest > 0).all():
            raise InputError("expected every report to be possible under some category")
        scaled.append(np.asarray(array / largest, np.float32))
    names = tuple(questions or (f"q{i + 1}" for i in range(len(rows))))
    shape = [len(x) for x in labels]
    evidence = gather([tuple(scaled)], shape, executor=executor or default_executor())
    if strata is not None:
        evidence = evidence.stratified(strata)
    fit = maximise_evidence(evidence, nats=nats)
    return _joint(
        evidence, fit, questions=names, labels=[tuple(x) for x in labels],
        groups=[np.arange(n) for n in shape], other=("",) * len(shape), log_scale=0.0, shrink=None,
    )  # fmt: skip


def _fit_count(questions: Sequence[Question], top: int) -> int:
    options = [len(candidates_of(q, None).names) + 1 for q in questions if q.kind != "string"]
    return how_many_to_fit(top, len(questions) - len(options), prod(options))


# --- one question ------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Axis:
    """One question's categories: as fitted, and as shown after adding some up."""

    reading: Reading
    labels: tuple[str, ...]
    shown: tuple[str, ...]
    groups: NDArray[np.intp]
    likelihood: Callable[[NDArray[np.uint8], NDArray[np.integer[Any]]], Likelihood]
    other: str


def _axis(
    question: Question,
    candidates: Strings | None,
    source: Source,
    top: int,
    other: bool | OtherModel,
    fitted: int,
    alpha: float,
    executor: Executor,
) -> _Axis:
    reading = reading_of(question, candidates_of(question, candidates))
    if isinstance(reading, OptionReading) and question.kind == "boolean":
        return _whole(reading, no_answer=False)
    counts = count_all(source, reading, executor)
    marginal = reading.marginal(counts, alpha=alpha, correction="bonferroni")
    if isinstance(reading, OptionReading):
        total = float(marginal.estimate.sum())
        error = float(np.sqrt((marginal.standard_error**2).sum()))
        return _whole(reading, no_answer=bool(other) and 1 - total > 3 * error)
    design, names = reading.source, reading.candidates.names
    assert isinstance(design, Design | Hashed)
    chosen = choose_categories(marginal, top, cap=max(fitted, top))
    if chosen.fitted.size == 0:
        raise InputError(
            f"question {question.name!r}: none of {len(names)} candidates was detected in "
            f"{counts.reports:,} reports; {marginal.detection_threshold:.4f} would be detectable"
        )
    known = design.take(chosen.fitted)
    labels = tuple(names[i] for i in chosen.fitted)
    if not other:
        rows = partial(_known_rows, known)
        groups = np.minimum(np.arange(len(labels)), chosen.shown)
        shown = labels[: chosen.shown] + ((OTHER,) if len(labels) > chosen.shown else ())
        return _Axis(reading, labels, shown, groups, rows, "")
    if other == "product":
        if not isinstance(known, Design):
            raise InputError(
                f'question {question.name!r} is reported by local hashing: other="product", the '
                'paper\'s model of bits, does not apply; leave it at "mixture"'
            )
        model: Any = product_other(counts, known, marginal.estimate[chosen.fitted])
    else:
        model = mixture_other(marginal, design, chosen.fitted)
    absent = isinstance(model, NoOther)
    fit_labels = labels if absent else (*labels, OTHER)
    groups = chosen.groups(other=not absent)
    shown = labels[: chosen.shown] + ((OTHER,) if int(groups.max()) == chosen.shown else ())
    meaning = (
        model.reason
        if isinstance(model, NoOther)
        else f"everything but the {chosen.shown} named values, about {model.mass:.1%} of reports"
    )
    rows = partial(_other_rows, known, model)
    return _Axis(reading, fit_labels, shown, groups, rows, meaning)


def _whole(reading: OptionReading, *, no_answer: bool) -> _Axis:
    """All the options of a question that has them."""
    channel = reading.channel(no_answer=no_answer)
    labels = channel.labels or ()
    meaning = "clients that gave none of the options" if NO_ANSWER in labels else ""
    rows = partial(_known_rows, channel)
    return _Axis(reading, labels, labels, np.arange(len(labels)), rows, meaning)


def _known_rows(
    known: Any, bits: NDArray[np.uint8], stratum: NDArray[np.integer[Any]]
) -> Likelihood:
    return likelihood_rows(bits, stratum, known)


def _other_rows(
    known: Any, model: Any, bits: NDArray[np.uint8], stratum: NDArray[np.integer[Any]]
) -> Likelihood:
    return likelihood_with_other(bits, stratum, known, model)


# --- reports to rows to a table ------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Rows:
    """Likelihood rows of some reports, one float32[N, m] a question, and their cohorts [N]."""

    rows: tuple[NDArray[np.float32], ...]
    log_scale: float
    cohorts: NDArray[np.uint16]


def _rows(axes: Sequence[_Axis], batch: ReportBatch) -> _Rows:
    """Likelihood rows; flat in a question of which a report says nothing."""
    found = [axis.likelihood(*axis.reading.read(batch)) for axis in axes]
    scale = float(sum(f.log_scale.sum() for f in found))
    return _Rows(tuple(f.rows for f in found), scale, batch.cohort)


def _log_scale(rows: _Rows) -> float:
    return rows.log_scale


def _piece(layout: Any, by_cohort: bool, rows: _Rows) -> Piece:
    piece: Piece = layout(rows.rows, None, rows.cohorts if by_cohort else None)
    return piece


def _joint(
    evidence: Evidence,
    fit: Fit,
    *,
    questions: tuple[str, ...],
    labels: Sequence[tuple[str, ...]],
    groups: Sequence[NDArray[np.intp]],
    other: tuple[str, ...],
    log_scale: float,
    shrink: np.random.Generator | None,
) -> Joint:
    whole = covariance(evidence, fit.table)
    shown = whole.collapsed(groups)
    intervals = shown.intervals()
    point, strength = None, None
    if shrink is not None:
        found = shrunk_evidence(evidence, rng=shrink)
        point = Covariance(found.fit.table, np.zeros_like(whole.matrix)).collapsed(groups).table
        strength = found.strength
    tests = Tests(*_tests(evidence, fit, whole, groups))
    return Joint(
        questions=questions, labels=tuple(labels), table=shown.table,
        standard_error=shown.standard_errors, low=intervals.low, high=intervals.high,
        p_value=shown.p_values(), covariance=shown.matrix,
        log_likelihood=fit.log_likelihood + log_scale, gap_nats=fit.gap_nats, passes=fit.passes,
        converged=fit.converged, reports=int(evidence.weight), other=other, shrunk=point,
        shrinkage=strength, tests=tests,
    )  # fmt: skip


def _tests(
    evidence: Evidence,
    fit: Fit,
    whole: Covariance,
    groups: Sequence[NDArray[np.intp]],
) -> tuple[Any, ...]:
    """What `Tests` holds: all about the categories that are shown, made when first asked for."""

    @cache
    def shown() -> tuple[Evidence, Fit | None]:
        collapsed = collapse_evidence(evidence, fit.table, groups)
        return collapsed, fit if collapsed is evidence else None

    def association(method: str) -> AssociationTest:
        about, its_fit = shown()
        return association_test(about, method=method, fit=its_fit)

    def mutual() -> AssociationTest:
        about, its_fit = shown()
        return mutual_independence(about, fit=its_fit)

    def conditional(pair: tuple[int, int]) -> AssociationTest:
        about, its_fit = shown()
        return conditional_independence(about, pair=pair, fit=its_fit)

    return association, lambda: cramers_v(evidence, whole, groups=groups), mutual, conditional


def _with(joint: Joint, **changes: Any) -> Joint:
    from dataclasses import replace

    return replace(joint, **changes)
