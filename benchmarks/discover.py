"""Measure whole discoveries: python -m benchmarks.discover [--large] [--row NAME]

The paper's hash experiment (N = 10⁵) by n-grams with both decoders; cliques of 10 partitions of 50
nodes with 8 planted and 30% random edges; --large adds the URL experiment (N = 10⁶) by n-grams and
prefixes. Each row runs in a separate process, after a small crowd that loads compiled code, so that
the peak memory, including the reports, is that of the row. Both wall-clock and processor seconds
are printed; on a busy machine only the latter measure the work.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from itertools import combinations

import numpy as np

from deniable import Survey, discover, simulate
from deniable.discovery.ngrams.cliques import PartiteGraph, find_cliques
from deniable.simulation import Population, exponential, power, random_strings, top_domains

HEAD = """
name = "bench"
version = 1
owner = "benchmarks"
description = "speed"
expires = 2999-12-31
collect = "once"
[questions.s]
kind = "string"
"""
NGRAMS = """
p = 0.25
q = {q}
bits = 128
hashes = 2
cohorts = 64
[questions.s.dictionary]
protocol = "ngrams"
gram = 2
"""
PREFIXES = """
mechanism = "localhash"
epsilon = 4.394449
[questions.s.dictionary]
protocol = "prefixes"
"""
HASHES = 'max_length = 6\nalphabet = "a-z"\n'
URLS = 'max_length = 20\nalphabet = "a-z0-9._-"\n'
Work = Callable[[], str]


def trial(question: str, population: Population, reports: int, reading: str | None) -> Work:
    """Return a discovery from a simulated crowd, which says how many strings it found."""
    survey = Survey.from_toml(HEAD + question)
    rng = np.random.default_rng(1)
    small, batch = (simulate(survey, population.draw(n, rng), rng=rng) for n in (20_000, reports))

    def work() -> str:
        strings = discover(survey, batch, "s", reading=reading).strings
        false = sum(s not in population.values for s in strings)
        return f"{len(strings)} found, {false} false"

    discover(survey, small, "s", reading=reading)
    return work


def hashes(reading: str) -> Work:
    """Return the hash experiment with the protocol and the parameters of the paper."""
    population = Population(
        random_strings(100, 6, np.random.default_rng(74)), power(100, floor=0.001)
    )
    return trial(NGRAMS.format(q=0.75) + HASHES, population, 10**5, reading)


def urls(question: str, reading: str | None) -> Work:
    """Return the URL experiment with a total ε of 4.39."""
    population = Population(top_domains(), exponential(100))
    return trial(question + URLS, population, 10**6, reading)


def cliques() -> Work:
    """Return a search for 8 planted cliques among 10 partitions of 50 nodes.

    Every other edge is present with probability 0.3.
    """
    rng = np.random.default_rng(3)
    parts, size = 10, 50
    planted = rng.integers(0, size, (8, parts)) + size * np.arange(parts)
    edges = {pair for row in planted.tolist() for pair in combinations(row, 2)}
    for g, h in combinations(range(parts), 2):
        a, b = np.nonzero(rng.random((size, size)) < 0.3)
        edges |= set(zip((a + g * size).tolist(), (b + h * size).tolist(), strict=True))
    graph = PartiteGraph((size,) * parts, np.array(sorted(edges)), rng.random(len(edges)))

    def work() -> str:
        found = find_cliques(graph, max_seconds=30.0)
        there = {tuple(row) for row in found.nodes.tolist()}
        kept = sum(tuple(row) in there for row in planted.tolist())
        return f"{len(found.nodes):,} cliques, {kept} of 8 planted" + (
            found.truncation and f", {found.truncation}"
        )

    work()
    return work


ROWS: dict[str, tuple[bool, Callable[[], Work]]] = {
    "hash trial, n-grams, paper's reading (target 5 s)": (False, lambda: hashes("paper")),
    "hash trial, n-grams, default reading (target 5 s)": (False, lambda: hashes("fused")),
    "cliques, 10 × 50 nodes (target well under 1 s)": (False, cliques),
    "URL trial, n-grams, paper's reading (target 60 s)": (
        True, lambda: urls(NGRAMS.format(q=0.40945), "paper"),
    ),
    "URL trial, n-grams, default reading (target 60 s)": (
        True, lambda: urls(NGRAMS.format(q=0.40945), "fused"),
    ),
    "URL trial, prefixes (target 60 s, 4 GB)": (True, lambda: urls(PREFIXES, None)),
}  # fmt: skip


def measure(name: str) -> str:
    """Return the printed line of one row."""
    work = ROWS[name][1]()
    wall, used = time.perf_counter(), time.process_time()
    outcome = work()
    wall, used = time.perf_counter() - wall, time.process_time() - used
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return f"{name:52s} {wall:6.2f} s, processor {used:6.2f} s, peak {peak:.2f} GB: {outcome}"


def main() -> None:
    """Print one line per row."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--row", help="only rows whose name holds this")
    options = parser.parse_args()
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    chosen = [n for n, (large, _) in ROWS.items() if options.large or not large]
    if options.row:
        chosen = [n for n in ROWS if options.row in n]
    fresh = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=fresh, max_tasks_per_child=1) as pool:
        for line in pool.map(measure, chosen):
            print(line, flush=True)


if __name__ == "__main__":
    main()
