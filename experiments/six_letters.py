"""Discover unlisted strings of a small domain, in which every string is tested.

    python -m experiments.six_letters [--quick] [--seed 1] [--trials 20]
        [--crowd zipf-1e6 …] [-o FOLDER]

100 random strings of six letters a–z, ε = 4.394 in total, one report of four bytes per client: Zipf
weights with exponent 1.2, N = 10⁶ or 10⁵; and the paper's hash experiment, N = 10⁵, in which the
paper spends three times that ε. The survey gives no prefix lengths, so the default applies: all
321,272,407 strings can be tested, and clients report whole strings. About 25 s of processor time
per run.
"""

from __future__ import annotations

import numpy as np

from deniable.simulation import Population, power, random_strings, zipf
from experiments.discovery_trials import run_trials, trial
from experiments.options import arguments, finish
from experiments.paper.dictionaries import prefix_survey
from experiments.paper.records import Record
from experiments.text_tables import show

SURVEY = prefix_survey(epsilon=4.394449, length=6, alphabet="a-z")
CROWDS = {
    "zipf-1e6": (zipf(100, 1.2), 1_000_000),
    "zipf-1e5": (zipf(100, 1.2), 100_000),
    "hashes-1e5": (power(100, floor=0.001), 100_000),
}
"""Weights of the strings, and number of clients."""


def main() -> None:
    """Run the populations, and print how many strings each discovers."""
    options = arguments(
        __doc__,
        seed=1,
        trials={"type": int, "default": 20, "help": "trials per population"},
        crowd={"choices": list(CROWDS), "action": "append", "help": "run this population only"},
    )
    trials = 1 if options.quick else options.trials
    record = Record("six_letters", options.seed, {"trials": trials})
    summary = []
    for name in options.crowd or CROWDS:

        def run_one(rng: np.random.Generator, name: str = name) -> dict[str, float]:
            weights, clients = CROWDS[name]
            return trial(SURVEY, Population(random_strings(100, 6, rng), weights), clients, rng)

        summary.append(run_trials(record, name, trials, run_one))
    show(record, "six_letters", summary, "Strings found of 100, without a dictionary")
    finish(record, options)


if __name__ == "__main__":
    main()
