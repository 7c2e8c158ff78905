"""Hash strings without a dictionary: section V's first trial, and Appendix B's populations.

    python -m experiments.hashes [--seeds 10] [--population authors] [--reading fused]

100 random strings of six letters, bigrams, three reports a client at p = .25, q = .75, h = 2,
128 bits, 64 cohorts. The paper finds the top 7 of its Zipfian population (weights i^20, plus .001),
17 with the dictionary, none false; of a uniform population none.

Measured (authors' population 10 seeds, uniform 5; two cores with other work on them), no run with a
false string: authors' population, paper 13.2 (12 to 15), 1 s; fused 16.0 (15 to 18), 5 s. Uniform,
paper 23.8 (13 to 33); fused 92.2 (90 to 94). Intervals cover .95 to .97. About three minutes.
"""

from __future__ import annotations

import argparse

import numpy as np
from experiments.dictionaries import ngram_survey, report, run

from deniable.simulation import Population, geometric, power, random_strings, step, uniform


def authors() -> np.ndarray:
    """The authors' weights: i^20 scaled to sum 1, plus .001, scaled again."""
    weights = power(100) + 0.001
    return weights / weights.sum()


POPULATIONS = {
    "authors": authors(), "geometric": geometric(100, 0.3), "step": step(), "uniform": uniform(),
}  # fmt: skip


def main() -> None:
    """Run the campaign."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--reports", type=int, default=100_000)
    parser.add_argument("--population", choices=list(POPULATIONS), action="append")
    parser.add_argument("--reading", choices=["paper", "fused"], action="append")
    options = parser.parse_args()
    survey = ngram_survey(q=0.75, length=6, gram=2, alphabet="a-z")
    for name in options.population or list(POPULATIONS):
        weights = POPULATIONS[name]
        for reading in options.reading or ("paper", "fused"):
            runs = []
            for seed in range(options.seeds):
                strings = random_strings(100, 6, np.random.default_rng([74, seed]))
                population = Population(strings, weights)
                runs.append(run(survey, population, options.reports, seed, reading))
            report(f"{name}, {reading}", runs)


if __name__ == "__main__":
    main()
