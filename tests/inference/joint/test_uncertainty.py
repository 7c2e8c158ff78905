"""Covariance against finite differences, an explicit basis of the simplex, and direct sums."""

import numpy as np
import pytest
from experiments.direct_rows import basic_rows, dependent_table, draw_cells

from deniable.compute.rows import multiply_out
from deniable.errors import InputError
from deniable.inference.joint.collapse import collapse_influence
from deniable.inference.joint.evidence import Evidence, gather
from deniable.inference.joint.solver import maximise
from deniable.inference.joint.uncertainty import (
    STRATUM_GROUPS,
    covariance,
    invert_on_simplex,
    stratum_influence,
    widen_errors,
)
from deniable.results.covariance import Covariance


def simulated(shape: tuple[int, ...], count: int, seed: int, *, weighted: bool = False) -> Evidence:
    rng = np.random.default_rng(seed)
    truth = dependent_table(*shape[:2], strength=0.3)
    if len(shape) > 2:
        truth = np.multiply.outer(truth, np.full(shape[2:], 1 / np.prod(shape[2:])))
    values = draw_cells(truth, count, rng)
    rows = tuple(basic_rows(v, size, rng=rng) for v, size in zip(values, shape, strict=True))
    return gather([(*rows, rng.integers(1, 4, count)) if weighted else rows], shape)


@pytest.mark.parametrize(
    ("shape", "weighted"), [((3, 4), False), ((1, 5), False), ((2, 3, 2), True), ((4,), True)]
)
def test_information_equals_the_sum_over_reports(shape: tuple[int, ...], weighted: bool) -> None:
    if len(shape) == 1:
        evidence = simulated((*shape, 2), 5000, 1, weighted=weighted).only(0)
    else:
        evidence = simulated(shape, 5000, 1, weighted=weighted)
    table = np.random.default_rng(2).dirichlet(np.ones(int(np.prod(shape))))
    total = np.zeros((table.size, table.size))
    for piece in evidence.rows.map(lambda piece: piece):
        cells = multiply_out([rows.astype(np.float64) for rows in piece.rows])
        weights = np.ones(piece.count) if piece.weights is None else piece.weights
        scaled = cells / (cells @ table)[:, None]
        total += (scaled * weights[:, None]).T @ scaled
    found = evidence.information(table.reshape(evidence.folded))
    np.testing.assert_allclose(found, total, rtol=2e-6)


def test_information_is_minus_the_derivative_of_the_gradient() -> None:
    evidence = simulated((3, 3), 4000, 3)
    table = maximise(evidence).table * 0.9 + 0.1 / 9
    found = evidence.information(table)
    for cell in range(9):
        step = np.zeros(9)
        step[cell] = 1e-5
        up, down = (
            evidence.evaluate(table + sign * step.reshape(3, 3)).gradient for sign in (1, -1)
        )
        slope = -(up - down).ravel() * evidence.weight / 2e-5
        np.testing.assert_allclose(found[cell], slope, rtol=1e-4)


def test_the_inverse_lives_on_the_simplex() -> None:
    rng = np.random.default_rng(4)
    root = rng.normal(size=(7, 20))
    observed = root @ root.T
    basis = np.linalg.qr(np.eye(7) - 1 / 7)[0][:, :6]
    expected = basis @ np.linalg.inv(basis.T @ observed @ basis) @ basis.T
    found = invert_on_simplex(observed)
    np.testing.assert_allclose(found, expected, atol=1e-10)
    # Twin: inverting the information itself, as the paper prints it, is another matrix.
    assert np.abs(np.linalg.inv(observed) - expected).max() > 1e-3


def test_reports_seen_without_noise_have_multinomial_errors() -> None:
    rng = np.random.default_rng(5)
    values = rng.choice(4, 10_000, p=[0.4, 0.3, 0.2, 0.1])
    evidence = gather([(np.eye(4, dtype=np.float32)[values],)], (4,))
    table = maximise(evidence, nats=1e-9).table
    np.testing.assert_allclose(table, np.bincount(values) / 10_000, atol=1e-6)
    errors = covariance(evidence, table).standard_errors
    np.testing.assert_allclose(errors, np.sqrt(table * (1 - table) / 10_000), rtol=1e-4)


def test_too_few_reports_give_wide_intervals_not_errors() -> None:
    evidence = simulated((5, 6), 8, 6)
    found = covariance(evidence, maximise(evidence).table)
    intervals = found.intervals()
    assert np.all((intervals.low == 0) & (intervals.high == 1))


def test_conditional_rates_match_their_finite_difference() -> None:
    evidence = simulated((3, 4), 20_000, 7)
    found = covariance(evidence, maximise(evidence).table)
    rates = found.conditional(given=0)
    np.testing.assert_allclose(rates.estimate.sum(axis=1), 1.0)
    draws = np.random.default_rng(8).multivariate_normal(
        found.table.ravel(), found.matrix, size=20_000, method="eigh"
    )
    tables = draws.reshape(-1, 3, 4)
    spread = (tables / tables.sum(axis=2, keepdims=True)).std(axis=0)
    np.testing.assert_allclose(rates.standard_error, spread, rtol=0.05)
    other = found.conditional(given=1)
    np.testing.assert_allclose(other.estimate.sum(axis=0), 1.0)


def test_a_category_at_zero_has_no_rates() -> None:
    table = np.array([[0.5, 0.5], [0.0, 0.0]])
    rates = Covariance(table, np.eye(4) * 1e-4).conditional(0)
    assert np.isnan(rates.estimate[1]).all()
    assert np.all(rates.low[1] == 0)
    assert np.all(rates.high[1] == 1)


def test_p_values_and_intervals_agree() -> None:
    table = np.array([0.9, 0.1 - 1e-4, 1e-4])
    found = Covariance(table, np.diag([1e-4, 1e-4, 1e-4]))
    assert found.p_values()[0] < 1e-10
    assert found.p_values()[2] == pytest.approx(0.496, abs=1e-3)
    assert found.intervals().low[2] == 0.0


def test_collapsing_adds_cells_and_their_covariance() -> None:
    evidence = simulated((3, 3), 5000, 9)
    found = covariance(evidence, maximise(evidence).table)
    small = found.collapsed([[0, 1, 1], [0, 0, 0]])
    np.testing.assert_allclose(small.table.ravel(), [found.table[0].sum(), found.table[1:].sum()])
    rows = np.repeat([1.0, 0.0, 0.0], 3)
    assert small.matrix[0, 0] == pytest.approx(rows @ found.matrix @ rows)
    assert small.matrix.sum() == pytest.approx(0.0, abs=1e-12)


def test_wrong_shapes_are_refused() -> None:
    evidence = simulated((2, 2), 50, 10)
    with pytest.raises(InputError, match="shape"):
        covariance(evidence, np.ones((3, 3)) / 9)
    with pytest.raises(InputError, match="level"):
        Covariance(np.ones(2) / 2, np.eye(2)).intervals(1.5)
    with pytest.raises(InputError, match="matrix must be"):
        Covariance(np.ones(2) / 2, np.eye(3))


@pytest.mark.parametrize(("shape", "weighted"), [((3, 4), False), ((2, 3, 2), True)])
def test_strata_pull_by_their_scores(shape: tuple[int, ...], weighted: bool) -> None:
    rng = np.random.default_rng(12)
    labels = rng.integers(0, 10, 6000)
    evidence = simulated(shape, 6000, 11, weighted=weighted).stratified(labels)
    whole = covariance(evidence, maximise(evidence).table)
    cells, weights = [], []
    for piece in evidence.rows.map(lambda piece: piece):
        cells.append(multiply_out([rows.astype(np.float64) for rows in piece.rows]))
        weights.append(np.ones(piece.count) if piece.weights is None else piece.weights)
    v, w = np.concatenate(cells), np.concatenate(weights)
    score = v * (w / (v @ whole.table.ravel()))[:, None]
    mean = score.sum(axis=0) / w.sum()
    found = stratum_influence(evidence, whole).reshape(STRATUM_GROUPS, -1)
    for s in range(10):
        here = labels == s
        expected = (score[here].sum(axis=0) - w[here].sum() * mean) @ whole.matrix
        np.testing.assert_allclose(found[s], expected, atol=1e-6)
    assert not found[10:].any()
    # Independent reports pull as far as the covariance says; each of weight w counts as w equal.
    spread = (found**2).sum(axis=0) / np.diagonal(whole.matrix)
    assert spread.mean() == pytest.approx((w**2).sum() / w.sum(), rel=0.4)


def test_nothing_pulls_where_strata_are_not_known() -> None:
    evidence = simulated((3, 4), 3000, 13)
    whole = covariance(evidence, maximise(evidence).table)
    pulls = stratum_influence(evidence, whole)
    assert not pulls.any()
    assert widen_errors(whole, pulls, (True, True)) is whole


def test_errors_widen_by_what_strata_differ_by_apart_for_other() -> None:
    rng = np.random.default_rng(14)
    shape = (3, 4, 2)
    given = Covariance(np.full(shape, 1 / 24), np.eye(24) / 4096)
    pulls = rng.normal(0, 1 / 512, (64, *shape))  # 64 of these: the given errors
    pulls[:, :, 3] *= 3.0
    # Categories 1 and 2 of the second question are shown as one, which has twice the variance.
    groups = [np.arange(3), np.array([0, 1, 1, 2]), np.arange(2)]
    shown = given.collapsed(groups)
    found = widen_errors(shown, collapse_influence(pulls, groups), (False, True, False))
    ratio = found.standard_errors / shown.standard_errors
    np.testing.assert_allclose(ratio[:, :2], ratio[0, 0, 0])
    np.testing.assert_allclose(ratio[:, 2], ratio[0, 2, 0])
    assert 1 <= ratio[0, 0, 0] < 1.1
    assert 2.7 < ratio[0, 2, 0] < 3.3
    one = found.matrix[0, 0] / shown.matrix[0, 0]
    assert one == pytest.approx(ratio[0, 0, 0] ** 2)
    assert widen_errors(shown, collapse_influence(pulls[:7], groups), (False, True, False)) is shown
