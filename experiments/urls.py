"""A hundred domain names without a dictionary: section V's second trial, the paper's protocol.

    python -m experiments.urls [--seeds 20] [--reports 1000000] [--case printed]

Weights exp(-rank/25), M = 20 (21 for trigrams), p = .25, h = 2, 128 bits, 64 cohorts. The paper
prints q = .32 as a third of epsilon = 4.39, which it is not: epsilon/3 = 1.46 is q = .40945. The
paper finds 5 and 1 false with bigrams, 2 with trigrams.

MEASURED
"""

from __future__ import annotations

import argparse

from experiments.dictionaries import ngram_survey, report, run

from deniable.simulation import Population, exponential, top_domains

ALPHABET = "a-z0-9._-"
PRINTED, THIRD, QUARTER = 0.32, 0.40945, 0.36603
CASES = {
    "printed": ({"q": PRINTED, "length": 20, "gram": 2}, "paper"),
    "printed, fused": ({"q": PRINTED, "length": 20, "gram": 2}, "fused"),
    "spent, paper": ({"q": THIRD, "length": 20, "gram": 2}, "paper"),
    "spent": ({"q": THIRD, "length": 20, "gram": 2}, "fused"),
    "printed, trigrams": ({"q": PRINTED, "length": 21, "gram": 3}, "paper"),
    "trigrams": ({"q": THIRD, "length": 21, "gram": 3}, "fused"),
    "4-grams": ({"q": THIRD, "length": 20, "gram": 4}, "fused"),
    "three bigrams": ({"q": QUARTER, "length": 20, "gram": 2, "grams": 3}, "fused"),
    "overlapping": ({"q": THIRD, "length": 20, "gram": 2, "overlap": True}, "fused"),
}


def main() -> None:
    """Run the campaign."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--reports", type=int, default=1_000_000)
    parser.add_argument("--case", choices=list(CASES), action="append")
    options = parser.parse_args()
    population = Population(top_domains(), exponential(100))
    for name in options.case or list(CASES):
        settings, reading = CASES[name]
        survey = ngram_survey(alphabet=ALPHABET, **settings)  # type: ignore[arg-type]
        runs = [
            run(survey, population, options.reports, seed, reading)
            for seed in range(options.first, options.first + options.seeds)
        ]
        report(f"{name}: {reading}", runs)


if __name__ == "__main__":
    main()
