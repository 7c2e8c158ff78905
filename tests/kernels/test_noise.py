"""The sampler's kernels against the definition, bit for bit, and its frequencies exactly."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.kernels.noise import sampler as noise
from deniable.kernels.noise.noisy_rows import noise_rows
from deniable.kernels.noise.sampler import BLOCK, Response, chunk_rows
from deniable.kernels.words import byte_width
from tests.scalar_twin import CERTAIN, Xoshiro, noise_reports

thresholds = st.one_of(
    st.sampled_from([0, 1, 1 << 29, 1 << 30, 1 << 31, 3 << 30, CERTAIN - 1, CERTAIN]),
    st.integers(0, CERTAIN),
)


def packed(rng: np.random.Generator, rows: int, k: int) -> NDArray[np.uint8]:
    bits = rng.integers(0, 2, (rows, k), dtype=np.uint8)
    return np.packbits(bits, axis=1, bitorder="little")


def test_xoshiro_gives_its_published_words() -> None:
    twin = Xoshiro([1, 2, 3, 4])
    assert [twin.next() for _ in range(4)] == [
        41943041,
        58720359,
        3588806011781223,
        3591011842654386,
    ]
    state = (np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4))
    word, _ = noise.next_word(state)
    assert int(word) == 41943041


def as_numbers(rows: NDArray[np.uint8]) -> list[int]:
    return [int.from_bytes(row.tobytes(), "little") for row in rows]


@given(
    k=st.sampled_from([1, 20, 64, 65, 128, 200, 4096, 5000]),
    rows=st.integers(1, 70),
    if_zero=thresholds,
    if_one=thresholds,
    seed=st.integers(0, 1 << 32),
)
@settings(max_examples=40, deadline=None)
def test_drawn_noise_equals_the_definition(
    k: int, rows: int, if_zero: int, if_one: int, seed: int
) -> None:
    rows = min(rows, 1 + 8000 // k, chunk_rows(byte_width(k)))
    bits = packed(np.random.default_rng(seed), rows, k)
    out = noise_rows(bits, k, Response(if_zero, if_one), np.random.default_rng(seed + 1))
    drawn = np.random.default_rng(seed + 1).integers(0, 1 << 64, 4 * BLOCK, dtype=np.uint64)
    expected = noise_reports(as_numbers(bits), k, if_zero, if_one, drawn.tolist())
    assert as_numbers(out) == expected


@pytest.mark.parametrize("k", [65535, 65536])
def test_widest_reports_equal_the_definition(k: int) -> None:
    bits = packed(np.random.default_rng(5), 1, k)
    out = noise_rows(bits, k, Response(1 << 29, 5 << 29), np.random.default_rng(6))
    drawn = np.random.default_rng(6).integers(0, 1 << 64, 4 * BLOCK, dtype=np.uint64)
    expected = noise_reports(as_numbers(bits), k, 1 << 29, 5 << 29, drawn.tolist())
    assert as_numbers(out) == expected


def test_rows_do_not_depend_on_threads_and_chunks_differ() -> None:
    k = 100
    rows = 3 * chunk_rows(byte_width(k)) + 17
    bits = np.zeros((rows, byte_width(k)), dtype=np.uint8)
    runs = [
        noise_rows(bits, k, Response(1 << 31, 1 << 31), np.random.default_rng(3), threads=threads)
        for threads in (1, 2, 5)
    ]
    assert all(np.array_equal(runs[0], run) for run in runs[1:])
    size = chunk_rows(byte_width(k))
    assert not np.array_equal(runs[0][:size], runs[0][size : 2 * size])


def test_successive_calls_draw_fresh_noise() -> None:
    rng = np.random.default_rng(3)
    bits = np.zeros((4, 16), dtype=np.uint8)
    first = noise_rows(bits, 128, Response(1 << 31, 1 << 31), rng)
    assert not np.array_equal(first, noise_rows(bits, 128, Response(1 << 31, 1 << 31), rng))


def worst_z(noisy: NDArray[np.uint8], k: int, threshold: int) -> float:
    """Largest |z| of the k lanes' counts and their adjacent pairs' counts, if ones have T/2^32."""
    lanes = np.unpackbits(noisy, axis=1, bitorder="little", count=k).astype(np.int64)
    p, rows = threshold / CERTAIN, len(lanes)
    single = (lanes.sum(axis=0) - rows * p) / math.sqrt(rows * p * (1 - p))
    pair = (lanes[:, 1:] * lanes[:, :-1]).sum(axis=0)
    joint = (pair - rows * p * p) / math.sqrt(rows * p * p * (1 - p * p))
    return float(max(np.abs(single).max(), np.abs(joint).max()))


@pytest.mark.parametrize("probability", [0.25, 0.3, 0.05])
def test_drawn_frequencies(probability: float) -> None:
    """255 counts against 5.5 sigma: by exact binomial tails a false alarm in 10,000 seeds at most.

    The seed is fixed. The broken twin, a probability a tenth too high, must fail the same test.
    """
    k, threshold = 128, round(probability * CERTAIN)
    zeros = np.zeros((50_000, 16), dtype=np.uint8)
    noisy = noise_rows(zeros, k, Response(threshold, 1 << 31), np.random.default_rng(11))
    assert worst_z(noisy, k, threshold) < 5.5
    twisted = noise_rows(
        zeros, k, Response(round(1.1 * threshold), 1 << 31), np.random.default_rng(11)
    )
    assert worst_z(twisted, k, threshold) > 5.5


def test_wrong_arguments_say_expected_and_got() -> None:
    bits = np.zeros((2, 2), dtype=np.uint8)
    with pytest.raises(InputError, match=r"uint8\[N, 3\] for 17 bits, got uint8\[2, 2\]"):
        noise_rows(bits, 17, Response(0, CERTAIN), np.random.default_rng(1))
    with pytest.raises(InputError, match=r"if_one must be in 0..2\^32, got 4294967297"):
        Response(0, CERTAIN + 1)
    with pytest.raises(InputError, match="1 to 65536 bits, got 65537"):
        noise_rows(bits, 65537, Response(0, 0), np.random.default_rng(1))
    with pytest.raises(InputError, match="number of threads must be at least 1"):
        noise_rows(bits, 16, Response(0, 0), np.random.default_rng(1), threads=0)
