"""Accuracy against the length of strings and of n-grams: the paper's two figures.

    python -m experiments.length [--quick] [--seed 1] [-o FOLDER]

100 random strings over a–z with the authors' weights (i^20 plus .001), N = 100,000, three reports a
client at p = .25, q = .75, h = 2, 128 bits, 64 cohorts; n = 2 at lengths 4 to 12, n = 3 at 6, 9
and 12, n = 4 at 8. Hellinger distance over the true strings and one symbol "unseen", and the
share of the 100 strings that were not found.

The paper: at equal length larger n-grams are better; no false strings.
Measured (--quick, two crowds each, none false), Hellinger distance of the paper's reading / ours:
n = 2: .33/.30 at 4, .36/.32 at 6, .35/.32 at 8, .39/.31 at 10, .39/.32 at 12; n = 3: .33/.31 at 6,
.36/.32 at 9, .37/.33 at 12; n = 4: .36/.34 at 8. Larger n-grams help the paper's reading; ours
hardly depends on length.
"""

from __future__ import annotations

import numpy as np
from experiments.dictionaries import distance, ngram_survey, run

from deniable.simulation import Population, power, random_strings
from deniable.simulation.records import Record, arguments

CASES = [(2, length) for length in range(4, 13, 2)] + [(3, 6), (3, 9), (3, 12), (4, 8)]
REPORTS = 100_000


def main() -> None:
    """Run all lengths with both readings."""
    options = arguments(__doc__, seed=1)
    trials = 2 if options.quick else 10
    record = Record("length", options.seed, {"reports": REPORTS, "trials": trials})
    rows = []
    for gram, length in CASES:
        survey = ngram_survey(q=0.75, length=length, gram=gram, alphabet="a-z")
        for reading in ("paper", "fused"):
            distances, missed, false = [], [], 0
            for trial in range(trials):
                rng = np.random.default_rng([options.seed, gram, length, trial])
                population = Population(random_strings(100, length, rng), power(100, floor=0.001))
                found = run(survey, population, REPORTS, options.seed + trial, reading)
                distances.append(distance(population, found.result))
                missed.append(1 - found.found / 100)
                false += found.false > 0
            rows.append(
                {"n": gram, "length": length, "reading": reading,
                 "Hellinger": float(np.mean(distances)), "not found": float(np.mean(missed)),
                 "trials with a false string": false}
            )  # fmt: skip
            print(rows[-1], flush=True)
    record.show("length", rows, "Accuracy by length of strings and n-grams")
    record.write(options.output)


if __name__ == "__main__":
    main()
