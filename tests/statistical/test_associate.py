"""Joint decoding by the public path: simulated crowds, `associate`, and the truth beside it.

Short versions of experiments/joint_coverage.py and of the paper's experiments on joint tables
(experiments/paper), with fixed seeds. Each check states how often a right implementation would
fail it on a fresh seed, and a plausible mistake must fail the same check.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from experiments.paper.trials import (
    TrialTable,
    TrialTables,
    bloom,
    boolean,
    choice,
    coverage,
    generators,
    pair,
    survey_of,
)
from scipy.stats import kstest

import deniable
from deniable.results import Joint
from deniable.simulation import (
    JointPopulation,
    geometric,
    play_store,
    power,
    simulate,
    step,
    zipf,
)

SHAPES = {"zipf": zipf(), "i^20": power(), "geometric": geometric(), "step": step()}


@cache
def trials(
    shape: str, strength: float, reports: int, count: int, other: Any = True
) -> tuple[tuple[JointPopulation, Joint], ...]:
    """Crowds and their estimated tables, top five and Other."""
    survey = survey_of(x=bloom(), y=bloom())
    found = []
    for rng in generators(61, count):
        crowd = pair(SHAPES[shape], SHAPES[shape], strength=strength, rng=rng)
        batch = simulate(survey, crowd.draw(reports, rng), rng=rng)
        joint = deniable.associate(
            survey, batch, ["x", "y"], candidates=crowd.values, top=5, other=other
        )
        found.append((crowd, joint))
    return tuple(found)


def beside(found: tuple[tuple[JointPopulation, Joint], ...]) -> list[TrialTable]:
    return [TrialTable.of(crowd, joint) for crowd, joint in found]


# --- errors of the table -------------------------------------------------------------------------


def summed_error(other: Any) -> float:
    """Mean sum of absolute errors, in points, of the paper's Table II over eight crowds."""
    return float(
        100 * TrialTables.stacked(beside(trials("i^20", 0.0, 100_000, 8, other))).absolute().mean()
    )


def test_tables_are_as_exact_as_their_standard_errors_say() -> None:
    # In 10 crowds of `experiments.paper tables`: 4.6, sd .7 each; 5.6 is four errors above.
    assert summed_error(True) < 5.6


def test_a_table_without_other_is_far_off() -> None:
    assert not summed_error(False) < 5.6


# --- bias ----------------------------------------------------------------------------------------


def unbiased(other: Any) -> bool:
    """Whether the summed known cells are right on average: within 3.5 Monte-Carlo errors.

    With t of 11 degrees of freedom a right implementation fails in 1 of 200 fresh seeds.
    """
    errors = [
        float((b.estimate - b.truth)[:5, :5].sum())
        for b in beside(trials("geometric", 0.0, 50_000, 12, other))
    ]
    return bool(abs(np.mean(errors)) < 3.5 * np.std(errors, ddof=1) / np.sqrt(len(errors)))


def test_known_cells_are_unbiased() -> None:
    assert unbiased(True)


def test_other_as_independent_bits_is_biased() -> None:
    # Few heavy strings make up Other here, whose bits go together.
    assert not unbiased("product")


# --- coverage ------------------------------------------------------------------------------------


def covered(narrowed: float = 1.0) -> float:
    """Coverage over some 1,800 cells of three standard errors or more in 80 trials."""
    found = [
        *beside(trials("zipf", 0.0, 10_000, 40)),
        *beside(trials("i^20", 0.3, 10_000, 40)),
    ]
    reach = [narrowed * 1.959964 * b.error for b in found]
    return coverage(
        [
            replace(b, low=b.estimate - r, high=b.estimate + r)
            for b, r in zip(found, reach, strict=True)
        ]
    )[0]


def test_intervals_of_tables_with_other_cover() -> None:
    # Cells of a trial lean on each other: as good as 900 independent ones, outside in 1 of 100.
    assert 0.93 <= covered() <= 0.97


def test_intervals_that_are_too_narrow_do_not() -> None:
    assert not 0.93 <= covered(0.85) <= 0.97


# --- tests of independence -----------------------------------------------------------------------


@cache
def p_values(strength: float, count: int) -> tuple[tuple[float, float], ...]:
    """p-values of the score test and of the paper's T: Basic 6 × 6 with rare categories."""
    crowd = pair(zipf(6, 3.0), zipf(6, 3.0), strength=strength)
    survey = survey_of(x=choice(crowd.values["x"]), y=choice(crowd.values["y"]))
    found = []
    for rng in generators(62, count):
        batch = simulate(survey, crowd.draw(10_000, rng), rng=rng)
        joint = deniable.associate(survey, batch, ["x", "y"])
        found.append((joint.test().p_value, joint.test("paper").p_value))
    return tuple(found)


def uniform(values: list[float]) -> bool:
    """Kolmogorov–Smirnov at .001: one false alarm in 1,000 fresh seeds."""
    return bool(kstest(values, "uniform").pvalue > 0.001)


def test_the_default_test_is_uniform_under_independence() -> None:
    assert uniform([score for score, _ in p_values(0.0, 60)])


def test_the_papers_t_is_not_where_categories_are_rare() -> None:
    assert not uniform([paper for _, paper in p_values(0.0, 60)])


def test_the_default_test_finds_associations_that_t_misses() -> None:
    score, paper = (np.mean(np.array(p) <= 0.05) for p in zip(*p_values(0.2, 20), strict=True))
    # Shares of 200 trials of `python -m experiments.paper independence`: .915 and .400.
    assert score > paper


# --- the Play Store ------------------------------------------------------------------------------


def test_play_store_intervals_cover_and_strong_differences_show() -> None:
    crowd = play_store()
    survey = survey_of(category=choice(crowd.values["category"]), paid=boolean())
    found, rejected = [], 0
    for rng in generators(63, 6):
        batch = simulate(survey, crowd.draw(200_000, rng), rng=rng)
        joint = deniable.associate(survey, batch, ["category", "paid"])
        found.append(TrialTable.of(crowd, joint))
        rejected += joint.test().p_value <= 0.05
    # Some 200 cells: below .90 in 1 of 1,000 fresh seeds. Of 100 crowds 95 reject.
    assert coverage(found)[0] >= 0.90
    assert rejected >= 3
