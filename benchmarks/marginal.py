"""Measure marginal estimates and likelihood rows on one thread.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.marginal [--large]

The second call of each is measured, after compilation. --large adds a million candidates (1.3 GB,
10 s).
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from functools import partial

import numpy as np
from experiments.direct_counts import bit_counts, random_positions, values_by_stratum

from deniable.inference.marginal.bit_counts import BitCounts
from deniable.inference.marginal.estimate import estimate_marginal
from deniable.inference.models.bloom import BloomModel
from deniable.inference.models.likelihood import channel_rows
from deniable.inference.models.other import mixture_other
from deniable.simulation.populations import zipf


def population(candidates: int, reports: int = 10**6) -> tuple[BitCounts, BloomModel]:
    """100 listed strings with half of the mass, 10,000 unlisted ones, the rest false."""
    rng = np.random.default_rng(3)
    shares = np.r_[0.5 * zipf(100), np.full(10_000, 0.5 / 10_000)]
    positions = random_positions(shares.size, rng)
    values = values_by_stratum(shares, reports, 64, rng)
    counts = bit_counts(values, positions, 128, 0.25, 0.75, rng)
    listed = random_positions(candidates, rng)
    listed[:, :100] = positions[:, :100]
    return counts, BloomModel(listed, 128, 0.25, 0.75)


def clock(name: str, work: Callable[[], object], repeat: int = 5) -> None:
    """Print the median of `repeat` timed calls after one untimed."""
    work()
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    print(f"{name:55s} {1e3 * float(np.median(times)):10.1f} ms", flush=True)


def main() -> None:
    """Print one line per measurement."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--large", action="store_true")
    large = parser.parse_args().large
    for candidates in (100, 1_000, 10_000):
        counts, design = population(candidates)
        clock(f"marginal, {candidates} candidates", partial(estimate_marginal, counts, design))
    rng = np.random.default_rng(5)
    bits = rng.integers(0, 256, (10**6, 16), dtype=np.uint8)
    stratum = rng.integers(0, 64, 10**6).astype(np.uint16)
    counts, design = population(100)
    marginal = estimate_marginal(counts, design)
    known = marginal.top(20)
    some = design.take(known)
    channel = some.theta(np.arange(64))[:, :-1]
    product = some.product_other("q", counts, marginal.estimate[known])
    mixture = mixture_other(marginal, design, known)
    clock("rows, 10^6 reports, 20 candidates, sparse", lambda: some.likelihood(bits, stratum))
    clock("rows, 10^6 reports, 20 categories, dense", lambda: channel_rows(channel, bits, stratum))
    for name, other in (("product", product), ("mixture", mixture)):
        clock(
            f"rows, 10^6 reports, 20 candidates + {name} Other",
            partial(some.with_other(other).likelihood, bits, stratum),
        )
    if large:
        counts, design = population(10**6)
        clock("marginal, 10^6 candidates", lambda: estimate_marginal(counts, design), 1)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    print(f"peak memory {peak} MB")


if __name__ == "__main__":
    main()
