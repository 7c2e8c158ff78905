"""Measure joint tables from counts: python -m benchmarks.counts [--reports 1000000]

Two Bloom questions (128 bits, h = 2, p = .25, q = .75, 64 cohorts), 20 × 20 categories including
Other. Counting is compared with two ways to read the same packed bytes: from their Parquet file
(target: at most 5 times as long), and from memory. The target for the estimate is 2 s. Best of five
runs.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

import numpy as np
from experiments.paper.trials import bloom, pair, survey_of

from benchmarks.table import best_of
from deniable import associate, count, simulate
from deniable.analysis.counting import read_counts
from deniable.analysis.source import Source
from deniable.columns import write
from deniable.simulation import exponential

SURVEY = survey_of(x=bloom(), y=bloom())


def main() -> None:
    """Print the times of counting and of estimating from counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reports", type=int, default=10**6)
    clients = parser.parse_args().reports
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    rng = np.random.default_rng(1)
    crowd = pair(exponential(100, 8.0), exponential(100, 8.0), strength=0.3)
    batch = simulate(SURVEY, crowd.draw(clients, rng), rng=rng)
    names = ["x", "y"]
    counts = count(SURVEY, batch, names)  # compiles
    with tempfile.TemporaryDirectory() as folder:
        file, kept = Path(folder, "reports.parquet"), Path(folder, "counts.npz")
        write(file, batch)
        reading = best_of(lambda: sum(map(len, Source(file, SURVEY).batches())))
        from_file = best_of(lambda: count(SURVEY, file, names))
        counts.save(kept)
        size, loading = kept.stat().st_size, best_of(lambda: read_counts(kept))
    columns = [np.ascontiguousarray(a).reshape(-1).view(np.uint8) for a in batch.arrays()]
    touching = best_of(lambda: [int(np.bitwise_xor.reduce(c)) for c in columns])
    counting = best_of(lambda: count(SURVEY, batch, names))

    def estimate() -> object:
        return associate(SURVEY, counts, names, candidates=crowd.values, top=19)

    estimate()
    packed = sum(column.nbytes for column in columns)
    print(f"N = {clients:,}, {packed / 1e6:.0f} MB packed; clock and processor time")
    for what, timing in (
        ("reading the Parquet file", reading),
        ("reading and counting it", from_file),
        ("touching the bytes in memory", touching),
        ("counting them in memory", counting),
        ("estimating 20 × 20 with errors (target 2,000)", best_of(estimate)),
        ("loading a file of counts", loading),
    ):
        print(f"{what:46s} {1e3 * timing.clock:8.1f} ms {1e3 * timing.processor:8.1f} ms")
    ratio = counting.processor / 2 / reading.processor
    print(
        f"counting takes {counting.clock / reading.clock:.1f} times as long as reading "
        f"(target 5; by processor time over two threads {ratio:.1f}); "
        f"the counts' file has {size / 1e6:.2f} MB"
    )


if __name__ == "__main__":
    main()
