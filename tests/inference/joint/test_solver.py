"""Three routes to one optimum: the quadratic solver, plain EM run long, a general convex solver."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from experiments.direct_rows import basic_rows, bloom_rows, dependent_table, draw_cells
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from deniable.compute.executors import Threads
from deniable.compute.rows import multiply_out
from deniable.errors import InputError
from deniable.inference.joint.evidence import Evidence, gather
from deniable.inference.joint.quadratic import minimise_quadratic
from deniable.inference.joint.solver import JointFit, NotConvergedWarning, maximise
from deniable.kernels.array_types import RowShard


def simulated(
    shape: tuple[int, int], count: int, seed: int, q: float = 0.75
) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    values = draw_cells(dependent_table(*shape, strength=0.3), count, rng)
    cohorts = rng.integers(8, size=count)
    return tuple(
        bloom_rows(v, size, rng=rng, cohorts=cohorts, q=q)
        for v, size in zip(values, shape, strict=True)
    )


def fitted(
    shards: Sequence[RowShard],
    shape: tuple[int, ...],
    executor: Threads | None = None,
    **settings: Any,
) -> JointFit:
    return maximise(gather(shards, shape, executor=executor), **settings)


def plain_em(
    shards: Sequence[RowShard], shape: tuple[int, ...], *, nats: float, max_passes: int
) -> JointFit:
    """The paper's algorithm, until its gap is at most `nats`: the reference for the solver."""
    evidence = gather(shards, shape)
    table = np.full(evidence.folded, 1 / np.prod(shape))
    for passes in range(1, max_passes + 1):
        evaluation = evidence.evaluate(table)
        gap = evaluation.gap
        if gap <= nats or passes == max_passes:
            break
        table = evaluation.em_step(table)
    shaped = table.reshape(evidence.shape)
    return JointFit(shaped, evaluation.log_likelihood, gap, passes, gap <= nats)


def log_likelihood(rows: tuple[np.ndarray, ...], table: np.ndarray) -> float:
    cells = multiply_out([array.astype(np.float64) for array in rows])
    return float(np.log(cells @ table.ravel()).sum())


def general_optimum(rows: tuple[np.ndarray, ...]) -> float:
    """Maximum by scipy's SLSQP, on the simplex."""
    cells = multiply_out([array.astype(np.float64) for array in rows])
    count, size = cells.shape
    found = minimize(
        lambda p: -np.log(np.maximum(cells @ p, 1e-300)).mean(),
        np.full(size, 1 / size),
        jac=lambda p: -(1 / np.maximum(cells @ p, 1e-300)) @ cells / count,
        bounds=[(0, 1)] * size,
        constraints={"type": "eq", "fun": lambda p: p.sum() - 1, "jac": lambda p: np.ones(size)},
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-13},
    )
    return float(-count * found.fun)


@pytest.mark.slow
@pytest.mark.parametrize(("shape", "count", "q"), [((3, 4), 2000, 0.75), ((5, 5), 3000, 0.41)])
def test_three_solvers_agree_to_the_certified_gap(
    shape: tuple[int, int], count: int, q: float
) -> None:
    rows = simulated(shape, count, seed=4, q=q)
    fit = fitted([rows], shape, nats=1e-3)
    slow = plain_em([rows], shape, nats=5e-2, max_passes=20_000)
    assert fit.converged
    assert slow.converged
    assert fit.log_likelihood == pytest.approx(log_likelihood(rows, fit.table), abs=1e-6)
    assert -1e-3 <= fit.log_likelihood - slow.log_likelihood <= slow.gap_nats
    assert fit.log_likelihood == pytest.approx(general_optimum(rows), abs=2e-3)


def test_the_gap_bounds_the_distance_to_the_optimum_all_along() -> None:
    rows = simulated((4, 4), 3000, seed=5)
    best = fitted([rows], (4, 4), nats=1e-6).log_likelihood
    short = [plain_em([rows], (4, 4), nats=0, max_passes=n) for n in (1, 3, 10, 30, 100)]
    for fit in short:
        assert not fit.converged
        assert best - fit.log_likelihood <= fit.gap_nats
    # Twin: the step rule of 1e-6 calls a table final whose gap is still far above 0.01 nats.
    far = next(fit for fit in short if fit.passes == 30)
    assert far.gap_nats > 0.01


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    shape=st.lists(st.integers(1, 6), min_size=1, max_size=3).map(tuple),
    count=st.sampled_from([1, 2, 5, 40, 700]),
    zeros=st.booleans(),
    weighted=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_any_shape_is_certified(
    shape: tuple[int, ...], count: int, zeros: bool, weighted: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    rows = []
    for size in shape:
        array = rng.random((count, size)) ** 4
        array[rng.random(array.shape) < (0.4 if zeros else 0)] = 0
        array[np.arange(count), rng.integers(size, size=count)] = 1
        rows.append((array / array.max(axis=1, keepdims=True)).astype(np.float32))
    shard = (*rows, rng.integers(1, 9, count)) if weighted else tuple(rows)
    fit = fitted([shard], shape)
    assert fit.converged
    assert fit.gap_nats <= 0.01
    assert fit.table.shape == shape
    assert np.all(fit.table >= 0)
    assert fit.table.sum() == pytest.approx(1.0)


def test_weights_stand_for_repeated_rows() -> None:
    rng = np.random.default_rng(7)
    rows = simulated((3, 3), 400, seed=7)
    times = rng.integers(1, 6, 400)
    weighted = fitted([(*rows, times)], (3, 3), nats=1e-6)
    repeated = fitted([tuple(np.repeat(a, times, axis=0) for a in rows)], (3, 3), nats=1e-6)
    np.testing.assert_allclose(weighted.table, repeated.table, atol=1e-5)
    assert weighted.log_likelihood == pytest.approx(repeated.log_likelihood, abs=1e-5)
    # Twin: forgetting the weights gives another table.
    assert np.abs(fitted([rows], (3, 3)).table - repeated.table).max() > 1e-3


def test_one_variable_gives_the_margin_of_basic_reports() -> None:
    rng = np.random.default_rng(8)
    truth = np.array([0.5, 0.3, 0.2])
    values = rng.choice(3, 40_000, p=truth)
    fit = fitted([(basic_rows(values, 3, rng=rng),)], (3,))
    np.testing.assert_allclose(fit.table, truth, atol=0.02)


def test_three_variables_fold_the_way_they_came() -> None:
    rng = np.random.default_rng(9)
    truth = rng.dirichlet(np.ones(24)).reshape(2, 3, 4)
    values = draw_cells(truth, 60_000, rng)
    rows = tuple(
        basic_rows(v, size, rng=rng, p=0.02, q=0.98)
        for v, size in zip(values, truth.shape, strict=True)
    )
    np.testing.assert_allclose(fitted([rows], (2, 3, 4)).table, truth, atol=0.012)


def test_subsamples_and_precision_do_not_show_in_the_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = simulated((6, 6), 70_000, seed=10)
    fit = fitted([rows], (6, 6))
    monkeypatch.setattr("deniable.inference.joint.solver._sample_sizes", lambda *_: iter(()))
    again = fitted([rows], (6, 6), executor=Threads(1))
    assert fit.converged
    assert again.converged
    assert fit.log_likelihood == pytest.approx(again.log_likelihood, abs=0.01)


def test_sorted_reports_are_sampled_evenly() -> None:
    rows = simulated((4, 4), 60_000, seed=11)
    order = np.argsort(rows[0][:, 0])
    fit = fitted([tuple(array[order] for array in rows)], (4, 4))
    assert fit.converged
    assert fit.passes < 25


def test_pieces_on_one_or_three_threads_give_the_same_bits() -> None:
    rows = simulated((4, 5), 90_000, seed=12)
    one, three = (fitted([rows], (4, 5), executor=Threads(n)) for n in (1, 3))
    np.testing.assert_array_equal(one.table, three.table)


def test_out_of_passes_it_says_so() -> None:
    rows = simulated((6, 6), 3000, seed=14)
    with pytest.warns(NotConvergedWarning, match="raise max_passes"):
        fit = fitted([rows], (6, 6), nats=1e-9, max_passes=2)
    assert not fit.converged
    assert fit.gap_nats > 1e-9


def test_a_wrong_curvature_costs_passes_but_not_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = simulated((4, 4), 4000, seed=15)
    right = fitted([rows], (4, 4))
    real = Evidence.information
    monkeypatch.setattr(Evidence, "information", lambda e, t: 0.2 * real(e, t))
    wrong = fitted([rows], (4, 4))
    assert wrong.converged
    assert wrong.log_likelihood == pytest.approx(right.log_likelihood, abs=0.01)


def test_weighted_and_plain_shards_mix_and_sample() -> None:
    rows = simulated((4, 4), 50_000, seed=18)
    heavy = np.zeros(20_000)
    heavy[:5000] = 4.0
    mixed = [tuple(a[20_000:] for a in rows), (*(a[:20_000] for a in rows), heavy)]
    plain = [tuple(np.concatenate([a[20_000:], *[a[:5000]] * 4]) for a in rows)]
    one, other = (fitted(shards, (4, 4)) for shards in (mixed, plain))
    assert one.log_likelihood == pytest.approx(other.log_likelihood, abs=0.02)
    few = gather(mixed, (4, 4)).sample(4000, np.random.default_rng(1))
    assert few.weight == 4000


def test_tables_too_large_for_a_curvature_are_refused() -> None:
    with pytest.raises(InputError, match="fewer questions or categories"):
        fitted([(np.ones((2, 100), np.float32),) * 2], (100, 100))


@settings(max_examples=60, deadline=None)
@given(size=st.integers(1, 30), rank=st.integers(1, 40), seed=st.integers(0, 2**32 - 1))
def test_pivoting_meets_the_optimality_conditions(size: int, rank: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(size, rank))
    hessian = root @ root.T + 1e-3 * np.eye(size)
    linear = rng.normal(size=size)
    x = minimise_quadratic(hessian, linear, rng.random(size) < 0.5)
    slope = hessian @ x + linear
    assert np.all(x >= 0)
    assert np.all(slope >= -1e-5)
    assert np.all(np.abs(slope[x > 0]) < 1e-5)


def test_evidence_of_a_pair_is_that_pairs() -> None:
    rows = (*simulated((3, 4), 500, seed=16), *simulated((2, 2), 500, seed=17)[:1])
    pair = gather([rows], (3, 4, 2)).only(2, 0)
    assert pair.shape == (2, 3)
    (piece,) = pair.rows.map(lambda piece: piece)
    np.testing.assert_array_equal(piece.rows[1], rows[0])


def test_a_cell_that_one_report_holds_up_does_not_stop_the_climb() -> None:
    """At 0 such a cell is curved 10⁷ times as much as at its optimum of some 1/N; averages of
    curvatures that remembered it left gaps of 70,000 nats after 200 passes."""
    rng = np.random.default_rng(0)
    table = dependent_table(11, 12, strength=0.0, exponent=1.5)
    values = draw_cells(table, 50_000, rng)
    first, second = (basic_rows(v, n, rng=rng) for v, n in zip(values, table.shape, strict=True))
    second = np.concatenate([second, np.full((len(second), 1), 1e-4, np.float32)], axis=1)
    second[7] = 1e-7
    second[7, 12] = 1.0
    fit = fitted([(first, second)], (11, 13))
    assert fit.converged
    assert fit.gap_nats <= 0.01
