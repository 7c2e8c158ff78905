"""Linear ratios and tables against enumeration, exact counts and the likelihood."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from deniable.inference.linear.estimate import QuestionRatios, linear_joint, linear_test
from deniable.inference.linear.joint_counts import PairCounts
from deniable.inference.linear.ratios import LinearRatios, fit_margin
from deniable.inference.marginal.bit_counts import BitCounts
from deniable.inference.models.base import Components

Floats = NDArray[np.float64]
SCALE = 10**12
"""So many reports that rounding expected counts to whole ones does not matter."""


def components(strata: int, rng: np.random.Generator, *, exclusive: bool = False) -> Components:
    """Three categories of four components over four bits: the last is a mixture of two."""
    theta = rng.uniform(0.1, 0.9, (strata, 4, 4))
    if exclusive:
        theta /= theta.sum(axis=2, keepdims=True)
    mixing = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0.3, 0.7]])
    return Components(theta.__getitem__, mixing, exclusive)


def outcomes(made: Components, stratum: int) -> tuple[Floats, Floats]:
    """Every report float64[R, k], and its probability given each component, float64[R, C]."""
    theta = made.theta(np.array([stratum]))[0]
    if made.exclusive:
        return np.eye(theta.shape[1]), theta.T
    reports = np.array(list(product((0.0, 1.0), repeat=theta.shape[1])))
    given = np.where(reports[:, None, :] == 1, theta[None], 1 - theta[None]).prod(axis=2)
    return reports, given


def sides(
    strata: int, seed: int, *, exclusive: bool = False
) -> list[tuple[Components, QuestionRatios]]:
    rng = np.random.default_rng(seed)
    found = []
    for one_of in (exclusive, False):
        made = components(strata, rng, exclusive=one_of)
        margin = rng.dirichlet(np.ones(3))
        found.append((made, QuestionRatios(made, margin, *[np.arange(strata)] * 2)))
    return found


def expected_counts(table: Floats, made: list[Components], strata: int) -> PairCounts:
    """What reports of this table give on average, `SCALE` of them in stratum 0, fewer in others."""
    total = SCALE // np.arange(1, strata + 1)
    means = [m.mixing @ m.theta(np.arange(strata)) for m in made]  # [S, categories, bits]
    both = np.einsum("ij,sia,sjb->sab", table, *means)
    first = np.einsum("i,sia->sa", table.sum(axis=1), means[0])
    second = np.einsum("j,sjb->sb", table.sum(axis=0), means[1])
    scaled = [np.rint(a * total.reshape(-1, *[1] * (a.ndim - 1))) for a in (both, first, second)]
    return PairCounts("", ("x", "y"), *(a.astype(np.int64) for a in scaled), total)  # type: ignore[arg-type]


@pytest.mark.parametrize("exclusive", [False, True])
def test_moments_of_ratios_are_those_of_every_report(exclusive: bool) -> None:
    made, side = sides(2, 3, exclusive=exclusive)[0]
    ratios: LinearRatios = side.ratios
    for s in range(2):
        reports, given = outcomes(made, s)
        values = 1 + (reports - ratios.centre[s]) @ ratios.slope[s]
        chance = given @ made.mixing.T  # of each report, given each category
        assert ratios.gain[s] == pytest.approx(chance.T @ values)
        pairs = (values[:, :, None] * values[:, None, :]).reshape(len(values), -1)
        assert ratios.square[s] == pytest.approx(chance.T @ pairs)
        assert ratios.margin @ ratios.gain[s] == pytest.approx(np.ones(3))


def test_exclusive_ratios_are_likelihood_ratios() -> None:
    made, side = sides(1, 4, exclusive=True)[0]
    reports, given = outcomes(made, 0)
    chance = given @ made.mixing.T
    values = 1 + (reports - side.ratios.centre[0]) @ side.ratios.slope[0]
    assert values == pytest.approx(chance / (chance @ side.ratios.margin)[:, None])


@pytest.mark.parametrize("exclusive", [False, True])
def test_exact_counts_give_the_exact_table(exclusive: bool) -> None:
    both = sides(3, 5, exclusive=exclusive)
    table = np.random.default_rng(6).dirichlet(np.ones(9)).reshape(3, 3)
    table[0, 0] += table[1, 2]
    table[1, 2] = 0.0
    counts = expected_counts(table, [made for made, _ in both], 3)
    fit = linear_joint(counts, *(side for _, side in both))
    assert fit.unconstrained == pytest.approx(table, abs=1e-6)
    assert fit.covariance.table == pytest.approx(table, abs=1e-6)
    margin = fit_margin(BitCounts(counts.first, counts.total), both[0][0])
    assert margin == pytest.approx(table.sum(axis=1), abs=1e-6)


def test_covariance_is_that_of_the_estimate_over_reports() -> None:
    """One report's estimate is linear in it: its covariance over every pair of reports, exactly."""
    both = sides(1, 7)
    table = np.random.default_rng(8).dirichlet(np.ones(9)).reshape(3, 3)
    counts = expected_counts(table, [made for made, _ in both], 1)
    fit = linear_joint(counts, *(side for _, side in both))
    values, chances = [], []
    for made, side in both:
        reports, given = outcomes(made, 0)
        values.append(1 + (reports - side.ratios.centre[0]) @ side.ratios.slope[0])
        chances.append(given @ made.mixing.T)
    products = np.einsum("ri,tj->rtij", *values).reshape(-1, 9)
    chance = np.einsum("ri,tj,ij->rt", *chances, table).ravel()
    mean = chance @ products
    spread = (products - mean).T @ ((products - mean) * chance[:, None])
    normal = np.kron(both[0][1].ratios.gain[0].T, both[1][1].ratios.gain[0].T)
    assert mean == pytest.approx(normal @ table.ravel())
    basis = np.linalg.svd(np.ones((1, 9)))[2][1:].T
    bread = basis @ np.linalg.inv(basis.T @ normal @ basis) @ basis.T
    assert fit.covariance.matrix * counts.reports == pytest.approx(
        bread @ spread @ bread, rel=1e-4, abs=1e-6
    )


def test_independent_answers_have_a_statistic_of_nought() -> None:
    both = sides(2, 9)
    margins = [np.array([0.2, 0.3, 0.5]), np.array([0.6, 0.3, 0.1])]
    apart = expected_counts(np.outer(*margins), [made for made, _ in both], 2)
    test = linear_test(apart, *(side for _, side in both))
    assert test.degrees_of_freedom == 4 and test.statistic < 1e-3 and test.p_value > 0.99
    tied = expected_counts(np.diag(margins[0]), [made for made, _ in both], 2)
    assert linear_test(tied, *(side for _, side in both)).statistic > 1e6
