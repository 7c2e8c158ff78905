"""Pair counts against numpy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.kernels.counting.pair_tables import PLANE_WORDS, add_pairs
from deniable.kernels.words import as_words

WIDTHS = st.sampled_from([1, 2, 3, 8, 63, 64, 65, 130])


@given(
    k=WIDTHS,
    other=WIDTHS,
    rows=st.integers(0, 500),
    strata=st.integers(1, 4),
    seed=st.integers(0, 1 << 32),
)
@settings(max_examples=60, deadline=None)
def test_counts_equal_numpy(k: int, other: int, rows: int, strata: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = (rng.integers(0, 2, (rows, width), dtype=np.uint8) for width in (k, other))
    stratum = rng.integers(0, strata, rows)
    packed = [as_words(np.packbits(bits, axis=1, bitorder="little")) for bits in (x, y)]
    both = np.zeros((strata, k + 1, other + 1), np.uint32)
    for part in (slice(0, rows // 3), slice(rows // 3, None)):
        add_pairs(both, packed[0][part], packed[1][part], stratum[part])
    always = np.ones((rows, 1), int)
    x, y = np.hstack([x, always]), np.hstack([y, always])
    for s in range(strata):
        assert np.array_equal(both[s], x[stratum == s].T @ y[stratum == s])


@pytest.mark.parametrize("more", [-1, 0, 1, 64, 65])
def test_planes_that_are_used_again_hold_nothing_of_before(more: int) -> None:
    """A stratum of more reports than fit in the planes at once; the next one has few."""
    rows = 64 * PLANE_WORDS + more
    ones = np.full((rows + 3, 1), 255, np.uint64)
    both = np.zeros((2, 9, 6), np.uint32)
    add_pairs(both, ones, ones, np.repeat([0, 1], [rows, 3]))
    assert (both[0] == rows).all() and (both[1] == 3).all()
