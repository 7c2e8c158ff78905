"""The verb `associate`: estimate the joint distribution of several questions.

The marginal of each question chooses its categories. All other values form the category Other:
ignoring them would bias every cell. Each report becomes one row of likelihoods per question, and
the table is fitted to these rows by maximum likelihood.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from operator import itemgetter

import numpy as np

from deniable.analysis.categories import Strings, axes_of, check_listed, joint_of
from deniable.analysis.counting import PairCounts, PairLayout, count, is_counts
from deniable.analysis.source import Part, Reports, Source, listed
from deniable.analysis.tallying import check_all, count_all, has_tests, provenance_of
from deniable.arguments import as_names
from deniable.columns import ReportBatch
from deniable.compute.executors import AnyExecutor, executor_of, one_blas_thread
from deniable.compute.progress import Progress, reports_progress
from deniable.compute.rows import LikelihoodRows
from deniable.errors import InputError
from deniable.inference.association.effect_size import cramers_v, cramers_v_of
from deniable.inference.association.independence import (
    association_test,
    mutual_independence,
)
from deniable.inference.fit_check import fit_check
from deniable.inference.fit_counts import FitCounts, PartCounts
from deniable.inference.joint.collapse import collapse_evidence, collapse_influence
from deniable.inference.joint.evidence import Evidence, evidence_of, gather
from deniable.inference.joint.solver import JointFit, maximise
from deniable.inference.joint.uncertainty import covariance, stratum_influence, widen_errors
from deniable.inference.joint.unlisted import add_unlisted
from deniable.inference.linear import LinearRatios, linear_joint, linear_test
from deniable.inference.models.base import AnyModel, Axis, OtherModel, TableSettings
from deniable.kernels.array_types import Floats, Indices, Integers, Table
from deniable.results import Covariance, Joint
from deniable.results.association import AssociationTest, EffectSize, Tests
from deniable.survey import Survey, SurveyOrPath


@reports_progress
def associate(
    survey: SurveyOrPath,
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
    executor: AnyExecutor = None,
    progress: Progress | None = None,
) -> Joint:
    """Estimate the joint distribution of two or more questions.

    Parameters
    ----------
    survey : Survey, str or Path
        Survey that the reports answer, or the path of its file.
    reports : ReportBatch, str, Path, Arrow table, data frame, Store, Stored, or several of these
        Reports to analyse. Counts of two questions that `count` made, or .npz files of them, may
        take their place.
    questions : sequence of str
        Names of two or more questions: the axes of the table.
    candidates : mapping of str to strings, Discovery or Marginal, optional
        For each string question, the strings to look for, or a result of `discover` or `decode`.
    top : int, default 10
        Number of strings of each question that get a category of their own: the most common ones
        among those that were detected.
    other : bool, "mixture" or "product", default True
        Model of all other values. True and "mixture" use what the marginal shows about them.
        "product" treats their bits as independent, as the paper does. False leaves them out, which
        biases the table.
    fitted : int, optional
        Number of detected strings of each question that are fitted. Those beyond `top` are added
        up into Other afterwards. About twice `top` by default; with fewer, intervals of cells
        with Other are too narrow if the questions are associated.
    alpha : float, default 0.05
        Significance level at which a string must be detected to get a category.
    nats : float, default 0.01
        Tolerance: the fit has converged when its log-likelihood is within this distance of the
        maximum.
    max_passes : int, default 200
        Maximum number of passes over the reports. A `NotConvergedWarning` is issued if the fit
        has not converged by then.
    executor : str or distributed.Client, optional
        Where the computation runs: "threads" (default), "threads:N", "dask://HOST:PORT",
        "tls://HOST:PORT" or a `distributed.Client`.
    progress : callable, optional
        Called with the name of the current stage and the fraction of it that is done.

    Returns
    -------
    Joint
        Estimated table with standard errors, 95% confidence intervals, conditional rates, tests
        of independence and effect size.

    Raises
    ------
    InputError
        If a question is unknown or named twice, a string question has no candidates, none of its
        candidates is detected, or there are no reports.

    Examples
    --------
    >>> import numpy as np
    >>> from deniable import Survey, associate, simulate
    >>> survey = Survey.from_toml('''
    ... name = "browsers"
    ... version = 1
    ... owner = "you@example.com"
    ... description = "Which browser do you use, and do you use dark mode?"
    ... expires = 2999-12-31
    ... collect = "once"
    ... [questions.browser]
    ... kind = "choice"
    ... options = ["Firefox", "Safari"]
    ... epsilon = 2.0
    ... [questions.dark]
    ... kind = "boolean"
    ... epsilon = 2.0
    ... ''')
    >>> answers = {
    ...     "browser": ["Firefox"] * 6000 + ["Safari"] * 4000,
    ...     "dark": [True] * 5000 + [False] * 5000,
    ... }
    >>> reports = simulate(survey, answers, rng=np.random.default_rng(1))
    >>> joint = associate(survey, reports, ["browser", "dark"])
    >>> joint.table.round(1)
    array([[0.5, 0.1],
           [0. , 0.4]])
    >>> joint.test().p_value < 0.001
    True
    """
    survey, questions = Survey.of(survey), as_names("questions", questions)
    if len(questions) < 2 or len(set(questions)) != len(questions):
        raise InputError(f"name two or more different questions, got {list(questions)}")
    asked = [survey.question(name) for name in questions]
    if not isinstance(candidates or {}, Mapping):
        raise InputError(f"candidates must be lists by question, not {type(candidates).__name__}")
    given = dict(candidates or {})
    check_listed(given, questions)
    executor = executor_of(executor)
    parts = listed(reports)
    if any(map(is_counts, parts)):
        counts = count(survey, parts, questions, executor=executor)
        tested = has_tests(survey, asked, counts.reports)
        settings = TableSettings(top, other, fitted, alpha, tested=tested)
        joint = _associate_counts(survey, counts, given, settings)
        return joint if tested else joint.untested()
    source = Source(parts, survey)
    tested = has_tests(survey, asked, source.count)
    settings = TableSettings(top, other, fitted, alpha, tested=tested)
    models, axes = axes_of(asked, given, partial(count_all, source, executor), settings)
    by_name = dict(zip(questions, models, strict=True))
    held = source.hold(executor, partial(likelihood_rows, by_name, survey.cohorts > 1))
    shape = [len(axis.labels) for axis in axes]
    rows_only, log_factors = itemgetter(0), itemgetter(1)
    evidence = evidence_of(held.hold(rows_only), shape)
    fit = maximise(evidence, nats=nats, max_passes=max_passes)
    joint = _joint(questions, axes, evidence, fit)
    joint = replace(
        joint,
        log_likelihood=joint.log_likelihood + sum(held.map(log_factors)),
        provenance=provenance_of(survey, asked, joint.reports, source.origin),
        fit=check_all(source, executor, asked),
    )
    return joint if tested else joint.untested()


def associate_likelihoods(
    rows: Sequence[Table],
    labels: Sequence[Sequence[str]],
    *,
    questions: Sequence[str] | None = None,
    strata: Integers | None = None,
    nats: float = 0.01,
    executor: AnyExecutor = None,
) -> Joint:
    """Estimate a joint distribution from likelihoods that you computed yourself.

    This works for reports of any mechanism.

    Parameters
    ----------
    rows : sequence of arrays of shape (N, categories)
        For each question, P(report | category) of each of the N reports. A factor that is common to
        a row does not matter.
    labels : sequence of sequences of str
        Names of each question's categories.
    questions : sequence of str, optional
        Names of the questions. "q1", "q2", … by default.
    strata : array of int, of shape (N,), optional
        Stratum of each report: the values of clear fields that several questions share, such as
        the cohort.
    nats : float, default 0.01
        Tolerance: the fit has converged when its log-likelihood is within this distance of the
        maximum.
    executor : str or distributed.Client, optional
        Where the computation runs: "threads" (default), "threads:N", "dask://HOST:PORT",
        "tls://HOST:PORT" or a `distributed.Client`.

    Returns
    -------
    Joint
        Estimated table. With a single question, its marginal distribution.

    Raises
    ------
    InputError
        If a report is impossible under every category, or shapes do not match.

    Examples
    --------
    >>> import numpy as np
    >>> from deniable.analysis import associate_likelihoods
    >>> rows = np.array([[0.9, 0.1]] * 60 + [[0.1, 0.9]] * 40)
    >>> associate_likelihoods([rows], [["yes", "no"]]).table.round(3)
    array([0.625, 0.375])
    """
    scaled = []
    for array in rows:
        largest = array.max(axis=1, keepdims=True)
        if not (largest > 0).all():
            raise InputError("every report must have a likelihood above 0 in at least one category")
        scaled.append(np.asarray(array / largest, np.float32))
    names = questions or [f"q{i + 1}" for i in range(len(rows))]
    axes = [Axis.whole(each) for each in labels]
    shape = [len(axis.labels) for axis in axes]
    evidence = gather([tuple(scaled)], shape, executor=executor)
    if strata is not None:
        evidence = evidence.stratified(strata)
    return _joint(names, axes, evidence, maximise(evidence, nats=nats))


# --- from reports to likelihood rows to a table --------------------------------------------------


def likelihood_rows(
    models: Mapping[str, AnyModel], by_cohort: bool, batch: ReportBatch
) -> tuple[LikelihoodRows, float]:
    """Return the likelihood rows of a batch, and the logarithm of the factors removed from them.

    If a report does not answer a question, all entries of its row are equal.
    """
    columns = [batch.column(name) for name in models]
    likelihoods = [
        model.likelihood(column.bits, column.stratum)
        for model, column in zip(models.values(), columns, strict=True)
    ]
    rows = LikelihoodRows.laid_out(
        [each.rows for each in likelihoods], strata=batch.cohort if by_cohort else None
    )
    return rows, float(sum(each.log_scale.sum() for each in likelihoods))


def _joint(
    questions: Sequence[str],
    axes: Sequence[Axis],
    evidence: Evidence,
    fit: JointFit,
) -> Joint:
    """Return the result of a fit, with its categories added up into those that are shown."""
    fit_covariance = covariance(evidence, fit.table)
    groups = [axis.groups for axis in axes]
    shown = fit_covariance.collapsed(groups)
    if any(axis.ends_with_other for axis in axes):
        shown = _widened(fit_covariance, stratum_influence(evidence, fit_covariance), axes)
    effect = partial(cramers_v, evidence, fit_covariance, groups=groups, widened=shown)
    tests = _tests(evidence, fit, effect, groups)
    return replace(
        joint_of(questions, axes, shown, int(evidence.weight), tests),
        log_likelihood=fit.log_likelihood,
        gap_nats=fit.gap_nats,
        passes=fit.passes,
        converged=fit.converged,
    )


def _widened(fitted: Covariance, influence: Floats, axes: Sequence[Axis]) -> Covariance:
    """Return the table of the categories that are shown, with errors for unlisted strings.

    These strings, which are in Other, make cohorts differ by more than their noise.
    """
    groups = [axis.groups for axis in axes]
    shown = add_unlisted(fitted, influence, [axis.unlisted for axis in axes]).collapsed(groups)
    with_other = [axis.ends_with_other for axis in axes]
    return widen_errors(shown, collapse_influence(influence, groups), with_other)


def _tests(
    evidence: Evidence,
    fit: JointFit,
    effect: Callable[[], EffectSize],
    groups: Sequence[Indices],
) -> Tests:
    """Return tests about the categories that are shown. They are computed on first use."""

    @cache
    def shown_evidence() -> tuple[Evidence, JointFit | None]:
        collapsed = collapse_evidence(evidence, fit.table, groups)
        return collapsed, fit if collapsed is evidence else None

    def run(test: Callable[..., AssociationTest], **settings: object) -> AssociationTest:
        collapsed, collapsed_fit = shown_evidence()
        return test(collapsed, fit=collapsed_fit, **settings)

    return Tests(
        lambda method: run(association_test, method=method),
        effect,
        lambda: run(mutual_independence),
    )


# --- from counts to a table ----------------------------------------------------------------------


def _associate_counts(
    survey: Survey, counts: PairCounts, candidates: Mapping[str, Strings], settings: TableSettings
) -> Joint:
    """Estimate the joint distribution of two questions from their counts."""
    layout = PairLayout(tuple(map(survey.question, counts.questions)))
    asked, pairs = layout.questions, counts.pairs.astype(np.float64)
    bits = [layout.bit_counts(counts.pairs, side) for side in (0, 1)]
    models, axes = axes_of(
        asked, candidates, lambda q, model: model.counts_from_bits(bits[asked.index(q)]), settings
    )
    groups = [axis.groups for axis in axes]
    with one_blas_thread():
        x, y = (
            LinearRatios.of(model.components(), bits[side], layout.question_strata(side))
            for side, model in enumerate(models)
        )
        table, unconstrained, influence = linear_joint(pairs, x, y)
        shown = _widened(table, influence, axes)

    @cache
    def test(method: str = "score") -> AssociationTest:
        if method != "score":
            raise InputError(f"the {method!r} test needs the reports: counts have the 'score' test")
        with one_blas_thread():
            return linear_test(pairs, x, y, groups)

    free, noise = unconstrained.collapsed(groups).table, table.collapsed(groups)
    effect = partial(cramers_v_of, free, noise, counts.reports, widened=shown)
    parts = tuple(
        (PartCounts.of_strata(question.protocol.parts[0], each),)
        for question, each in zip(asked, bits, strict=True)
    )
    cohorts = counts.pairs[:, -1, -1].reshape(layout.strata).sum(axis=(0, 1))
    nothing = np.zeros(0, np.int64)  # counts have neither clear fields nor copies
    return replace(
        joint_of(counts.questions, axes, shown, counts.reports, Tests(test, effect, test)),
        made_from="counts",
        provenance=provenance_of(survey, asked, counts.reports, counts.origin),
        fit=fit_check(survey, asked, FitCounts(cohorts, (nothing, nothing), parts, (), 0.0)),
    )
