"""Measure whole discoveries: python -m benchmarks.discover [--large] [--row NAME]

The paper's hash experiment (N = 10⁵) by n-grams with both decoders; cliques of 10 partitions of 50
nodes with 8 planted and 30% random edges; --large adds the URL experiment (N = 10⁶) by n-grams and
prefixes, and the hash experiment by a test of every string of six letters. Each row runs in a
separate process, after a small crowd that loads compiled code, so that the peak memory, including
the reports, is that of the row. On a busy machine only processor time measures the work. The limit
is the SHA-256 of all candidates, on two threads.
"""

from __future__ import annotations

import argparse
import multiprocessing
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np

from benchmarks.hashing import hashing
from benchmarks.table import Row, Timing, best_of, seconds, show
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
WHOLE = "levels = [6]\n"
"""Every client reports its whole string of six letters."""
THREADS = 2


@dataclass(frozen=True)
class Outcome:
    """What a search found, in words, and how many candidates it hashed."""

    found: str
    candidates: int = 0


Work = Callable[[], Outcome]


def trial(question: str, population: Population, reports: int, reading: str | None) -> Work:
    """Return a discovery from a simulated crowd."""
    survey = Survey.from_toml(HEAD + question)
    rng = np.random.default_rng(1)
    small, batch = (simulate(survey, population.draw(n, rng), rng=rng) for n in (20_000, reports))

    def work() -> Outcome:
        found = discover(survey, batch, "s", reading=reading)
        false = sum(s not in population.values for s in found.strings)
        text = f"{len(found.strings)} found, {false} false"
        return Outcome(text, found.candidates if question.startswith(PREFIXES) else 0)

    discover(survey, small, "s", reading=reading)
    return work


def hashes(question: str, reading: str | None) -> Work:
    """Return the hash experiment."""
    population = Population(
        random_strings(100, 6, np.random.default_rng(74)), power(100, floor=0.001)
    )
    return trial(question + HASHES, population, 10**5, reading)


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

    def work() -> Outcome:
        found = find_cliques(graph)
        there = {tuple(row) for row in found.nodes.tolist()}
        kept = sum(tuple(row) in there for row in planted.tolist())
        text = f"{len(found.nodes):,} cliques, {kept} of 8 planted"
        return Outcome(text + (found.truncation and f", {found.truncation}"))

    work()
    return work


@dataclass(frozen=True)
class Trial:
    """A row: its target in seconds, whether it takes long, and what prepares its work."""

    target: float
    large: bool
    prepare: Callable[[], Work]


HASH_NGRAMS, URL_NGRAMS = NGRAMS.format(q=0.75), NGRAMS.format(q=0.40945)
URLS_BY_PREFIXES, WHOLE_DOMAIN = "URL trial, prefixes", "hash trial, every string of six letters"
TRIALS = {
    "hash trial, n-grams, paper's reading": Trial(5, False, lambda: hashes(HASH_NGRAMS, "paper")),
    "hash trial, n-grams, default reading": Trial(5, False, lambda: hashes(HASH_NGRAMS, "fused")),
    "cliques, 10 × 50 nodes": Trial(1, False, cliques),
    "URL trial, n-grams, paper's reading": Trial(60, True, lambda: urls(URL_NGRAMS, "paper")),
    "URL trial, n-grams, default reading": Trial(60, True, lambda: urls(URL_NGRAMS, "fused")),
    URLS_BY_PREFIXES: Trial(6, True, lambda: urls(PREFIXES, None)),
    WHOLE_DOMAIN: Trial(8, True, lambda: hashes(PREFIXES + WHOLE, None)),
}


def measure(name: str) -> tuple[Timing, Outcome, float]:
    """Return time and outcome of one row, and the peak memory in GB."""
    work, outcomes = TRIALS[name].prepare(), list[Outcome]()
    timing = best_of(lambda: outcomes.append(work()), 1)
    return timing, outcomes[0], peak_memory()


def peak_memory() -> float:
    """Return the largest memory of this process so far, in GB (Linux only).

    What the operating system says of resources includes the memory of the process that started it.
    """
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 2**20


def rows(names: Iterable[str] = (URLS_BY_PREFIXES, WHOLE_DOMAIN)) -> Iterator[Row]:
    """Yield the times of discoveries, each in a new process."""
    fresh, per_hash = multiprocessing.get_context("spawn"), hashing().processor
    with ProcessPoolExecutor(1, mp_context=fresh, max_tasks_per_child=1) as pool:
        for name, (timing, outcome, peak) in zip(names, pool.map(measure, names), strict=True):
            limit = ""
            if outcome.candidates:
                needed = seconds(outcome.candidates * per_hash / THREADS)
                limit = f"{needed}: hashing {outcome.candidates / 1e6:,.0f} million"
            what = f"{name}: {outcome.found}, {peak:.2f} GB"
            yield Row(what, timing, float(TRIALS[name].target), "", limit)


def main() -> None:
    """Print one line per row."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--row", help="only rows whose name contains this")
    options = parser.parse_args()
    chosen = [name for name, trial in TRIALS.items() if options.large or not trial.large]
    if options.row:
        chosen = [name for name in TRIALS if options.row in name]
    show(list(rows(chosen)))


if __name__ == "__main__":
    main()
