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

from deniable import discover, simulate
from deniable.kernels.array_types import Floats
from deniable.reproduction.dictionaries import prefix_survey
from deniable.reproduction.records import Record
from deniable.simulation import Population, power, random_strings, zipf
from experiments.options import arguments
from experiments.text_tables import show

SURVEY = prefix_survey(epsilon=4.394449, length=6, alphabet="a-z")


def hashes() -> Floats:
    """The authors' weights: i^20 scaled to sum 1, plus .001, scaled again."""
    return power(100, floor=0.001)


CROWDS = {
    "zipf-1e6": (zipf(100, 1.2), 1_000_000),
    "zipf-1e5": (zipf(100, 1.2), 100_000),
    "hashes-1e5": (hashes(), 100_000),
}


def trial(weights: Floats, clients: int, seed: list[int]) -> dict[str, float]:
    """One crowd: strings found, false ones, how many intervals cover."""
    rng = np.random.default_rng(seed)
    population = Population(random_strings(100, 6, rng), weights)
    reports = simulate(SURVEY, population.draw(clients, rng), rng=rng)
    found = discover(SURVEY, reports, "value")
    true = [s in population.values for s in found.strings]
    share = np.array([population.share(s) for s in found.strings])
    return {
        "found": sum(true), "false": len(true) - sum(true), "looked at": found.candidates,
        "covered": float(np.mean((found.low <= share) & (share <= found.high))),
        "seconds": float(sum(s.seconds for s in found.stages)),
    }  # fmt: skip


def main() -> None:
    """Run the crowds, and say how many strings each finds."""
    options = arguments(
        __doc__, seed=1, trials={"type": int, "default": 20},
        crowd={"choices": list(CROWDS), "action": "append"},
    )  # fmt: skip
    trials = 1 if options.quick else options.trials
    record = Record("six_letters", options.seed, {"trials": trials})
    summary = []
    for name in options.crowd or CROWDS:
        rows = []
        for i in range(trials):
            rows.append({"trial": i, **trial(*CROWDS[name], [options.seed, i])})
            print(name, rows[-1], flush=True)
        record.keep(name, rows)
        found = np.array([row["found"] for row in rows])
        summary.append(
            {"crowd": name, "trials": trials, "found": float(found.mean()),
             "spread": float(found.std()), "least": int(found.min()), "most": int(found.max()),
             "runs with a false string": sum(row["false"] > 0 for row in rows),
             "covered": float(np.mean([row["covered"] for row in rows]))}
        )  # fmt: skip
    show(record, "six_letters", summary, "Found without a dictionary, of 100")
    if options.output:
        record.write(options.output)


if __name__ == "__main__":
    main()
