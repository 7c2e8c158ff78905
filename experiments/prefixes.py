"""Discover unlisted strings from prefixes by local hashing: the paper's URL experiment.

    python -m experiments.prefixes [--quick] [--seed 1] [--trials 20]
        [--words FILE] [--executor dask://HOST:PORT] [-o FOLDER]

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

from deniable.simulation import Population, exponential, top_domains, zipf
from experiments.discovery_trials import run_trials, trial
from experiments.options import arguments, finish
from experiments.paper.dictionaries import prefix_survey
from experiments.paper.records import Record
from experiments.text_tables import show

REPORTS = 1_000_000
SURVEY = prefix_survey(epsilon=4.394449, length=20, alphabet="a-z0-9._-")


def words_of(path: Path) -> dict[str, float]:
    """Return the strings of a file and their weights; 1 where none is given."""
    lines = (line.split() for line in path.read_text().splitlines() if line.strip())
    return {word: float(*weight or (1.0,)) for word, *weight in lines}


def main() -> None:
    """Run both populations, or one with a list of words."""
    options = arguments(
        __doc__,
        seed=1,
        trials={"type": int, "default": 20, "help": "trials per population"},
        words={"type": Path, "default": None, "help": "list of strings and words"},
        executor={"default": "threads", "help": "threads, or the address of a cluster"},
    )
    trials = 1 if options.quick else options.trials
    record = Record("prefixes", options.seed, {"reports": REPORTS, "trials": trials})
    words = words_of(options.words) if options.words else {}
    weights = {"exponential": exponential(100, 25.0), "zipf": zipf(100)}
    if words:
        listed = sum(name in words for name in top_domains())
        print(f"{len(words):,} strings in the list, {listed} of the 100 domains among them")
        weights = {"exponential, words": exponential(100, 25.0)}
    summary = []
    for name, shares in weights.items():
        population = Population(top_domains(), shares)

        def run_one(
            rng: np.random.Generator, population: Population = population
        ) -> dict[str, float]:
            return trial(SURVEY, population, REPORTS, rng, words, options.executor)

        summary.append(run_trials(record, name, trials, run_one))
    show(record, "prefixes", summary, "Strings found of 100, without a dictionary (the paper: 5)")
    finish(record, options)


if __name__ == "__main__":
    main()
