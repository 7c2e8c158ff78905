"""The E-step's compiled loops against a direct computation of the same sums."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.compute.rows import multiply_out
from deniable.errors import InputError
from deniable.inference.joint.evidence import Evidence, gather


def random_rows(
    rng: np.random.Generator, count: int, shape: tuple[int, ...]
) -> tuple[np.ndarray, ...]:
    rows = [rng.random((count, size), dtype=np.float32) + np.float32(1e-3) for size in shape]
    return tuple(array / array.max(axis=1, keepdims=True) for array in rows)


def direct(
    rows: tuple[np.ndarray, ...], weights: np.ndarray, table: np.ndarray
) -> tuple[float, np.ndarray]:
    cells = multiply_out([array.astype(np.float64) for array in rows])
    mixed = cells @ table.ravel()
    gradient = (weights / mixed) @ cells / weights.sum()
    return float(weights @ np.log(mixed)), gradient.reshape(table.shape)


def random_table(rng: np.random.Generator, evidence: Evidence) -> np.ndarray:
    table = rng.random(evidence.folded)
    return np.asarray(table / table.sum())


@settings(max_examples=40, deadline=None)
@given(
    shape=st.lists(st.integers(1, 9), min_size=1, max_size=3).map(tuple),
    count=st.sampled_from([1, 7, 8, 255, 256, 257, 600, 5000]),
    weighted=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_a_pass_equals_the_direct_sums(
    shape: tuple[int, ...], count: int, weighted: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    rows = random_rows(rng, count, shape)
    weights = rng.integers(0, 5, count) + (np.arange(count) == 0) if weighted else np.ones(count)
    evidence = gather([(*rows, weights) if weighted else rows], shape)
    table = random_table(rng, evidence)
    log_likelihood, gradient = direct(rows, weights.astype(np.float64), table)
    for precise, tolerance in ((True, 1e-11), (False, 2e-5)):
        seen = evidence.evaluate(table, precise=precise)
        np.testing.assert_allclose(seen.gradient, gradient, rtol=tolerance)
        assert seen.log_likelihood == pytest.approx(log_likelihood, rel=tolerance, abs=1e-3)


def test_float32_passes_do_not_drift_with_the_number_of_reports() -> None:
    rng = np.random.default_rng(0)
    rows = random_rows(rng, 200_000, (5, 4))
    evidence = gather([rows], (5, 4))
    table = random_table(rng, evidence)
    single, double = (evidence.evaluate(table, precise=precise) for precise in (False, True))
    # One float32 sum over 200,000 reports would be off by about 1e-4.
    assert np.abs(single.gradient / double.gradient - 1).max() < 2e-7


def test_the_table_averages_its_gradient_to_one() -> None:
    rng = np.random.default_rng(1)
    evidence = gather([random_rows(rng, 999, (3, 2, 4))], (3, 2, 4))
    table = random_table(rng, evidence)
    assert np.sum(table * evidence.evaluate(table).gradient) == pytest.approx(1.0, abs=1e-12)


def test_tiny_likelihoods_neither_underflow_nor_overflow() -> None:
    rows = np.full((64, 2), 1e-20, np.float32)
    rows[:, 0] = 1.0
    table = np.array([[1e-9], [1 - 1e-9]])
    seen = gather([(rows,)], (2,)).evaluate(table)
    assert seen.log_likelihood == pytest.approx(64 * np.log(1e-9 + 1e-20), rel=1e-9)
    assert np.all(np.isfinite(seen.gradient))


def test_a_report_that_no_cell_explains_is_impossible() -> None:
    rows = np.array([[1.0, 0.0], [0.0, 1.0]], np.float32)
    seen = gather([(rows,)], (2,)).evaluate(np.array([[1.0], [0.0]]))
    assert seen.log_likelihood == -np.inf


def test_shards_add_up_in_any_cut() -> None:
    rng = np.random.default_rng(2)
    rows = random_rows(rng, 3000, (4, 3))
    cuts = [0, 1, 700, 701, 3000]
    shards = [tuple(array[low:high] for array in rows) for low, high in pairwise(cuts)]
    table = np.full((4, 3), 1 / 12)
    whole, cut = (gather(part, (4, 3)).evaluate(table) for part in ([rows], shards))
    np.testing.assert_allclose(cut.gradient, whole.gradient, rtol=1e-12)
    assert cut.log_likelihood == pytest.approx(whole.log_likelihood, rel=1e-12)


def test_sampling_keeps_rows_of_a_report_together() -> None:
    rng = np.random.default_rng(3)
    first = rng.random((9000, 3)).astype(np.float32)
    first /= first.max(axis=1, keepdims=True)
    evidence = gather([(first[:4000], first[:4000]), (first[4000:], first[4000:])], (3, 3))
    few = evidence.sample(500, rng)
    assert few.weight == 500
    for piece in few.rows.map(lambda piece: piece):
        np.testing.assert_array_equal(piece.rows[0], piece.rows[1])


@pytest.mark.parametrize(
    ("shard", "message"),
    [
        ((np.ones((3, 2), np.float32),), "arrays"),
        ((np.ones((3, 2), np.float32), np.ones((4, 2), np.float32)), "shape"),
        ((np.ones((3, 2), np.float32), np.full((3, 2), 0.5, np.float32)), "largest entry"),
        ((np.ones((3, 2), np.float32), np.full((3, 2), np.nan, np.float32)), "largest entry"),
        ((np.ones((3, 2), np.float32), np.array([[1, -1]] * 3, np.float32)), "largest entry"),
        ((*(np.ones((3, 2), np.float32),) * 2, np.array([1.0, -1.0, 1.0])), "weights"),
        ((*(np.ones((0, 2), np.float32),) * 2,), "no reports"),
    ],
)
def test_wrong_shards_are_refused(shard: tuple[np.ndarray, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        gather([shard], (2, 2))
