"""Analyse a hundred million reports: python -m benchmarks.scale [--reports N] [--only WHAT]

Two Bloom questions (128 bits, h = 2, p = .25, q = .75, 64 cohorts), 100 strings each. Reports are
simulated one shard at a time, counted and dropped; the counts are added, written to a file, read
back and decoded, with the ten most common strings and Other. Prints the seconds of each step, peak
memory, and the distance of the table from the truth in standard errors. Memory does not depend on
--reports (default 10⁸; 10⁷ for a first look).

`discovery` writes shards of prefix reports (four bytes and a prefix length each) as Parquet files
and discovers the 100 domains of the URL experiment from them, ε = 4.39. Reports are read once.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
from experiments.paper.dictionaries import prefix_survey
from experiments.paper.trials import bloom, generators, pair, survey_of, truth_of

from deniable import PairCounts, associate, count, discover, simulate
from deniable.columns import write
from deniable.simulation import Population, exponential, simulate_stream, top_domains

SHARD = 1 << 20
SURVEY = survey_of(x=bloom(), y=bloom())
NAMES = ["x", "y"]


URLS = prefix_survey(epsilon=4.394449, length=20, alphabet="a-z0-9._-")


def main() -> None:
    """Run the chosen parts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reports", type=int, default=10**8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=["counts", "discovery"])
    options = parser.parse_args()
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors", flush=True)
    for name, run in (("counts", by_counts), ("discovery", discovery)):
        if options.only in (None, name):
            run(options.reports, options.seed)


def discovery(reports: int, seed: int) -> None:
    """Write shards of Parquet, and discover strings from them."""
    population = Population(top_domains(), exponential(100, 25.0))
    with tempfile.TemporaryDirectory() as folder:
        start, processor = time.perf_counter(), time.process_time()
        for shard, rng in enumerate(generators(seed, -(-reports // SHARD))):
            clients = min(SHARD, reports - shard * SHARD)
            write(Path(folder, f"{shard:04}.parquet"),
                  simulate(URLS, population.draw(clients, rng), rng=rng))  # fmt: skip
        size = sum(file.stat().st_size for file in Path(folder).iterdir())
        _said("written", reports, start, processor)
        start, processor = time.perf_counter(), time.process_time()
        found = discover(URLS, folder, "value")
        _said("discovered", reports, start, processor)
    false = [s for s in found.strings if s not in population.values]
    print(f"{size / reports:.2f} bytes per report in Parquet, peak memory {_peak():.2f} GB")
    print(f"found {len(found.strings) - len(false)} of 100, {len(false)} false {false}")
    for stage in found.stages:
        print(f"  {stage.name:32s} {stage.seconds:8.1f} s")


def _said(what: str, reports: int, start: float, processor: float) -> None:
    wall, spent = time.perf_counter() - start, time.process_time() - processor
    print(f"{what:10s} {wall:8.1f} s, {1e6 * wall / reports:.3f} s a million, "
          f"{1e6 * spent / reports:.3f} s of processor", flush=True)  # fmt: skip


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2


def by_counts(reports: int, seed: int) -> None:
    """Shards counted and dropped; the counts decoded."""
    crowd = pair(exponential(100, 8.0), exponential(100, 8.0), strength=0.3)
    shards = -(-reports // SHARD)
    total: PairCounts | None = None
    seconds = {"simulated": 0.0, "counted": 0.0, "decoded": 0.0}
    for shard, rng in enumerate(generators(seed, shards)):
        clients = min(SHARD, reports - shard * SHARD)
        start = time.perf_counter()
        batches = list(simulate_stream(SURVEY, crowd.draw, clients, rng=rng))
        made = time.perf_counter()
        counts = count(SURVEY, batches, NAMES)
        total = counts if total is None else total + counts
        seconds["simulated"] += made - start
        seconds["counted"] += time.perf_counter() - made
    assert total is not None
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "counts.npz")
        total.save(file)
        size = file.stat().st_size
        joint = associate(SURVEY, file, NAMES, candidates=crowd.values, top=10)
    test = joint.test()
    seconds["decoded"] = time.perf_counter() - start
    off = np.abs(joint.table - truth_of(crowd, joint.labels)) / joint.standard_error
    print(f"N = {joint.reports:,}, {shards} shards")
    for stage, spent in seconds.items():
        print(f"{stage:10s} {spent:8.1f} s, {1e6 * spent / joint.reports:.3f} s a million")
    print(f"counts {size / 1e6:.1f} MB, peak memory {_peak():.2f} GB")
    print(
        f"table {joint.table.shape}: standard errors {joint.standard_error.min():.1e} to "
        f"{joint.standard_error.max():.1e}, {np.mean(off < 1.96):.3f} of cells within their 95%, "
        f"largest {off.max():.1f} errors off; independence p = {test.p_value:.2g}"
    )


if __name__ == "__main__":
    main()
