"""Lanes of SHA-256 and HMAC-SHA-256 against the standard library."""

import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.errors import InputError
from deniable.kernels.hashing.keyed_streams import keyed_streams
from deniable.kernels.hashing.positions import bloom_positions, hash_fixed_pairs, hash_pairs
from deniable.kernels.hashing.sha256 import sha256_rows
from deniable.kernels.noise.permanent_bits import permanent_rows
from deniable.kernels.words import byte_width
from tests.scalar_twin import CERTAIN, bloom_bits, levels_of, randomise, stream


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
    widest = max((len(value) for value in values), default=0)
    rows = np.frombuffer(b"".join(v.ljust(widest, b"#") for v in values), dtype=np.uint8)
    lengths = np.diff(offsets)
    fixed = hash_fixed_pairs(header, rows.reshape(len(values), widest), lengths)
    assert np.array_equal(fixed[0], x) and np.array_equal(fixed[1], y)


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


@pytest.mark.slow
@given(
    rows=st.integers(0, 35),
    prefix=st.binary(max_size=130),
    suffix=st.integers(0, 40),
    size=st.integers(0, 130),
    seed=st.integers(0, 1 << 32),
)
@settings(max_examples=80, deadline=None)
def test_streams_equal_hmac(rows: int, prefix: bytes, suffix: int, size: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    secrets = rng.integers(0, 256, (rows, 32), dtype=np.uint8)
    answers = rng.integers(0, 256, (rows, suffix), dtype=np.uint8)
    out = keyed_streams(secrets, prefix, answers, size)
    for row in range(rows):
        message = prefix + answers[row].tobytes()
        assert out[row].tobytes() == stream(secrets[row].tobytes(), message, size)


@pytest.mark.slow
@pytest.mark.parametrize("k, phi", [(8, 715827883), (13, 1 << 30), (128, 644245094), (8, 0)])
def test_permanent_bits_equal_the_client(k: int, phi: int) -> None:
    """2,000 clients: the 32 levels of phi = 715827883 leave some rows to the second pass."""
    rng = np.random.default_rng(4)
    bits = np.packbits(rng.integers(0, 2, (2000, k), dtype=np.uint8), axis=1, bitorder="little")
    secrets = rng.integers(0, 256, (2000, 32), dtype=np.uint8)
    out = permanent_rows(bits, k, phi, secrets, b"prefix", bits, threads=2)
    size = levels_of(phi, CERTAIN - phi) * byte_width(k)
    for row, secret, noisy in zip(bits, secrets, out, strict=True):
        rand = stream(secret.tobytes(), b"prefix" + row.tobytes(), size)
        assert noisy.tobytes() == randomise(row.tobytes(), k, phi, CERTAIN - phi, rand)


def test_wrong_arguments_say_expected_and_got() -> None:
    data = np.zeros(10, dtype=np.uint8)
    one = np.array([1])
    with pytest.raises(InputError, match="header of 32 bytes, got 4"):
        hash_pairs(b"head", data, np.array([0, 10]))
    with pytest.raises(InputError, match="whole 4-byte words, got 3"):
        sha256_rows(b"abc", data, one, one)
    with pytest.raises(InputError, match="inside the 10 bytes"):
        sha256_rows(b"", data, np.array([8]), np.array([3]))
    with pytest.raises(InputError, match="inside the 10 bytes"):
        hash_pairs(bytes(32), data, np.array([5, 2]))
    with pytest.raises(InputError, match="lengths up to 2, got 3"):
        hash_fixed_pairs(bytes(32), data.reshape(5, 2), np.full(5, 3))
    with pytest.raises(InputError, match=r"uint8\[N, 32\], got uint8\[1, 31\]"):
        keyed_streams(np.zeros((1, 31), dtype=np.uint8), b"", np.zeros((1, 1), dtype=np.uint8), 1)
    with pytest.raises(InputError, match=r"0..2\^31"):
        rows = data.reshape(10, 1)
        permanent_rows(rows, 8, 1 << 32, np.zeros((10, 32), np.uint8), b"", rows)
