"""Joint tables of two questions from counts, with everything that one from reports has.

Which strings get a category is chosen as `associate` chooses it: the counts hold all that marginals
need. See `inference.linear.estimate` for the estimate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.analysis.axes import Axis, OtherModel, axes_of
from deniable.analysis.candidates import Strings
from deniable.analysis.counting import Layout
from deniable.analysis.decoding import provenance_of
from deniable.analysis.reading import OTHER, HashReading, Reading
from deniable.compute.cpu.threads import one_blas_thread
from deniable.errors import InputError
from deniable.inference.association.effect_size import cramers_v_of
from deniable.inference.linear.estimate import LinearFit, Strata, linear_joint, linear_test
from deniable.inference.linear.joint_counts import PairCounts
from deniable.inference.linear.ratios import fit_margin, linear_ratios
from deniable.inference.marginal.bit_counts import BitCounts
from deniable.inference.models.components import Components, components_of
from deniable.inference.models.hash_design import HashReportCounts
from deniable.results import Joint
from deniable.results.association import AssociationTest, EffectSize
from deniable.results.joint import Tests
from deniable.survey import Survey

Floats = NDArray[np.float64]


def associate_counts(
    survey: Survey,
    counts: PairCounts,
    candidates: dict[str, Strings],
    *,
    top: int,
    other: bool | OtherModel,
    fitted: int | None,
    alpha: float,
) -> Joint:
    """The joint distribution of two questions from their counts; see `associate`."""
    asked = [survey.question(name) for name in counts.questions]
    layout = Layout((asked[0], asked[1]))
    own = [_own(counts, layout, side) for side in (0, 1)]

    def count(reading: Reading) -> Any:
        return _for_marginal(reading, own[asked.index(reading.question)])

    axes = axes_of(asked, candidates, count, top=top, other=other, fitted=fitted, alpha=alpha)
    with one_blas_thread():
        sides = [
            _Side.of(axis, bits, layout.own(side))
            for side, (axis, bits) in enumerate(zip(axes, own, strict=True))
        ]
        fit = linear_joint(counts, *(side.strata for side in sides))
    made = provenance_of(survey, asked, counts.reports, counts.origin)
    return replace(_joint(counts, axes, sides, fit), provenance=made)


def _own(counts: PairCounts, layout: Layout, side: int) -> BitCounts:
    """One question's bit counts, in strata of its own."""
    place = layout.own(side)
    of_each = (counts.first, counts.second)[side]
    ones = np.zeros((int(place.max()) + 1, of_each.shape[1]), np.int64)
    total = np.zeros(len(ones), np.int64)
    np.add.at(ones, place, of_each)
    np.add.at(total, place, counts.total)
    return BitCounts(ones, total)


def _for_marginal(reading: Reading, counts: BitCounts) -> BitCounts | HashReportCounts:
    """What the question's marginal is estimated from: reports that speak of some candidate."""
    some = reading.told.any(axis=1) | (reading.told.shape[1] == 0)
    spoken = np.repeat(some, len(counts.total) // len(some))
    if isinstance(reading, HashReading):
        numbers = counts.ones * spoken[:, None]
        return HashReportCounts(numbers.reshape(reading.source.strata, -1))
    return BitCounts(counts.ones * spoken[:, None], counts.total * spoken)


@dataclass(frozen=True, eq=False)
class _Side:
    """One question: what its categories are made of, and their ratios in each joint stratum."""

    components: Components
    margin: Floats
    strata: Strata

    @classmethod
    def of(cls, axis: Axis, counts: BitCounts, own: NDArray[np.intp]) -> _Side:
        components = components_of(axis.known, axis.model)
        margin = fit_margin(counts, components)
        return cls(components, margin, Strata.of(components, margin, counts, own))

    def collapsed(self, groups: NDArray[np.intp]) -> Strata:
        """The ratios of categories added up."""
        margin = np.asarray(np.bincount(groups, self.margin), np.float64)
        components = self.components.collapsed(groups, self.margin)
        return replace(self.strata, ratios=linear_ratios(components, self.strata.known, margin))


def _joint(
    counts: PairCounts, axes: Sequence[Axis], sides: Sequence[_Side], fit: LinearFit
) -> Joint:
    groups = [axis.groups for axis in axes]
    rest = [axis.shown[-1] == OTHER for axis in axes]
    with one_blas_thread():
        collapsed = fit.collapsed(groups, rest)
    shown = collapsed.covariance
    intervals = shown.intervals()

    @cache
    def association(method: str) -> AssociationTest:
        if method != "score":
            raise InputError(f"the {method!r} test needs the reports; from counts there is 'score'")
        with one_blas_thread():
            about = [side.collapsed(group) for side, group in zip(sides, groups, strict=True)]
            return linear_test(counts, *about)

    def effect() -> EffectSize:
        return cramers_v_of(collapsed.free, shown, counts.reports)

    def refused(*_: Any) -> AssociationTest:
        raise InputError("likelihood ratios need the reports; from counts, use test()")

    return Joint(
        questions=counts.questions, labels=tuple(axis.shown for axis in axes), table=shown.table,
        standard_error=shown.standard_errors, low=intervals.low, high=intervals.high,
        p_value=shown.p_values(), covariance=shown.matrix, log_likelihood=float("nan"),
        gap_nats=float("nan"), passes=1, converged=True, reports=counts.reports,
        other=tuple(axis.meaning for axis in axes), made_from="counts",
        tests=Tests(association, effect, refused, refused),
    )  # fmt: skip
