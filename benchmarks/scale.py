"""A hundred million reports on one machine, by counts: python benchmarks/scale.py [--reports N]

Two Bloom questions (128 bits, h = 2, p = .25, q = .75, 64 cohorts), 100 strings each. Reports are
simulated a shard at a time, counted and dropped; the counts are added, kept in a file, read back
and decoded, top 10 and Other. Prints seconds of each, peak memory, and how far the table is from
the truth in standard errors. Memory does not depend on --reports (default 10⁸; 10⁷ for a look).
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from pathlib import Path

import numpy as np

from deniable import PairCounts, associate, pair_counts
from deniable.simulation import exponential, simulate_stream
from deniable.simulation.trials import bloom, generators, pair, survey_of, truth_of

SHARD = 1 << 20
SURVEY = survey_of(x=bloom(), y=bloom())
NAMES = ["x", "y"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reports", type=int, default=10**8)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors", flush=True)
    crowd = pair(exponential(100, 8.0), exponential(100, 8.0), strength=0.3)
    shards = -(-options.reports // SHARD)
    total: PairCounts | None = None
    seconds = {"simulated": 0.0, "counted": 0.0, "decoded": 0.0}
    for shard, rng in enumerate(generators(options.seed, shards)):
        clients = min(SHARD, options.reports - shard * SHARD)
        start = time.perf_counter()
        batches = list(simulate_stream(SURVEY, crowd.draw, clients, rng=rng))
        made = time.perf_counter()
        counts = pair_counts(SURVEY, batches, NAMES)
        total = counts if total is None else total + counts
        seconds["simulated"] += made - start
        seconds["counted"] += time.perf_counter() - made
    assert total is not None
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "counts.npz")
        total.save(file)
        size = file.stat().st_size
        joint = associate(SURVEY, file, NAMES, candidates=crowd.values, top=10, from_counts=True)
    test = joint.test()
    seconds["decoded"] = time.perf_counter() - start
    off = np.abs(joint.table - truth_of(crowd, joint.labels)) / joint.standard_error
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    print(f"N = {joint.reports:,}, {shards} shards")
    for stage, spent in seconds.items():
        print(f"{stage:10s} {spent:8.1f} s, {1e6 * spent / joint.reports:.3f} s a million")
    print(f"counts {size / 1e6:.1f} MB, peak memory {peak:.2f} GB")
    print(
        f"table {joint.table.shape}: standard errors {joint.standard_error.min():.1e} to "
        f"{joint.standard_error.max():.1e}, {np.mean(off < 1.96):.3f} of cells within their 95%, "
        f"largest {off.max():.1f} errors off; independence p = {test.p_value:.2g}"
    )


if __name__ == "__main__":
    main()
