"""Discover unlisted strings from prefixes by local hashing: the paper's URL experiment.

    python -m experiments.prefixes [--quick] [--seed 1] [--trials 20]
        [--words FILE] [--executor gpu] [-o FOLDER]

The 100 domains of `top_domains()`, weights ∝ exp(−rank/25), M = 20, N = 10⁶, ε = 4.394 in total,
one report of four bytes per client; and the same strings with Zipf(1) weights. About 20 s of
processor time per run.

FILE is a list as an analyst may have it: on each line a string that clients may hold, or a word of
which strings may be made, and its weight if weights differ. `experiments.names` prints such a list.
The list of English words has weights frequency^.6. With a list, `--seed` 10 to 17 and `--trials 3`
give the 24 crowds of the documentation.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from deniable import discover, simulate
from deniable.compute.backend import Backend
from deniable.compute.named import executor_of
from deniable.kernels.array_types import Floats
from deniable.reproduction.dictionaries import prefix_survey
from deniable.reproduction.records import Record
from deniable.simulation import Population, exponential, top_domains, zipf
from experiments.options import arguments
from experiments.text_tables import show

REPORTS = 1_000_000
SURVEY = prefix_survey(epsilon=4.394449, length=20, alphabet="a-z0-9._-")


def trial(
    population: Population, seed: list[int], words: dict[str, float], executor: Backend
) -> dict[str, float]:
    """One crowd: strings found, false ones, how many intervals cover."""
    rng = np.random.default_rng(seed)
    reports = simulate(SURVEY, population.draw(REPORTS, rng), rng=rng)
    found = discover(SURVEY, reports, "value", words=words, executor=executor)
    true = [s in population.values for s in found.strings]
    share = np.array([population.share(s) for s in found.strings])
    return {
        "found": sum(true), "of them listed": sum(s in words for s in found.strings),
        "false": len(true) - sum(true), "looked at": found.candidates,
        "covered": float(np.mean((found.low <= share) & (share <= found.high))),
        "seconds": float(sum(s.seconds for s in found.stages)),
    }  # fmt: skip


def words_of(path: Path) -> dict[str, float]:
    """Strings and weights; 1 where none is given."""
    lines = (line.split() for line in path.read_text().splitlines() if line.strip())
    return {word: float(*weight or (1.0,)) for word, *weight in lines}


def main() -> None:
    """Run the populations, and say how many each finds."""
    options = arguments(
        __doc__, seed=1, trials={"type": int, "default": 20},
        words={"type": Path, "default": None}, executor={"default": "threads"},
    )  # fmt: skip
    trials = 1 if options.quick else options.trials
    record = Record("prefixes", options.seed, {"reports": REPORTS, "trials": trials})
    settings: list[tuple[str, Floats, dict[str, float]]] = [
        ("exponential", exponential(100, 25.0), {}),
        ("zipf", zipf(100), {}),
    ]
    if options.words:
        words = words_of(options.words)
        there = sum(name in words for name in top_domains())
        print(f"{len(words):,} strings on the list, {there} of the 100 domains among them")
        settings = [("exponential, words", exponential(100, 25.0), words)]
    summary = []
    for name, weights, words in settings:
        population = Population(top_domains(), weights)
        rows = []
        with executor_of(options.executor) as executor:
            for i in range(trials):
                rows.append({"trial": i, **trial(population, [options.seed, i], words, executor)})
                print(name, rows[-1], flush=True)
        record.keep(name, rows)
        found = np.array([row["found"] for row in rows])
        summary.append(
            {"population": name, "trials": trials, "found": float(found.mean()),
             "least": int(found.min()), "most": int(found.max()),
             "runs with a false string": sum(row["false"] > 0 for row in rows),
             "covered": float(np.mean([row["covered"] for row in rows]))}
        )  # fmt: skip
    show(record, "prefixes", summary, "Found of 100, no dictionary (the paper: 5)")
    if options.output:
        record.write(options.output)


if __name__ == "__main__":
    main()
