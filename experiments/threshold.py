"""Accuracy and edges against the pair threshold: the paper's figure.

    python -m experiments.threshold [--quick] [--seed 1] [-o FOLDER]

The hash trial (100 strings of six letters, bigrams, N = 100,000, p = .25, q = .75) with the paper's
reading and its threshold δ = .0027 times ¼, ½, 1, 2, 4, 8 and 16 (.044): Hellinger distance, and
the edges of the graph, which stand for the work that they make.

The paper: the best threshold is near δ.
Measured (--quick, two crowds): Hellinger .354 from ¼ to 2 times the threshold (13.5 found, 54 to 41
edges), .401 at 4 times, .515 at 8 times: flat below, where the paper has a minimum.
"""

from __future__ import annotations

import numpy as np
from experiments.dictionaries import distance, ngram_survey, run

from deniable.discovery.pairs import pair_threshold
from deniable.protocols import NGrams
from deniable.simulation import Population, power, random_strings
from deniable.simulation.records import Record, arguments

REPORTS = 100_000
FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)


def main() -> None:
    """Run every threshold on the same crowds."""
    options = arguments(__doc__, seed=1)
    trials = 2 if options.quick else 10
    record = Record("threshold", options.seed, {"reports": REPORTS, "trials": trials})
    survey = ngram_survey(q=0.75, length=6, gram=2, alphabet="a-z")
    protocol = survey.question("value").protocol
    assert isinstance(protocol, NGrams)
    delta = pair_threshold(protocol, REPORTS)
    rows = []
    for factor in FACTORS:
        distances, found, candidates, edges = [], [], [], []
        for trial in range(trials):
            rng = np.random.default_rng([options.seed, trial])
            population = Population(random_strings(100, 6, rng), power(100, floor=0.001))
            got = run(survey, population, REPORTS, trial, "paper", delta=factor * delta)
            distances.append(distance(population, got.result))
            found.append(got.found)
            candidates.append(got.candidates)
            edges.append(max((s.kept for s in got.result.stages if "pair" in s.name), default=0))
        rows.append(
            {"threshold / delta": factor, "Hellinger": float(np.mean(distances)),
             "found": float(np.mean(found)), "edges": float(np.mean(edges)),
             "candidates": float(np.mean(candidates))}
        )  # fmt: skip
        print(rows[-1], flush=True)
    record.show("threshold", rows, f"Pair thresholds, delta = {delta:.5f}")
    record.write(options.output)


if __name__ == "__main__":
    main()
