"""Pair counts against numpy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.errors import InputError
from deniable.kernels.counting.pair_tables import PLANE_WORDS, PairTables

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
    stratum = rng.integers(0, strata, rows).astype(rng.choice(["u2", "i4", "i8"]))
    packed = [np.packbits(bits, axis=1, bitorder="little") for bits in (x, y)]
    tables = PairTables.empty(strata, (k, other))
    for part in (slice(0, rows // 3), slice(rows // 3, None)):
        tables.add(packed[0][part], packed[1][part], stratum[part])
    for s in range(strata):
        chosen = stratum == s
        assert np.array_equal(tables.both[s], x[chosen].T.astype(int) @ y[chosen].astype(int))
        assert np.array_equal(tables.first[s], x[chosen].sum(axis=0))
        assert np.array_equal(tables.second[s], y[chosen].sum(axis=0))
        assert tables.total[s] == chosen.sum()


@pytest.mark.parametrize("more", [-1, 0, 1, 64, 65])
def test_planes_that_are_used_again_hold_nothing_of_before(more: int) -> None:
    """A stratum of more reports than fit in the planes at once; the next one has few."""
    rows = 64 * PLANE_WORDS + more
    ones = np.full((rows + 3, 1), 255, np.uint8)
    stratum = np.repeat([0, 1], [rows, 3])
    tables = PairTables.empty(2, (8, 5))
    tables.add(ones, ones, stratum)
    for counts in (tables.both, tables.first, tables.second, tables.total):
        assert (counts[0] == rows).all() and (counts[1] == 3).all()


def test_input_is_checked() -> None:
    bits, tables = np.zeros((3, 1), np.uint8), PairTables.empty(2, (8, 8))
    with pytest.raises(InputError, match=r"strata must be in 0..1, got 0..2"):
        tables.add(bits, bits, np.array([0, 2, 1]))
    with pytest.raises(InputError, match="every report a stratum; got 3, 2 and"):
        tables.add(bits, bits[:2], np.array([0, 0, 0]))
    with pytest.raises(InputError, match="second must be uint8"):
        PairTables.empty(1, (8, 9)).add(bits, bits, np.array([0, 0, 0]))
