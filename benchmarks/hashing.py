"""Measure SHA-256 of candidate prefixes on one core: python -m benchmarks.hashing

Rows of twelve symbols go in, two words per row come out, from which all positions are computed. The
limit is the compression of blocks that are already in memory, sixteen at a time; the peer is
Python's hashlib. Figures are per prefix.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import numpy as np

from benchmarks.table import Row, Timing, best_of, show
from deniable.kernels.array_types import UInt32s
from deniable.kernels.compiled import compiled
from deniable.kernels.hashing.positions import hash_row_pairs
from deniable.kernels.hashing.sha256 import compress

LENGTH, LANES, WORK = 12, 16, 384
HEADER = bytes(32)


@compiled
def compress_often(work: UInt32s, times: int) -> None:
    """Compress the same sixteen blocks again and again."""
    for _ in range(times):
        compress(work)


def hashing(count: int = 10**6) -> Timing:
    """Return the time of hashing one prefix."""
    rows = np.random.default_rng(1).integers(0, 26, (count, LENGTH), dtype=np.uint8)
    hash_row_pairs(HEADER, rows[:100], LENGTH, threads=1)
    return best_of(lambda: hash_row_pairs(HEADER, rows, LENGTH, threads=1), per=count)


def rows() -> Iterator[Row]:
    """Yield the time of hashing one prefix."""
    work, times = np.zeros(WORK, np.uint32), 10**5
    compress_often(work, 1)
    limit = best_of(lambda: compress_often(work, times), per=LANES * times)
    texts = [bytes(LENGTH)] * 10**5
    peer = best_of(lambda: [hashlib.sha256(HEADER + t).digest() for t in texts], per=len(texts))
    yield Row("SHA-256 of a prefix, one core", hashing(), "", peer, limit)


if __name__ == "__main__":
    show(list(rows()))
