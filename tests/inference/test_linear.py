"""Linear ratios and tables against enumeration, exact counts and the likelihood."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from deniable.inference.joint.collapse import category_averages
from deniable.inference.linear import LinearRatios, linear_joint, linear_test
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
) -> list[tuple[Components, LinearRatios]]:
    """Two questions, and their ratios at the margins of counts without noise."""
    rng = np.random.default_rng(seed)
    found = []
    for one_of in (exclusive, False):
        made = components(strata, rng, exclusive=one_of)
        margin, total = rng.dirichlet(np.ones(3)), np.full(strata, SCALE)
        ones = np.rint(SCALE * (margin @ made.mixing @ made.theta(np.arange(strata))))
        ratios = LinearRatios.of(made, BitCounts(ones.astype(np.int64), total), np.arange(strata))
        assert ratios.margin == pytest.approx(margin, abs=1e-6)
        found.append((made, ratios))
    return found


def expected_pairs(table: Floats, made: list[Components], strata: int) -> Floats:
    """What reports of this table give on average, `SCALE` of them in stratum 0, fewer in others."""
    total = SCALE // np.arange(1, strata + 1)
    means = [m.mixing @ m.theta(np.arange(strata)) for m in made]  # [S, categories, bits]
    x, y = (np.concatenate([m, np.ones((*m.shape[:2], 1))], axis=2) for m in means)
    return np.rint(np.einsum("ij,sia,sjb,s->sab", table, x, y, total))


@pytest.mark.parametrize("exclusive", [False, True])
def test_moments_of_ratios_are_those_of_every_report(exclusive: bool) -> None:
    made, ratios = sides(2, 3, exclusive=exclusive)[0]
    for s in range(2):
        reports, given = outcomes(made, s)
        values = np.column_stack([reports, np.ones(len(reports))]) @ ratios.weights[s]
        chance = given @ made.mixing.T  # of each report, given each category
        assert ratios.gain[s] == pytest.approx(chance.T @ values)
        pairs = (values[:, :, None] * values[:, None, :]).reshape(len(values), -1)
        assert ratios.square[s] == pytest.approx(chance.T @ pairs)
        assert ratios.margin @ ratios.gain[s] == pytest.approx(np.ones(3))
        weight = chance @ ratios.margin
        spread = (values - 1).T @ ((values - 1) * weight[:, None])
        assert ratios.variance[s] == pytest.approx(spread)


def test_exclusive_ratios_are_likelihood_ratios() -> None:
    made, ratios = sides(1, 4, exclusive=True)[0]
    reports, given = outcomes(made, 0)
    chance = given @ made.mixing.T
    values = np.column_stack([reports, np.ones(len(reports))]) @ ratios.weights[0]
    assert values == pytest.approx(chance / (chance @ ratios.margin)[:, None])


@pytest.mark.parametrize("exclusive", [False, True])
def test_exact_counts_give_the_exact_table(exclusive: bool) -> None:
    both = sides(3, 5, exclusive=exclusive)
    table = np.random.default_rng(6).dirichlet(np.ones(9)).reshape(3, 3)
    table[0, 0] += table[1, 2]
    table[1, 2] = 0.0
    pairs = expected_pairs(table, [made for made, _ in both], 3)
    fit, unconstrained, _ = linear_joint(pairs, *(ratios for _, ratios in both))
    assert unconstrained.table == pytest.approx(table, abs=1e-6)
    assert fit.table == pytest.approx(table, abs=1e-6)


def test_covariance_is_that_of_the_estimate_over_reports() -> None:
    """One report's estimate is linear in it: its covariance over every pair of reports, exactly."""
    both = sides(1, 7)
    table = np.random.default_rng(8).dirichlet(np.ones(9)).reshape(3, 3)
    pairs = expected_pairs(table, [made for made, _ in both], 1)
    fit, _, _ = linear_joint(pairs, *(ratios for _, ratios in both))
    values, chances = [], []
    for made, ratios in both:
        reports, given = outcomes(made, 0)
        values.append(np.column_stack([reports, np.ones(len(reports))]) @ ratios.weights[0])
        chances.append(given @ made.mixing.T)
    products = np.einsum("ri,tj->rtij", *values).reshape(-1, 9)
    chance = np.einsum("ri,tj,ij->rt", *chances, table).ravel()
    mean = chance @ products
    spread = (products - mean).T @ ((products - mean) * chance[:, None])
    normal = np.kron(both[0][1].gain[0].T, both[1][1].gain[0].T)
    assert mean == pytest.approx(normal @ table.ravel())
    basis = np.linalg.svd(np.ones((1, 9)))[2][1:].T
    bread = basis @ np.linalg.inv(basis.T @ normal @ basis) @ basis.T
    assert fit.matrix * SCALE == pytest.approx(bread @ spread @ bread, rel=1e-4, abs=1e-6)


def test_independent_answers_have_a_statistic_of_nought() -> None:
    both, apart = sides(2, 9), [np.arange(3)] * 2
    margins = [np.array([0.2, 0.3, 0.5]), np.array([0.6, 0.3, 0.1])]
    made, (x, y) = zip(*both, strict=True)
    test = linear_test(expected_pairs(np.outer(*margins), made, 2), x, y, apart)
    assert test.degrees_of_freedom == 4 and test.statistic < 1e-3 and test.p_value > 0.99
    tied = expected_pairs(np.diag(margins[0]), made, 2)
    assert linear_test(tied, x, y, apart).statistic > 1e6
    together = [np.array([0, 0, 1]), np.arange(3)]
    assert linear_test(tied, x, y, together).degrees_of_freedom == 2


def test_strata_of_no_report_or_one_say_nothing() -> None:
    (one, x), (other, y) = sides(2, 9)
    pairs = expected_pairs(np.diag([0.2, 0.3, 0.5]), [one, other], 2) * (100 / SCALE)
    one_report = np.ones_like(pairs[:1])
    wider = [
        replace(side, weights=side.weights[[0, 1, 0, 1]], square=side.square[[0, 1, 0, 1]],
                gain=side.gain[[0, 1, 0, 1]])
        for side in (x, y)
    ]  # fmt: skip
    more = np.concatenate([pairs, 0 * one_report, one_report])
    found = linear_test(more, *wider, [np.arange(3)] * 2)
    assert found.statistic == pytest.approx(linear_test(pairs, x, y, [np.arange(3)] * 2).statistic)


def test_categories_that_are_added_up_are_tested_as_one() -> None:
    """As with ratios of a question that has the averages of these categories."""
    (one, x), (other, y) = sides(2, 9)
    table = np.random.default_rng(3).dirichlet(np.ones(9)).reshape(3, 3)
    pairs = expected_pairs(table, [one, other], 2)
    groups = [np.array([0, 0, 1]), np.arange(3)]
    means = x.margin @ one.mixing @ one.theta(np.arange(2))
    counts = BitCounts(np.rint(SCALE * means).astype(np.int64), np.full(2, SCALE))
    averaged = replace(one, mixing=category_averages(groups[0], x.margin) @ one.mixing)
    fewer = LinearRatios.of(averaged, counts, np.arange(2))
    expected = linear_test(pairs, fewer, y, [np.arange(2), np.arange(3)])
    found = linear_test(pairs, x, y, groups)
    assert found.degrees_of_freedom == expected.degrees_of_freedom == 2
    assert found.statistic == pytest.approx(expected.statistic, rel=1e-4)
