"""Consistent shares: the nearest ones that are not negative and sum to at most 1; biased."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, minimize

from deniable import decode, simulate
from deniable.errors import InputError
from deniable.formatting import Z95
from deniable.render.view import view_of
from deniable.results import ConsistentShares, Result, Trend
from deniable.results.consistent import nearest_shares
from deniable.simulation import Population, zipf
from tests.results.samples import marginal
from tests.surveys import make_survey


@pytest.mark.parametrize("seed", range(8))
def test_no_other_shares_are_nearer(seed: int) -> None:
    """A general solver finds the same minimum."""
    rng = np.random.default_rng(seed)
    error = rng.uniform(0.02, 0.3, 6)
    estimate = rng.normal(rng.uniform(0.0, 0.4, 6), error)
    shares = nearest_shares(estimate, error**2)
    assert (shares >= 0).all() and shares.sum() <= 1.0

    solved = minimize(
        lambda x: np.square((x - estimate) / error).sum(),
        np.full(6, 0.1),
        bounds=[(0, 1)] * 6,
        constraints=LinearConstraint(np.ones(6), -np.inf, 1.0),
        options={"ftol": 1e-14},
    )
    np.testing.assert_allclose(shares, solved.x, atol=1e-5)


def test_estimates_that_are_consistent_stay() -> None:
    estimate = np.array([0.5, 0.3, 0.0])
    assert nearest_shares(estimate, np.full(3, 0.1)).tolist() == estimate.tolist()
    assert nearest_shares(np.array([]), np.array([])).size == 0


def test_a_precise_estimate_moves_less() -> None:
    precise, vague = nearest_shares(np.array([0.7, 0.7]), np.array([0.01, 0.09]))
    assert (precise, vague) == pytest.approx((0.66, 0.34))
    exact = nearest_shares(np.array([0.8, 0.7]), np.array([0.0, 0.1]))
    assert exact == pytest.approx([0.8, 0.2]), "an estimate without error does not move"
    assert nearest_shares(np.array([0.8, 0.6]), np.zeros(2)) == pytest.approx([0.6, 0.4])


def test_of_a_group_only_the_sum_counts() -> None:
    """Members have a third each of 0.6, and intervals that end where that of the sum does."""
    error, third = np.array([0.1, 0.1, 0.1, 0.1]), 0.2
    whole = np.array([0.6, third, third, third])
    grouped = replace(
        marginal(0.5),
        estimate=whole,
        standard_error=np.array([0.1, 0.2, 0.2, 0.2]),
        high=np.array([0.6, 0.6, 0.6, 0.6]) + Z95 * error,
        **dict.fromkeys(("low", "p_value"), error),
        **dict.fromkeys(("detected", "identified"), np.array([True, False, False, False])),
        groups=((1, 2, 3),),
        labels=("single", "a", "b", "c"),
    )
    shares = grouped.consistent()
    assert {row.value: round(row.share, 9) for row in shares} == {
        "single": 0.5,
        **dict.fromkeys("abc", round(0.5 / 3, 9)),
        "(other)": 0.0,
    }


def test_a_value_without_an_estimate_belongs_to_other() -> None:
    shares = replace(marginal(0.3), estimate=np.array([np.nan, 0.7])).consistent()
    assert shares.labels == ("b",) and shares["(other)"].share == pytest.approx(0.3)
    assert shares.columns()["value"] == ["b", "(other)"] and sum(shares.columns()["share"]) == 1.0


def test_the_clients_of_a_boolean_that_do_not_hold_yes_hold_no() -> None:
    survey = make_survey('[questions.dark]\nkind = "boolean"\nepsilon = 2.0\n')
    reports = simulate(survey, {"dark": [True] * 300 + [False] * 700}, rng=1)
    shares = decode(survey, reports, "dark").consistent()
    assert shares.columns()["value"] == ["yes", "no"] and "(other)" not in shares
    assert shares["no"].share == pytest.approx(0.7, abs=0.2)  # six standard errors
    assert "2 values" in shares.summary() and "(other)" not in view_of(shares).section()


def test_shares_say_that_they_are_biased_wherever_they_are_shown() -> None:
    shares = marginal(0.3).consistent()
    assert Result.from_json(shares.to_json()) == shares
    pages = (str(shares), shares._repr_html_(), view_of(shares).section())
    assert all("biased" in page for page in pages) and all("<svg" in page for page in pages[1:])
    assert "biased" in shares.plot().get_xlabel()
    trend = Trend("day", ("2027-01-04", "2027-01-05"), (shares, marginal(0.4).consistent()))
    assert "biased" in str(trend) and "biased" in view_of(trend).section()
    ax = trend.plot()
    assert "biased" in ax.get_ylabel() and "biased" in ax.get_title(loc="left")
    lines = {line.get_label(): line.get_ydata() for line in ax.lines}
    assert lines["a"] == pytest.approx([100 * part["a"].share for part in trend.parts])
    for wrong in ([-0.1, 0.5], [0.6, 0.6], [0.5]):
        with pytest.raises(InputError):
            ConsistentShares(("a", "b"), np.array(wrong), 7)


def test_estimates_are_unbiased_and_consistent_shares_are_not() -> None:
    """Two-sided z tests at 4.4 standard errors: false-alarm rate 1e-5 per value, 2e-4 in total.

    The consistent shares are the twin that must fail: the ten rarest values come out too common.
    """
    fruits = [f"fruit{i:02}" for i in range(20)]
    survey = make_survey(f'[questions.fruit]\nkind = "choice"\nepsilon = 1.0\noptions = {fruits}\n')
    population = Population(tuple(fruits), zipf(20))
    rng = np.random.default_rng(1)
    estimates, shares = [], []
    for _ in range(150):
        reports = simulate(survey, population.draw(1000, rng), rng=rng)
        decoded = decode(survey, reports, "fruit")
        consistent = decoded.consistent()
        estimates.append(decoded.estimate - population.weights)
        shares.append([consistent[name].share for name in fruits] - population.weights)

    def z(errors: np.ndarray) -> np.ndarray:
        return errors.mean(axis=0) / (errors.std(axis=0, ddof=1) / np.sqrt(len(errors)))

    unbiased, biased = np.array(estimates), np.array(shares)
    assert np.abs(z(unbiased)).max() < 4.4
    assert z(biased[:, 10:].sum(axis=1)) > 4.4, "rare values: too common"
    assert z(biased[:, :5].sum(axis=1)) < -4.4, "common values: too rare"
    assert np.square(biased).mean() < np.square(unbiased).mean(), "but closer to the truth"
