"""Intervals and p-values of subgroups are what they say.

Short versions of experiments/subgroup_coverage.py with fixed seeds. Each check states how often a
right implementation would fail it on a fresh seed, and a plausible mistake must fail the same
check.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from experiments.subgroup_coverage import CASES, Intervals, trials
from scipy.stats import kstest

from deniable.analysis import subgroups
from deniable.inference.joint.evidence import Evidence
from deniable.kernels.array_types import Floats, Mask
from deniable.results import Covariance

SMALL = ("choice | choice 4%", "choice | choice 2%", "choice | string 5%, others unlisted")
STRINGS = ("string, half unlisted | choice 4%", "string | string 5%, both partly listed")


@cache
def found(*cases: str) -> tuple[Intervals, ...]:
    """Twenty crowds of each case, without those whose subgroup may be empty."""
    every = (trial for case in cases for trial in trials(CASES[case], 20_000, 20, 91))
    return tuple(trial for trial in every if trial is not None)


def right(covered: list[Mask]) -> bool:
    """Whether the share of intervals that contain the truth is near .955.

    It is that of experiments/subgroup_coverage.py. Of some 700 intervals, as good as 500
    independent ones, fewer than .925 or more than .985 contain the truth in 1 of 300 fresh seeds.
    """
    return bool(0.925 <= np.concatenate(covered).mean() <= 0.985)


def test_intervals_of_small_subgroups_cover() -> None:
    assert right([trial.covered for trial in found(*SMALL, *STRINGS)])


def test_intervals_that_are_a_fifth_too_narrow_do_not() -> None:
    assert not right(
        [np.abs(t.estimate - t.truth) < 0.8 * 1.96 * t.error for t in found(*SMALL, *STRINGS)]
    )


def absent(trials: tuple[Intervals, ...]) -> Floats:
    """Standardised errors of values that nobody in the subgroup has."""
    return np.concatenate([((t.estimate - t.truth) / t.error)[t.truth == 0] for t in trials])


def normal(errors: Floats) -> bool:
    """Kolmogorov–Smirnov at .001: one false alarm in 1,000 fresh seeds."""
    return bool(kstest(errors, "norm").pvalue > 0.001)


def test_errors_of_absent_values_are_normal() -> None:
    assert normal(absent(found(*SMALL)))


def test_estimates_on_the_boundary_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken twin: the maximum-likelihood table, whose cells are never below 0."""

    def no_step(evidence: Evidence, fitted: Covariance) -> Covariance:
        return fitted

    monkeypatch.setattr(subgroups, "one_step", no_step)
    every = trials(CASES["choice | choice 4%"], 20_000, 16, 91)
    assert not normal(absent(tuple(trial for trial in every if trial is not None)))
