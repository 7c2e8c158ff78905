"""Joint tables of two questions from counts, with everything that one from reports has.

Which strings get a category is chosen as `associate` chooses it: the counts hold all that marginals
need. See `inference.linear.estimate` for the estimate.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, partial

import numpy as np

from deniable.analysis.categories import Strings, axes_of, joint_of
from deniable.analysis.counting import Layout
from deniable.analysis.decoding import provenance_of
from deniable.compute.cpu.threads import one_blas_thread
from deniable.errors import InputError
from deniable.inference.association.effect_size import cramers_v_of
from deniable.inference.linear.estimate import LinearFit, QuestionRatios, linear_joint, linear_test
from deniable.inference.linear.joint_counts import PairCounts
from deniable.inference.marginal.bit_counts import BitCounts
from deniable.inference.models.base import AnyModel, ReportCounts, TableSettings
from deniable.kernels.array_types import Indices
from deniable.results import Joint
from deniable.results.association import AssociationTest
from deniable.results.joint import Tests
from deniable.survey import Question, Survey


def associate_counts(
    survey: Survey,
    counts: PairCounts,
    candidates: Mapping[str, Strings],
    settings: TableSettings,
) -> Joint:
    """The joint distribution of two questions from their counts; see `associate`."""
    asked = [survey.question(name) for name in counts.questions]
    layout = Layout((asked[0], asked[1]))
    own = [_own(counts, layout, side) for side in (0, 1)]

    def count(question: Question, model: AnyModel) -> ReportCounts:
        made: ReportCounts = model.counts_from_bits(own[asked.index(question)])
        return made

    models, axes = axes_of(asked, candidates, count, settings)
    groups = [axis.groups for axis in axes]
    with one_blas_thread():
        sides = [
            QuestionRatios.of(models[side].components(), own[side], layout.own(side))
            for side in (0, 1)
        ]
        fit = linear_joint(counts, *sides)
        shown = fit.collapsed(groups, [axis.ends_with_other for axis in axes])
    tests = _tests(counts, sides, groups, shown)
    joint = joint_of(counts.questions, axes, shown.covariance, counts.reports, tests)
    made = provenance_of(survey, asked, counts.reports, counts.origin)
    return replace(joint, made_from="counts", provenance=made)


def _own(counts: PairCounts, layout: Layout, side: int) -> BitCounts:
    """One question's bit counts, in strata of its own."""
    place = layout.own(side)
    of_each = (counts.first, counts.second)[side]
    ones = np.zeros((int(place.max()) + 1, of_each.shape[1]), np.int64)
    total = np.zeros(len(ones), np.int64)
    np.add.at(ones, place, of_each)
    np.add.at(total, place, counts.total)
    return BitCounts(ones, total)


def _tests(
    counts: PairCounts,
    sides: Sequence[QuestionRatios],
    groups: Sequence[Indices],
    shown: LinearFit,
) -> Tests:
    """Tests about the categories that are shown, made when first asked for."""

    @cache
    def association(method: str) -> AssociationTest:
        if method != "score":
            raise InputError(f"the {method!r} test needs the reports; from counts there is 'score'")
        with one_blas_thread():
            about = [side.collapsed(group) for side, group in zip(sides, groups, strict=True)]
            return linear_test(counts, *about)

    def refused(*_: object) -> AssociationTest:
        raise InputError("likelihood ratios need the reports; from counts, use test()")

    effect = partial(cramers_v_of, shown.free, shown.covariance, counts.reports)
    return Tests(association, effect, refused, refused)
