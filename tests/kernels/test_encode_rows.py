"""Fused encoding against its three steps in plain Python."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.kernels.noise.noisy_rows import BitPositions, encode_rows, noise_rows
from deniable.kernels.noise.sampler import BLOCK, Response, chunk_rows
from deniable.kernels.words import byte_width
from tests.scalar_twin import CERTAIN, noise_reports


def twin(
    value: NDArray[np.int32],
    cohort: NDArray[np.uint16],
    positions: NDArray[np.int32],
    k: int,
    phi: int,
    if_zero: int,
    if_one: int,
    seed: int,
) -> list[int]:
    """Reports as numbers: set bits, then p* and q* by the 64-digit sampler."""
    drawn = np.random.default_rng(seed).integers(0, 1 << 64, 4 * BLOCK, dtype=np.uint64)
    reports = []
    for v, c in zip(value.tolist(), cohort.tolist(), strict=True):
        places = positions[c, v].tolist() if v >= 0 else []
        reports.append(sum(1 << at for at in set(places) if at >= 0))
    half = Fraction(phi, CERTAIN)
    p_star = (1 - half) * Fraction(if_zero, CERTAIN) + half * Fraction(if_one, CERTAIN)
    q_star = (1 - half) * Fraction(if_one, CERTAIN) + half * Fraction(if_zero, CERTAIN)
    zero, one = int(p_star * 2**64), int(q_star * 2**64)
    assert zero == p_star * 2**64 and one == q_star * 2**64
    return noise_reports(reports, k, zero, one, drawn.tolist(), 64)


@given(
    k=st.sampled_from([1, 7, 12, 64, 65, 128, 200, 4096, 4200, 20000]),
    rows=st.integers(1, 40),
    phi=st.sampled_from([0, 1 << 30, 123456789]),
    if_zero=st.sampled_from([0, 1 << 30, 987654321]),
    if_one=st.sampled_from([3 << 30, 2345678901, CERTAIN]),
    hashes=st.integers(1, 3),
    seed=st.integers(0, 1 << 32),
)
@settings(max_examples=50, deadline=None)
def test_reports_equal_the_definition(
    k: int, rows: int, phi: int, if_zero: int, if_one: int, hashes: int, seed: int
) -> None:
    rows = min(rows, 2 + 8000 // k)
    rng = np.random.default_rng(seed)
    positions = rng.integers(-1, k, (3, 5, hashes)).astype(np.int32)
    value = rng.integers(-1, 5, rows).astype(np.int32)
    cohort = rng.integers(0, 3, rows).astype(np.uint16)
    both = Response(if_zero, if_one).after_permanent(phi)
    places = BitPositions(value, cohort, positions)
    out = encode_rows(places, k, both, np.random.default_rng(seed))
    expected = twin(value, cohort, positions, k, phi, if_zero, if_one, seed)
    assert [int.from_bytes(row.tobytes(), "little") for row in out] == expected


def test_rows_do_not_depend_on_threads_or_array_kind() -> None:
    k = 20
    rows = 2 * chunk_rows(byte_width(k)) + 5
    rng = np.random.default_rng(2)
    value = rng.integers(-1, 9, rows).astype(np.int32)
    cohort = rng.integers(0, 4, rows).astype(np.uint16)
    positions = rng.integers(0, k, (4, 9, 2)).astype(np.int32)

    def encode(
        values: NDArray[np.int32], places: NDArray[np.int32], threads: int
    ) -> NDArray[np.uint8]:
        both = Response(1 << 30, 3 << 30).after_permanent(1 << 29)
        reports = BitPositions(values, cohort, places)
        return encode_rows(reports, k, both, np.random.default_rng(7), threads=threads)

    first = encode(value, positions, 1)
    assert np.array_equal(first, encode(value, positions, 3))
    strided = np.repeat(value, 2)[::2]
    fortran = np.asfortranarray(positions)
    assert np.array_equal(first, encode(strided, fortran, 2))


def test_both_responses_are_the_two_in_turn() -> None:
    """Means of 1,000,000 bits by either route within 6 sigma: one false alarm in 10^8 seeds."""
    phi, if_zero, if_one = round(0.15 * CERTAIN), round(0.3 * CERTAIN), round(0.6 * CERTAIN)
    rows, k = 10_000, 100
    value, cohort = np.zeros(rows, dtype=np.int32), np.zeros(rows, dtype=np.uint16)
    table = np.arange(k, dtype=np.int32).reshape(1, 1, k)  # every bit set
    rng = np.random.default_rng(8)

    def encode(p: int, q: int, half_f: int) -> NDArray[np.uint8]:
        both = Response(p, q).after_permanent(half_f)
        return encode_rows(BitPositions(value, cohort, table), k, both, rng)

    together = encode(if_zero, if_one, phi)
    in_turn = noise_rows(encode(0, CERTAIN, phi), k, Response(if_zero, if_one), rng)
    instantaneous = encode(if_zero, if_one, 0)
    q_star = 0.85 * 0.6 + 0.15 * 0.3
    sigma = (q_star * (1 - q_star) / (rows * k)) ** 0.5
    means = [np.unpackbits(bits).sum() / (rows * k) for bits in (together, in_turn, instantaneous)]
    assert abs(means[0] - q_star) < 6 * sigma and abs(means[1] - q_star) < 6 * sigma
    # The broken twin, which forgets the permanent response, must be noticed.
    assert abs(means[2] - q_star) > 6 * sigma


def test_identity_thresholds_return_the_bloom_bits() -> None:
    positions = np.array([[[3, 9], [0, 0]]], dtype=np.int32)
    places = BitPositions(np.array([0, 1, -1], np.int32), np.zeros(3, np.uint16), positions)
    out = encode_rows(places, 10, Response(0, CERTAIN), np.random.default_rng(1))
    assert out.tolist() == [[8, 2], [1, 0], [0, 0]]


@pytest.mark.parametrize(
    "value, cohort, place, message",
    [
        (3, 0, 0, r"values must be in -1..2 \(-1 means no answer\), got 3..3"),
        (-2, 0, 0, r"values must be in -1..2"),
        (0, 2, 0, r"cohorts must be in 0..1, got 2"),
        (0, 0, 8, r"positions must be in -1..7 for 8 bits"),
    ],
)
def test_indices_outside_their_tables_are_refused(
    value: int, cohort: int, place: int, message: str
) -> None:
    places = BitPositions(
        np.array([value], np.int32),
        np.array([cohort], np.uint16),
        np.full((2, 3, 1), place, np.int32),
    )
    with pytest.raises(InputError, match=message):
        encode_rows(places, 8, Response(0, CERTAIN), np.random.default_rng(1))


def test_reports_are_written_where_the_caller_wants_them() -> None:
    places = BitPositions(
        np.zeros(2, np.int32), np.zeros(2, np.uint16), np.zeros((1, 1, 1), np.int32)
    )
    out = np.empty((2, 2), np.uint8)
    assert encode_rows(places, 16, Response(0, CERTAIN), np.random.default_rng(1), out=out) is out
    assert out.tolist() == [[1, 0], [1, 0]]
    with pytest.raises(InputError, match=r"contiguous uint8\[2, 2\]"):
        encode_rows(places, 16, Response(0, 0), np.random.default_rng(1), out=out[:, :1])
