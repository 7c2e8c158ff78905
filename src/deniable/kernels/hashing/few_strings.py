"""Bloom filter positions of few strings, without compiled code.

The results are those of `positions.hash_pairs` and `positions.bloom_positions`. NumPy needs about
a microsecond per string and as much per 100 positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

import numpy as np

from deniable.kernels.array_types import Int32s, Words

SECONDS_PER_STRING = 1e-6
SECONDS_PER_POSITION = 1e-8


def numpy_seconds(strings: int, cohorts: int, hashes: int) -> float:
    """Return how long `positions_of_few` takes for this many strings, cohorts and hashes."""
    return strings * (SECONDS_PER_STRING + cohorts * hashes * SECONDS_PER_POSITION)


def positions_of_few(
    header: bytes, strings: Sequence[bytes], cohorts: int, hashes: int, k: int
) -> Int32s:
    """Return the bits, out of k, that every string sets in every cohort, int32[cohorts, V, hashes].

    header : bytes before every string that is hashed

    >>> positions_of_few(bytes(32), [b"apple", b"plum"], 3, 2, 128).shape
    (3, 2, 2)
    """
    seeds = b"".join([sha256(header + string).digest()[:16] for string in strings])
    x, y = np.frombuffer(seeds, "<u8").reshape(-1, 2).T
    step = np.arange(1, cohorts * hashes + 1, dtype=np.uint64).reshape(cohorts, 1, hashes)
    z = _mixed(x[:, None] + step * (y[:, None] | np.uint64(1)))
    return (((z >> np.uint64(32)) * np.uint64(k)) >> np.uint64(32)).astype(np.int32)


def _mixed(z: Words) -> Words:
    """Return 64-bit words mixed as by SplitMix64 (Steele, Lea and Flood, 2014)."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
