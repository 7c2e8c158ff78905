"""Few strings are hashed to the same positions as many."""

import numpy as np
import pytest

from deniable.kernels.hashing.few_strings import positions_of_few
from deniable.kernels.hashing.positions import bloom_positions, hash_pairs
from deniable.mechanisms.schemes import DENIABLE_1

HEADER = bytes(range(32))


@pytest.mark.parametrize(("cohorts", "hashes", "k"), [(1, 1, 2), (64, 2, 128), (3, 4, 1 << 30)])
def test_positions_are_those_of_the_kernels_and_of_clients(
    cohorts: int, hashes: int, k: int
) -> None:
    strings = [b"", b"apple", "é".encode(), b"x" * 200]
    offsets = np.cumsum([0, *map(len, strings)])
    pairs = hash_pairs(HEADER, np.frombuffer(b"".join(strings), np.uint8), offsets)
    few = positions_of_few(HEADER, strings, cohorts, hashes, k)
    assert np.array_equal(few, bloom_positions(*pairs, cohorts, hashes, k))
    client = DENIABLE_1.positions(strings[1], cohorts - 1, k, hashes, HEADER)
    assert few[-1, 1].tolist() == list(client)


def test_no_strings_have_no_positions() -> None:
    assert positions_of_few(HEADER, [], 2, 3, 128).shape == (2, 0, 3)
