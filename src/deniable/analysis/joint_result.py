"""The one construction of a joint table's result."""

from __future__ import annotations

from collections.abc import Sequence

from deniable.inference.models.base import OTHER, Axis
from deniable.results import Covariance, Joint
from deniable.results.joint import Tests


def joint_of(
    questions: Sequence[str],
    axes: Sequence[Axis],
    shown: Covariance,
    reports: int,
    tests: Tests,
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


def ends_with_other(axes: Sequence[Axis]) -> list[bool]:
    """Whether the last category of each question is Other."""
    return [axis.shown[-1] == OTHER for axis in axes]
