"""Bit counts against numpy, by the compiled kernel and by NumPy."""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.errors import InputError
from deniable.kernels.counting import bit_sums
from deniable.kernels.counting.bit_sums import count_ones


@pytest.fixture(scope="module", autouse=True, params=["compiled", "numpy"])
def way(request: pytest.FixtureRequest) -> Iterator[None]:
    """Who counts, however few the reports are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bit_sums, "pays_off", lambda _: request.param == "compiled")
        yield


@given(
    k=st.sampled_from([1, 3, 8, 63, 64, 65, 100, 128, 200]),
    rows=st.integers(0, 700),
    strata=st.integers(1, 5),
    threads=st.integers(1, 3),
    seed=st.integers(0, 1 << 32),
)
@settings(max_examples=100, deadline=None)
def test_counts_equal_numpy(k: int, rows: int, strata: int, threads: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 2, (rows, k), dtype=np.uint8)
    stratum = rng.integers(0, strata, rows).astype(rng.choice(["u2", "i4", "i8"]))
    packed = np.packbits(bits, axis=1, bitorder="little")
    ones, totals = count_ones(packed, k, stratum, strata, threads=threads)
    expected = np.array([bits[stratum == s].sum(axis=0, dtype=np.int64) for s in range(strata)])
    assert np.array_equal(ones, expected) and ones.dtype == np.int64
    assert totals.tolist() == [int((stratum == s).sum()) for s in range(strata)]


@pytest.mark.parametrize("rows", [254, 255, 256, 510, 511, 40_000])
def test_byte_counters_never_overflow(rows: int) -> None:
    """All bits set in one stratum: a byte emptied one report too late would lose 256."""
    ones, totals = count_ones(
        np.full((rows, 2), 255, dtype=np.uint8), 16, np.ones(rows, dtype=np.uint16), 2, threads=1
    )
    assert ones.tolist() == [[0] * 16, [rows] * 16] and totals.tolist() == [0, rows]


def test_padding_bits_are_not_counted() -> None:
    ones, _ = count_ones(np.array([[255]], dtype=np.uint8), 3, np.array([0]), 1)
    assert ones.tolist() == [[1, 1, 1]]


def test_a_stratum_outside_is_named() -> None:
    bits = np.zeros((3, 1), dtype=np.uint8)
    with pytest.raises(InputError, match=r"strata must be in 0..1, got 2 in report 1"):
        count_ones(bits, 8, np.array([0, 2, 5]), 2)
    with pytest.raises(InputError, match=r"strata must be in 0..1, got -1 in report 0"):
        count_ones(bits, 8, np.array([-1, 0, 0]), 2)
    with pytest.raises(InputError, match="reports needs a stratum"):
        count_ones(bits, 8, np.array([0]), 2)
