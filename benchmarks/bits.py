"""Measure counting bits on one thread: python -m benchmarks.bits [--reports 10000000]

Reports of 128 bits in 64 cohorts, in memory. Figures are per report. The limit is reading the bytes
of reports and cohorts from memory once; the peer is plain NumPy, which unpacks the bits and adds
them up by cohort.
"""

from __future__ import annotations

import argparse

import numba  # noqa: F401  # so that the compiled kernel counts from the first report on
import numpy as np

from benchmarks.table import Row, best_of, show
from deniable.kernels.counting.bit_sums import _count_bytes, count_ones
from deniable.kernels.counting.pair_tables import add_pairs
from deniable.kernels.words import as_words

BITS, COHORTS = 128, 64


def rows(count: int = 10**7) -> list[Row]:
    """Return the times of counting."""
    rng = np.random.default_rng(1)
    bits = rng.integers(0, 256, (count, BITS // 8), dtype=np.uint8)
    cohort = rng.integers(0, COHORTS, count).astype(np.uint16)
    few, cohorts = bits[: count // 100], cohort[: count // 100]

    def read() -> None:
        np.bitwise_xor.reduce(bits.view(np.uint64), axis=None)
        np.bitwise_xor.reduce(cohort)

    def plain() -> None:
        lanes = np.unpackbits(few, axis=1, bitorder="little")
        for s in range(COHORTS):
            lanes[cohorts == s].sum(axis=0, dtype=np.int64)

    def pairs() -> None:
        both = np.zeros((COHORTS, BITS + 1, BITS + 1), np.uint32)
        add_pairs(both, as_words(few), as_words(few), cohorts.astype(np.int64))

    count_ones(few, BITS, cohorts, COHORTS, threads=1)
    pairs()
    reading, peer = best_of(read, per=count), best_of(plain, per=len(few))
    counted = best_of(lambda: count_ones(bits, BITS, cohort, COHORTS, threads=1), per=count)
    by_numpy = best_of(lambda: _count_bytes(few, cohorts, COHORTS), per=len(few))
    ratio = counted.processor / reading.processor
    return [
        Row(f"count bits, compiled ({ratio:.1f} × limit)", counted, "5 × limit", peer, reading),
        Row("count bits, before Numba is loaded", by_numpy, "", peer, reading),
        Row("count pairs of bits of two questions", best_of(pairs, per=len(few)), limit=reading),
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reports", type=int, default=10**7)
    show(rows(parser.parse_args().reports))
