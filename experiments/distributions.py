"""Unknown strings of other shapes: Appendix B of the paper.

    python -m experiments.distributions [--quick] [--seed 0] [-o FOLDER]

100 random strings of six letters, bigrams, N = 100,000, three reports a client at p = .25, q = .75,
h = 2, 128 bits, 64 cohorts; weights geometric(.3), a step (4 of .12, 4 of .06, 92 share the rest),
uniform, and the hash trial's for comparison.

The paper: geometric like its Zipfian; step worse; of a uniform population "none of the strings are
found", and of the hash trial's the top 7. Both numbers are those of a pair threshold of .04, which
the authors' published program sets after computing δ: only 7 or 8 strings of the hash trial, and
none of .01, are more frequent. δ by the paper's formula is .0027 here, and the paper calls
1.64 δ = .0045 enough to tell a string from noise: strings of .01 are then found whenever all three
of their bigrams are significant (.01 is 4.2 standard errors of a position's bigrams, 3.8 are
needed for 703 of them). Both thresholds are run.

MEASURED
"""

from __future__ import annotations

import numpy as np
from experiments.dictionaries import ngram_survey, run

from deniable.simulation import Population, geometric, power, random_strings, step, uniform
from deniable.simulation.records import Record, arguments
from deniable.simulation.trials import hellinger

REPORTS = 100_000
AS_RUN = 0.04
"""The authors' program's pair threshold."""
WEIGHTS = {
    "hash trial": power(100, floor=0.001), "geometric": geometric(100, 0.3), "step": step(),
    "uniform": uniform(),
}  # fmt: skip
READINGS = {
    "paper, δ = .04": ("paper", {"delta": AS_RUN}),
    "paper, δ by its formula": ("paper", {}),
    "default": ("fused", {}),
}


def main() -> None:
    """Every shape in every reading, on the same crowds."""
    options = arguments(__doc__, seed=0)
    trials = 2 if options.quick else 20
    record = Record("distributions", options.seed, {"reports": REPORTS, "trials": trials})
    survey = ngram_survey(q=0.75, length=6, gram=2, alphabet="a-z")
    rows = []
    for name, weights in WEIGHTS.items():
        for reading, (way, more) in READINGS.items():
            found, false, distances = [], 0, []
            for trial in range(options.seed, options.seed + trials):
                strings = random_strings(100, 6, np.random.default_rng([74, trial]))
                population = Population(strings, weights)
                got = run(survey, population, REPORTS, trial, way, **more)
                truth = dict(zip(strings, population.weights.tolist(), strict=True))
                estimates = zip(got.result.strings, got.result.estimate.tolist(), strict=True)
                distances.append(hellinger(truth, dict(estimates)))
                found.append(got.found)
                false += got.false > 0
            rows.append(
                {"weights": name, "reading": reading, "found": float(np.mean(found)),
                 "least": min(found), "most": max(found), "Hellinger": float(np.mean(distances)),
                 "runs with a false string": false}
            )  # fmt: skip
            print(rows[-1], flush=True)
    record.show("distributions", rows, f"Found of 100, {trials} crowds each")
    record.write(options.output)


if __name__ == "__main__":
    main()
