"""Are p-values uniform under independence, and how often does a weak association show?

Run:   python experiments/association_calibration.py [trials]      (about 4 minutes for 400 trials)

For each population: share of trials rejected at .05 and .01, and the Kolmogorov–Smirnov p-value of
uniformity, for the score test (with and without cohorts as strata), the paper's T and the
likelihood ratio. Appendix A of the paper is the second population. Prints JSON lines with seeds.
"""

import json
import sys
import warnings
from dataclasses import dataclass

import numpy as np
from scipy.stats import kstest

from deniable.inference.association import association_test
from deniable.inference.evidence import gather
from deniable.inference.solver import maximise_evidence
from deniable.simulation.rows import basic_rows, bloom_rows, dependent_table, draw_cells

SEED = 20


@dataclass(frozen=True)
class Population:
    """One setting of the experiment."""

    name: str
    encoding: str
    shape: tuple[int, int]
    reports: int
    exponent: float
    q: float = 0.75
    strength: float = 0.0


POPULATIONS = (
    Population("basic 3x3, N=500", "basic", (3, 3), 500, 1.0),
    Population("basic 5x5, N=10k (Appendix A)", "basic", (5, 5), 10_000, 1.0),
    Population("basic 5x5, N=1k, shuffled", "basic", (5, 5), 1_000, 1.0),
    Population("basic 6x6 rare, N=10k", "basic", (6, 6), 10_000, 3.0),
    Population("bloom 6x6, N=10k", "bloom", (6, 6), 10_000, 1.0),
    Population("bloom 6x6 rare, N=10k", "bloom", (6, 6), 10_000, 3.0),
    Population("bloom 6x6 low signal, N=20k", "bloom", (6, 6), 20_000, 1.0, 0.41),
    Population("bloom 10x10 rare, N=20k", "bloom", (10, 10), 20_000, 2.0),
    Population("bloom 6x6 weak association", "bloom", (6, 6), 10_000, 1.0, 0.75, 0.03),
    Population("bloom 6x6 low signal, association", "bloom", (6, 6), 20_000, 1.0, 0.41, 0.15),
)


def p_values(population: Population, rng: np.random.Generator) -> dict[str, float]:
    """One trial: every test's p-value."""
    table = dependent_table(
        *population.shape, strength=population.strength, exponent=population.exponent
    )
    values = draw_cells(table, population.reports, rng)
    cohorts = rng.integers(16, size=population.reports)
    if population.encoding == "basic":
        rows = tuple(
            basic_rows(v, size, rng=rng, q=population.q)
            for v, size in zip(values, population.shape, strict=True)
        )
    else:
        rows = tuple(
            bloom_rows(v, size, rng=rng, cohorts=cohorts, q=population.q)
            for v, size in zip(values, population.shape, strict=True)
        )
    evidence = gather([rows], population.shape)
    fit = maximise_evidence(evidence)
    found = {
        method: association_test(evidence, method=method, fit=fit, rng=rng).p_value
        for method in ("score", "paper", "lrt")
    }
    if population.encoding == "bloom":
        found["score, strata"] = association_test(evidence, strata=cohorts, rng=rng).p_value
    return found


def main(trials: int) -> None:
    """Run every population and print one JSON line per test."""
    warnings.simplefilter("error")
    for position, population in enumerate(POPULATIONS):
        rng = np.random.default_rng([SEED, position])
        results = [p_values(population, rng) for _ in range(trials)]
        for method in results[0]:
            found = np.array([result[method] for result in results])
            line = {
                "population": population.name,
                "method": method,
                "trials": trials,
                "seed": SEED,
                "rejected_05": round(float(np.mean(found <= 0.05)), 4),
                "rejected_01": round(float(np.mean(found <= 0.01)), 4),
                "uniform_p": round(float(kstest(found, "uniform").pvalue), 4),
            }
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 400)
