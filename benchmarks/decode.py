"""Measure whole analyses, from packed reports to results: python -m benchmarks.decode [--large]

Two Bloom questions (128 bits, h = 2, p = .25, q = .75, 64 cohorts), exponential populations of 100
strings. `associate` counts, decodes both marginals, computes likelihood rows with Other, fits until
converged, and computes standard errors. Best of three runs. --large adds N = 10⁶.
"""

from __future__ import annotations

import argparse
import os
import resource
import time

import numpy as np

from deniable import Survey, associate, decode, simulate
from deniable.simulation import Population, exponential

QUESTION = '[questions.{}]\nkind = "string"\nhashes = 2\np = 0.25\nq = 0.75\n'
SURVEY = Survey.from_toml(
    'name = "bench"\nversion = 1\nowner = "benchmarks"\ndescription = "speed"\n'
    'expires = 2999-12-31\ncollect = "once"\n' + QUESTION.format("x") + QUESTION.format("y")
)
TARGETS = {(10**5, 6): 0.2, (10**5, 20): 1.0, (10**6, 20): 6.0}


def main() -> None:
    """Print the time of whole analyses, and the peak memory."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--large", action="store_true")
    sizes = (10**5, 10**6) if parser.parse_args().large else (10**5,)
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    for clients in sizes:
        rng = np.random.default_rng(1)
        words = {name: tuple(f"{name}{i}" for i in range(100)) for name in "xy"}
        drawn = {
            n: Population(w, exponential(100, 8.0)).draw(clients, rng) for n, w in words.items()
        }
        reports = simulate(SURVEY, drawn, rng=rng)
        for side in (6, 20):
            best, result = float("inf"), None
            for _ in range(3):
                start = time.perf_counter()
                result = associate(SURVEY, reports, ["x", "y"], candidates=words, top=side - 1)
                best = min(best, time.perf_counter() - start)
            assert result is not None
            shape = "×".join(map(str, result.table.shape))
            target = TARGETS.get((clients, side))
            print(
                f"associate, N = {clients:,}, {shape}: {best:.3f} s"
                + (f" (target {target} s)" if target else "")
                + f", gap {result.gap_nats:.2g} nats, {result.passes} passes"
            )
        start = time.perf_counter()
        decode(SURVEY, reports, "x", words["x"])
        print(f"decode, N = {clients:,}, 100 candidates: {time.perf_counter() - start:.3f} s")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    print(f"peak memory {peak:.2f} GB")


if __name__ == "__main__":
    main()
