"""Joint tables of two questions from counts, with everything that one from reports has.

Which strings get a category is chosen as `associate` chooses it: the counts hold all that marginals
need. See `inference.linear.estimate` for the estimate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from deniable.analysis.axes import axes_of, joint_of
from deniable.analysis.candidates import Strings
from deniable.analysis.counting import Layout
from deniable.analysis.decoding import provenance_of
from deniable.compute.cpu.threads import one_blas_thread
from deniable.errors import InputError
from deniable.inference.association.effect_size import cramers_v_of
from deniable.inference.linear.estimate import LinearFit, Strata, linear_joint, linear_test
from deniable.inference.linear.joint_counts import PairCounts
from deniable.inference.linear.ratios import fit_margin, linear_ratios
from deniable.inference.marginal.bit_counts import BitCounts
from deniable.inference.models.base import AnyModel, ReportCounts, TableSettings
from deniable.inference.models.components import Components
from deniable.results import Joint
from deniable.results.association import AssociationTest, EffectSize
from deniable.results.joint import Tests
from deniable.survey import Question, Survey

Floats = NDArray[np.float64]


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
            _Side.of(model, bits, layout.own(side))
            for side, (model, bits) in enumerate(zip(models, own, strict=True))
        ]
        fit = linear_joint(counts, *(side.strata for side in sides))
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


@dataclass(frozen=True, eq=False)
class _Side:
    """One question: what its categories are made of, and their ratios in each joint stratum."""

    components: Components
    margin: Floats
    strata: Strata

    @classmethod
    def of(cls, model: AnyModel, counts: BitCounts, own: NDArray[np.intp]) -> _Side:
        components = model.components()
        margin = fit_margin(counts, components)
        return cls(components, margin, Strata.of(components, margin, counts, own))

    def collapsed(self, groups: NDArray[np.intp]) -> Strata:
        """The ratios of categories added up."""
        margin = np.asarray(np.bincount(groups, self.margin), np.float64)
        components = self.components.collapsed(groups, self.margin)
        return replace(self.strata, ratios=linear_ratios(components, self.strata.known, margin))


def _tests(
    counts: PairCounts,
    sides: Sequence[_Side],
    groups: Sequence[NDArray[np.intp]],
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

    def effect() -> EffectSize:
        return cramers_v_of(shown.free, shown.covariance, counts.reports)

    def refused(*_: object) -> AssociationTest:
        raise InputError("likelihood ratios need the reports; from counts, use test()")

    return Tests(association, effect, refused, refused)
