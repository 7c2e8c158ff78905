"""Sums over the positions of candidates: NumPy gives exactly what the compiled kernels give."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.kernels.counting import gather
from deniable.kernels.counting.gather import (
    BitTables,
    StratumTables,
    gather_sums,
    position_set_fingerprints,
)


@given(
    strata=st.integers(1, 5),
    candidates=st.integers(0, 40),
    hashes=st.integers(1, 4),
    bits=st.sampled_from([2, 5, 64]),
    block=st.sampled_from([1, 50, 1 << 17]),
    seed=st.integers(0, 1 << 32),
)
@settings(max_examples=100)
def test_both_ways_give_the_same_sums(
    strata: int, candidates: int, hashes: int, bits: int, block: int, seed: int
) -> None:
    """Few bits make positions repeat; some strata have no reports, or no evidence."""
    rng = np.random.default_rng(seed)
    positions = rng.integers(0, bits, (strata, candidates, hashes)).astype(np.int32)
    positions[rng.random((strata, candidates)) < 0.2] = -1
    weight, residual, limit, cube = rng.normal(size=(4, strata, bits))
    by_bit = BitTables(np.abs(weight), residual, np.abs(limit), cube)
    by_stratum = StratumTables(*(rng.random((4, strata)) * (rng.random((4, strata)) < 0.8)))
    shift = rng.normal(size=candidates)
    keys = rng.integers(0, 2**64, (strata, bits), dtype=np.uint64)
    found = []
    for way in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(gather, "pays_off", lambda _, way=way: way)
            patch.setattr(gather, "POSITIONS_PER_BLOCK", block)
            sums = gather_sums(positions, by_bit, by_stratum, shift)
            found.append((sums, position_set_fingerprints(positions, keys)))
    for compiled, numpy in zip(*found, strict=True):
        assert np.array_equal(compiled, numpy)


def test_a_position_counts_once() -> None:
    positions = np.array([[[3, 3], [3, 1]]], np.int32)
    ones, none = np.ones((1, 4)), np.zeros((1, 4))
    by_stratum = StratumTables(np.zeros(1), np.zeros(1), np.ones(1), np.ones(1))
    sums = gather_sums(positions, BitTables(ones, none, ones, none), by_stratum, np.zeros(2))
    assert sums[5].tolist() == [1.0, 2.0], "sums of the weights"
    assert sums[4].tolist() == [0.0, 2.0], "pairs of different bits"
