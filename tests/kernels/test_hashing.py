"""Lanes of SHA-256 against the standard library."""

import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.errors import InputError
from deniable.kernels.hashing.positions import bloom_positions, hash_pairs, hash_row_pairs
from deniable.kernels.hashing.sha256 import sha256_rows
from tests.scalar_twin import bloom_bits


def ragged(values: list[bytes]) -> tuple[np.ndarray, np.ndarray]:
    offsets = np.cumsum([0] + [len(value) for value in values]).astype(np.int64)
    return np.frombuffer(b"".join(values), dtype=np.uint8), offsets


@pytest.mark.parametrize("header", [b"", b"head", bytes(range(32)), bytes(64), bytes(100)])
def test_every_length_around_block_edges(header: bytes) -> None:
    values = [bytes([length]) * length for length in range(140)]
    data, offsets = ragged(values)
    digests = sha256_rows(header, data, offsets[:-1], np.diff(offsets))
    expected = [hashlib.sha256(header + value).digest() for value in values]
    assert [row.tobytes() for row in digests] == expected


@given(
    values=st.lists(st.binary(max_size=200), max_size=40),
    header=st.binary(min_size=32, max_size=32),
)
@settings(max_examples=60, deadline=None)
def test_pairs_are_the_digests_first_halves(values: list[bytes], header: bytes) -> None:
    data, offsets = ragged(values)
    x, y = hash_pairs(header, data, offsets, threads=2)
    digests = [hashlib.sha256(header + value).digest() for value in values]
    assert x.tolist() == [int.from_bytes(digest[:8], "little") for digest in digests]
    assert y.tolist() == [int.from_bytes(digest[8:16], "little") | 1 for digest in digests]


@pytest.mark.parametrize("length", [*range(26), 55, 64])
def test_rows_of_one_length(length: int) -> None:
    header, rows = bytes(range(32)), np.random.default_rng(length).bytes(70 * 37)
    table = np.frombuffer(rows, np.uint8).reshape(37, 70)
    x, y = hash_row_pairs(header, table, length, threads=1)
    digests = [hashlib.sha256(header + row[:length].tobytes()).digest() for row in table]
    assert x.tolist() == [int.from_bytes(digest[:8], "little") for digest in digests]
    assert y.tolist() == [int.from_bytes(digest[8:16], "little") | 1 for digest in digests]
    whole = hash_row_pairs(header, np.ascontiguousarray(table[:, :length]), length)
    assert np.array_equal(whole, (x, y))


def test_pieces_over_threads_keep_their_order() -> None:
    count = 40_000
    rows = np.arange(count, dtype="<u4").view(np.uint8).reshape(count, 4)
    digests = sha256_rows(b"", rows.reshape(-1), np.arange(count) * 4, np.full(count, 4))
    for row in (0, 15, 16, 16_383, 16_384, count - 1):
        assert digests[row].tobytes() == hashlib.sha256(rows[row].tobytes()).digest()


@given(
    k=st.sampled_from([1, 8, 100, 128, 4096, 65536, 160_801]),
    cohorts=st.integers(1, 9),
    hashes=st.integers(1, 4),
    value=st.binary(max_size=30),
)
@settings(max_examples=60, deadline=None)
def test_positions_equal_the_definition(k: int, cohorts: int, hashes: int, value: bytes) -> None:
    header = bytes(range(32))
    data, offsets = ragged([b"other", value])
    x, y = hash_pairs(header, data, offsets)
    table = bloom_positions(x, y, cohorts, hashes, k, threads=2)
    for cohort in range(cohorts):
        assert table[cohort, 1].tolist() == bloom_bits(header, value, cohort, hashes, k)


def test_wrong_arguments_say_expected_and_got() -> None:
    data = np.zeros(10, dtype=np.uint8)
    one = np.array([1])
    with pytest.raises(InputError, match="header must have 32 bytes, got 4"):
        hash_pairs(b"head", data, np.array([0, 10]))
    with pytest.raises(InputError, match="whole 4-byte words, got 3"):
        sha256_rows(b"abc", data, one, one)
    with pytest.raises(InputError, match="inside the 10 bytes"):
        sha256_rows(b"", data, np.array([8]), np.array([3]))
    with pytest.raises(InputError, match="inside the 10 bytes"):
        hash_pairs(bytes(32), data, np.array([5, 2]))
    with pytest.raises(InputError, match="length of at most the width"):
        hash_row_pairs(bytes(32), data.reshape(5, 2), 3)
    with pytest.raises(InputError, match="header must have 32 bytes, got 4"):
        hash_row_pairs(b"head", data.reshape(5, 2), 2)
