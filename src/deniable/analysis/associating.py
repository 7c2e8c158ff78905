"""associate: how values of several questions go together.

Marginals choose each question's categories; everything else is Other, a category of its own,
since ignoring it biases every cell. Reports then become rows of likelihoods, and the rows a table,
certified to be within a hundredth of a nat of the best.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from operator import itemgetter

import numpy as np

from deniable.analysis.categories import Strings, axes_of, joint_of
from deniable.analysis.counting import pair_counts
from deniable.analysis.decoding import count_all, provenance_of
from deniable.analysis.from_counts import associate_counts
from deniable.analysis.source import Part, Reports, Source
from deniable.columns import ReportBatch
from deniable.compute.arrays import ArrayKernels
from deniable.compute.backend import Backend
from deniable.compute.named import default_backend
from deniable.compute.progress import Progress, reports_progress
from deniable.compute.rows import LikelihoodRows
from deniable.errors import InputError
from deniable.inference.association.effect_size import cramers_v
from deniable.inference.association.independence import (
    association_test,
    conditional_independence,
    mutual_independence,
)
from deniable.inference.joint.collapse import collapse_evidence, collapse_influence
from deniable.inference.joint.evidence import Evidence, evidence_of, gather
from deniable.inference.joint.shrinkage import shrunk
from deniable.inference.joint.solver import JointFit, maximise
from deniable.inference.joint.uncertainty import (
    covariance,
    stratum_influence,
    widened,
)
from deniable.inference.linear.joint_counts import PairCounts
from deniable.inference.models.base import AnyModel, Axis, OtherModel, TableSettings
from deniable.kernels.array_types import Indices, Integers, Table
from deniable.results import Covariance, Joint
from deniable.results.association import AssociationTest
from deniable.results.joint import Tests
from deniable.survey import Survey


@reports_progress
def associate(
    survey: Survey,
    reports: Reports | PairCounts | Iterable[Part | PairCounts],
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
    from_counts: bool = False,
    executor: Backend | None = None,
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
    from_counts : estimate two questions linearly from counts of bits that are set together, made
        in one pass: `reports` may be such counts too, made earlier and elsewhere (`pair_counts`).
        Needs no reports twice, and is less exact where strings have several hashes
    progress : told a stage's name and how much of it is done, from 0 to 1
    """
    if len(questions) < 2 or len(set(questions)) != len(questions):
        raise InputError(f"expected two or more different questions, got {list(questions)}")
    asked = [survey.question(name) for name in questions]
    given = dict(candidates or {})
    if extra := given.keys() - set(questions):
        raise InputError(f"candidates for {sorted(extra)}, which are not among {list(questions)}")
    executor = executor or default_backend()
    settings = TableSettings(top, other, fitted, alpha)
    if from_counts or isinstance(reports, PairCounts):
        if shrink is not None:
            raise InputError("shrinking needs folds of reports, which counts do not have")
        counts = pair_counts(survey, reports, questions, executor=executor)
        return associate_counts(survey, counts, given, settings)
    source = Source(reports, survey)
    models, axes = axes_of(asked, given, partial(count_all, source, executor), settings)
    by_name = dict(zip(questions, models, strict=True))
    rows = source.hold(executor, partial(_rows, by_name, executor.arrays, survey.cohorts > 1))
    shape = [len(axis.labels) for axis in axes]
    evidence = evidence_of(rows.hold(itemgetter(0)), shape, executor.arrays)
    fit = maximise(evidence, nats=nats, max_passes=max_passes)
    joint = _joint(questions, axes, evidence, fit, shrink)
    return replace(
        joint,
        log_likelihood=joint.log_likelihood + sum(rows.map(itemgetter(1))),
        provenance=provenance_of(survey, asked, joint.reports, source.origin),
    )


def associate_likelihoods(
    rows: Sequence[Table],
    labels: Sequence[Sequence[str]],
    *,
    questions: Sequence[str] | None = None,
    strata: Integers | None = None,
    nats: float = 0.01,
    executor: Backend | None = None,
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
    names = questions or [f"q{i + 1}" for i in range(len(rows))]
    axes = [Axis.whole(each) for each in labels]
    shape = [len(axis.labels) for axis in axes]
    evidence = gather([tuple(scaled)], shape, executor=executor or default_backend())
    if strata is not None:
        evidence = evidence.stratified(strata)
    return _joint(names, axes, evidence, maximise(evidence, nats=nats), None)


# --- reports to rows to a table ------------------------------------------------------------------


def _rows(
    models: Mapping[str, AnyModel], arrays: ArrayKernels, by_cohort: bool, batch: ReportBatch
) -> tuple[LikelihoodRows, float]:
    """Likelihood rows, flat in a question that a report says nothing of; and their log-scale."""
    columns = [batch.column(name) for name in models]
    made = [
        model.likelihood(column.bits, column.stratum, arrays)
        for model, column in zip(models.values(), columns, strict=True)
    ]
    rows = arrays.lay_out([each.rows for each in made], strata=batch.cohort if by_cohort else None)
    return rows, float(sum(each.log_scale.sum() for each in made))


def _joint(
    questions: Sequence[str],
    axes: Sequence[Axis],
    evidence: Evidence,
    fit: JointFit,
    shrink: np.random.Generator | None,
) -> Joint:
    """The result of a fit, its categories added up into those that are shown."""
    whole = covariance(evidence, fit.table)
    groups = [axis.groups for axis in axes]
    shown = whole.collapsed(groups)
    if any(rest := [axis.ends_with_other for axis in axes]):
        influence = collapse_influence(stratum_influence(evidence, whole), groups)
        shown = widened(shown, influence, rest)
    point, strength = None, None
    if shrink is not None:
        towards = shrunk(evidence, rng=shrink)
        point = Covariance(towards.fit.table, np.zeros_like(whole.matrix)).collapsed(groups).table
        strength = towards.strength
    tests = _tests(evidence, fit, whole, groups)
    return replace(
        joint_of(questions, axes, shown, int(evidence.weight), tests),
        log_likelihood=fit.log_likelihood,
        gap_nats=fit.gap_nats,
        passes=fit.passes,
        converged=fit.converged,
        shrunk=point,
        shrinkage=strength,
    )


def _tests(
    evidence: Evidence, fit: JointFit, whole: Covariance, groups: Sequence[Indices]
) -> Tests:
    """Tests about the categories that are shown, made when first asked for."""

    @cache
    def shown() -> tuple[Evidence, JointFit | None]:
        collapsed = collapse_evidence(evidence, fit.table, groups)
        return collapsed, fit if collapsed is evidence else None

    def about(test: Callable[..., AssociationTest], **settings: object) -> AssociationTest:
        evidence_shown, its_fit = shown()
        return test(evidence_shown, fit=its_fit, **settings)

    return Tests(
        lambda method: about(association_test, method=method),
        lambda: cramers_v(evidence, whole, groups=groups),
        lambda: about(mutual_independence),
        lambda pair: about(conditional_independence, pair=pair),
    )
