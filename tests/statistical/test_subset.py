"""Choices by subset selection: intervals cover, and reports of honest clients look right.

Each check states how often a right implementation would fail it on a fresh seed, and a plausible
mistake must fail the same check. `experiments/mechanism_gains.py` measures accuracy.
"""

from __future__ import annotations

import numpy as np
import pytest
from experiments.paper.trials import generators

from deniable import ReportBatch, Survey, associate, decode, simulate
from deniable.analysis import count
from deniable.inference.models.subset import SubsetModel
from deniable.kernels.array_types import Floats
from deniable.simulation import Coded, zipf
from tests.surveys import make_survey

OPTIONS = ("a", "b", "c", "d")
CHOICE = '[questions.{}]\nkind = "choice"\nepsilon = {}\noptions = ["a", "b", "c", "d"]\n'
ONE, SETS = (make_survey(CHOICE.format("x", e), defaults=2) for e in (2.0, 0.5))  # w = 1, w = 2
PAIR = make_survey(CHOICE.format("x", 2.0) + CHOICE.format("y", 0.5), defaults=2)
SHARES = np.r_[0.9 * zipf(4), 0.1]


def answers(shares: Floats, clients: int, rng: np.random.Generator) -> Coded:
    drawn = rng.choice(5, clients, p=shares)
    return Coded(OPTIONS, np.where(drawn < 4, drawn, -1).astype(np.int32))


def deviations(survey: Survey, crowds: int, clients: int = 5000) -> Floats:
    """Estimates less the truth in standard errors: of each option, and last of their sum."""
    found = []
    for rng in generators(5, crowds):
        reports = simulate(survey, {"x": answers(SHARES, clients, rng)}, rng=rng)
        result = decode(survey, reports, "x", alpha=0.999999, correction=None)
        off = (result.estimate - SHARES[:4]) / result.standard_error
        whole = (
            result.mass_found.estimate - SHARES[:4][result.detected].sum()
        ) / result.mass_found.standard_error
        found.append([*off, whole])
    return np.array(found)


def covered(off: Floats) -> Floats:
    return (np.abs(off) < 1.959964).mean(axis=0)


@pytest.mark.parametrize("survey", [ONE, SETS], ids=["one member", "two members"])
def test_intervals_of_options_and_of_their_sum_cover(survey: Survey) -> None:
    """1,000 crowds: each of ten shares is off by .03 once in 20,000 runs."""
    found = covered(deviations(survey, 1000))
    assert (np.abs(found - 0.95) < 0.03).all()


def test_without_the_covariance_of_bits_the_sum_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SubsetModel, "pair_covariances", (0.0, 0.0))
    assert covered(deviations(ONE, 1000))[-1] > 0.98


def table_coverage(from_counts: bool, crowds: int = 100) -> float:
    """Share of the cells of a table whose intervals contain the truth."""
    truth = np.outer(SHARES, SHARES) * 0.5 + np.diag(SHARES) * 0.5
    inside = []
    for rng in generators(6, crowds):
        drawn = np.unravel_index(rng.choice(25, 20_000, p=truth.ravel()), (5, 5))
        coded = {
            name: Coded(OPTIONS, np.where(code < 4, code, -1).astype(np.int32))
            for name, code in zip("xy", drawn, strict=True)
        }
        reports = simulate(PAIR, coded, rng=rng)
        source = count(PAIR, reports, ["x", "y"]) if from_counts else reports
        joint = associate(PAIR, source, ["x", "y"])
        cells = truth[: len(joint.labels[0]), : len(joint.labels[1])]
        large = cells > 3 * joint.standard_error
        inside += ((joint.low <= cells) & (cells <= joint.high))[large].tolist()
    assert len(inside) > 200
    return float(np.mean(inside))


@pytest.mark.parametrize("from_counts", [False, True], ids=["reports", "counts"])
def test_intervals_of_tables_cover(from_counts: bool) -> None:
    """At least 300 nearly independent cells: off by .05 once in 10,000 runs."""
    assert abs(table_coverage(from_counts) - 0.95) < 0.05


def test_with_the_variance_of_independent_bits_tables_from_counts_do_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    right = SubsetModel.components

    def wrong(model: SubsetModel) -> object:
        components = right(model)
        theta = components.theta(np.zeros(1, int))[0]
        object.__setattr__(components, "contrast_variance", 0.4 * theta * (1 - theta))
        return components

    monkeypatch.setattr(SubsetModel, "components", wrong)
    assert abs(table_coverage(True) - 0.95) > 0.05


# --- the check of the reports ------------------------------------------------------------------


def test_honest_reports_look_right() -> None:
    """The level of the check is .001: four or more alarms among 300 crowds once in 4,000 runs."""
    alarms = 0
    for rng in generators(7, 300):
        shares = rng.dirichlet(np.full(5, 0.5))
        reports = simulate(SETS, {"x": answers(shares, 2000, rng)}, rng=rng)
        alarms += bool(decode(SETS, reports, "x").fit.problems)
    assert alarms < 4


def test_clients_that_always_send_the_same_subset_are_noticed() -> None:
    rng = np.random.default_rng(8)
    honest = simulate(ONE, {"x": answers(np.r_[0.5, 0.5, 0, 0, 0], 20_000, rng)}, rng=rng)
    bits = honest.bits[0][0].copy()
    bits[:4000] = 1
    check = decode(ONE, ReportBatch(ONE, honest.cohort, honest.clear, ((bits,),)), "x").fit
    assert any("less than the" in problem for problem in check.problems)
