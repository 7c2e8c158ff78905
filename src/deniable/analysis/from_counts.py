"""Joint tables of two questions from pair counts, with the same results as from reports.

The categories are chosen as `associate` chooses them, since pair counts also hold what marginals
need. `inference.linear.estimate` describes the estimator.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial

import numpy as np

from deniable.analysis.categories import Strings, axes_of, joint_of
from deniable.analysis.counting import PairLayout
from deniable.analysis.tallying import provenance_of
from deniable.compute.executors import one_blas_thread
from deniable.errors import InputError
from deniable.inference.association.effect_size import cramers_v_of
from deniable.inference.fit_check import fit_check
from deniable.inference.fit_counts import FitCounts, PartCounts
from deniable.inference.linear.estimate import QuestionRatios, linear_joint, linear_test
from deniable.inference.linear.joint_counts import PairCounts
from deniable.inference.marginal.bit_counts import BitCounts
from deniable.inference.models.base import AnyModel, ReportCounts, TableSettings
from deniable.kernels.array_types import Indices
from deniable.results import Joint
from deniable.results.association import AssociationTest, EffectSize, Tests
from deniable.survey import Question, Survey


def associate_counts(
    survey: Survey, counts: PairCounts, candidates: Mapping[str, Strings], settings: TableSettings
) -> Joint:
    """Estimate the joint distribution of two questions from pair counts; see `associate`."""
    asked = [survey.question(name) for name in counts.questions]
    layout = PairLayout((asked[0], asked[1]))
    bit_counts = [_bit_counts(counts, layout, side) for side in (0, 1)]

    def count(question: Question, model: AnyModel) -> ReportCounts:
        converted: ReportCounts = model.counts_from_bits(bit_counts[asked.index(question)])
        return converted

    models, axes = axes_of(asked, candidates, count, settings)
    groups = [axis.groups for axis in axes]
    with one_blas_thread():
        sides = [
            QuestionRatios.of(
                models[side].components(), bit_counts[side], layout.question_strata(side)
            )
            for side in (0, 1)
        ]
        fit = linear_joint(counts, *sides)
        shown = fit.shown(axes)
    noise = fit.covariance.collapsed(groups)
    effect = partial(
        cramers_v_of, shown.unconstrained, noise, counts.reports, widened=shown.covariance
    )
    tests = _tests(counts, sides, groups, effect)
    joint = joint_of(counts.questions, axes, shown.covariance, counts.reports, tests)
    provenance = provenance_of(survey, asked, counts.reports, counts.origin)
    check = fit_check(survey, asked, _fit_counts(counts, layout, bit_counts))
    return replace(joint, made_from="counts", provenance=provenance, fit=check)


def _fit_counts(
    counts: PairCounts, layout: PairLayout, bit_counts: Sequence[BitCounts]
) -> FitCounts:
    """Return what counts tell about how reports look: neither clear fields nor copies."""
    parts = [
        (PartCounts.of_strata(question.protocol.parts[0], bits.ones, bits.total),)
        for question, bits in zip(layout.questions, bit_counts, strict=True)
    ]
    cohorts = counts.total.reshape(layout.slots_and_cohorts).sum(axis=(0, 1))
    uncounted = np.zeros(0, np.int64)
    return FitCounts(cohorts, (uncounted, uncounted), tuple(parts), (), 0.0)


def _bit_counts(counts: PairCounts, layout: PairLayout, side: int) -> BitCounts:
    """Return the bit counts of one question, in the strata of that question."""
    stratum = layout.question_strata(side)
    joint_ones = (counts.first, counts.second)[side]
    ones = np.zeros((int(stratum.max()) + 1, joint_ones.shape[1]), np.int64)
    total = np.zeros(len(ones), np.int64)
    np.add.at(ones, stratum, joint_ones)
    np.add.at(total, stratum, counts.total)
    return BitCounts(ones, total)


def _tests(
    counts: PairCounts,
    sides: Sequence[QuestionRatios],
    groups: Sequence[Indices],
    effect: Callable[[], EffectSize],
) -> Tests:
    """Return tests about the categories that are shown. They are computed on first use."""

    @cache
    def association(method: str) -> AssociationTest:
        if method != "score":
            raise InputError(
                f"the {method!r} test needs the reports; a table from counts has the 'score' test"
            )
        with one_blas_thread():
            collapsed = [side.collapsed(group) for side, group in zip(sides, groups, strict=True)]
            return linear_test(counts, *collapsed)

    def refused(*_: object) -> AssociationTest:
        raise InputError(
            "this test needs the reports; for a table of two questions from counts, use test()"
        )

    return Tests(association, effect, refused)
