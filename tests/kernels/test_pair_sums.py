"""Sums over pairs of categories, against a direct computation in float64."""

from __future__ import annotations

import numpy as np
import pytest
from experiments.direct_rows import bloom_rows

from deniable.inference.joint.evidence import gather
from deniable.kernels.array_types import Floats, Singles
from deniable.kernels.likelihood.pair_sums import shares_background

COUNT = 9000
"""More reports than are added up in float32, with an incomplete last block."""


def bloom(size: int, seed: int) -> Singles:
    """Return rows with a few distinct likelihoods, most of them the smallest."""
    rng = np.random.default_rng(seed)
    values, cohorts = rng.integers(size, size=COUNT), rng.integers(8, size=COUNT)
    return bloom_rows(values, size, rng=rng, cohorts=cohorts)


def with_other(rows: Singles, seed: int) -> Singles:
    """Append a category whose likelihood is often the smallest, never equal to another."""
    other = rows.min(axis=1) * np.random.default_rng(seed).uniform(0.001, 2.0, COUNT)
    extended = np.column_stack([rows, other])
    return np.asarray(extended / extended.max(axis=1, keepdims=True), np.float32)


def dense(size: int, seed: int) -> Singles:
    """Return rows of distinct likelihoods."""
    rows = np.random.default_rng(seed).uniform(0.01, 1.0, (COUNT, size)).astype(np.float32)
    return np.asarray(rows / rows.max(axis=1, keepdims=True))


def uninformative(size: int) -> Singles:
    """Return rows that say nothing."""
    return np.ones((COUNT, size), np.float32)


def direct(rows: tuple[Singles, ...], weights: Floats, table: Floats) -> Floats:
    """Return the information matrix by its definition."""
    cells = rows[0].astype(np.float64)
    for each in rows[1:]:
        cells = (cells[:, :, None] * each[:, None, :]).reshape(COUNT, -1)
    scaled = cells / (cells @ table.ravel())[:, None]
    return np.asarray((scaled * weights[:, None]).T @ scaled)


@pytest.mark.parametrize(
    "rows",
    [
        (bloom(9, 1), bloom(12, 2)),
        (with_other(bloom(9, 1), 3), with_other(bloom(4, 2), 4)),
        (dense(2, 5), bloom(6, 1)),
        (dense(7, 5), dense(11, 6)),
        (uninformative(3), bloom(6, 1)),
        (bloom(5, 1), dense(2, 2), with_other(bloom(3, 4), 5)),
        (with_other(bloom(9, 1), 3),),
    ],
    ids=["bloom", "other", "boolean", "dense", "uninformative", "three variables", "one variable"],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_sums_over_pairs_are_exact(rows: tuple[Singles, ...], weighted: bool) -> None:
    """Every entry agrees to the precision of float32, however small it is."""
    rng = np.random.default_rng(7)
    shape = tuple(each.shape[1] for each in rows)
    table = rng.dirichlet(np.ones(int(np.prod(shape))))
    weights = rng.integers(1, 5, COUNT).astype(np.float64) if weighted else np.ones(COUNT)
    evidence = gather([(*rows, weights) if weighted else rows], shape)
    computed = evidence.information(table.reshape(evidence.folded))
    np.testing.assert_allclose(computed, direct(rows, weights, table), rtol=1e-5)


def test_a_category_that_is_lowest_alone_has_no_share_in_the_background() -> None:
    """Other would otherwise lower the background, and no other category would be equal to it."""
    assert shares_background(with_other(bloom(9, 1), 3)).tolist() == [1.0] * 9 + [0.0]
    assert shares_background(bloom(9, 1)).all()
    assert not shares_background(dense(2, 5)).any()
