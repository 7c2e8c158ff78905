"""How to divide ε between the whole string and the n-grams: an open question of the paper.

    python -m experiments.split [--quick] [--seed 1] [-o FOLDER]

The URL experiment with n-grams, default decoder, N = 10⁶, ε = 4.394 in total: equal thirds as in
the paper, the division that `best_split` predicts to be best, and divisions around it. All slots
use one hash and q = ½, so that only the division differs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deniable import Survey
from deniable.mechanisms import Bloom, Noise, calibrate
from deniable.planning import discoverable
from deniable.privacy import split
from deniable.protocols import Alphabet, NGrams
from deniable.simulation import Population, exponential, top_domains
from deniable.survey import Question
from experiments.options import arguments, finish
from experiments.paper.dictionaries import run
from experiments.paper.records import Record
from experiments.paper.trials import survey_of
from experiments.text_tables import show

EPSILON, REPORTS = 4.394449, 1_000_000


@dataclass(frozen=True)
class Split:
    """Shares of ε for the full string and for each n-gram, and the predicted threshold."""

    shares: tuple[float, ...]
    threshold: float


def best_split(
    epsilon: float,
    clients: float,
    alphabet: Alphabet,
    max_length: int,
    gram: int = 2,
    grams: int = 2,
) -> Split:
    """Return the division of ε between full string and n-grams with the lowest threshold.

    The paper gives each slot the same share and leaves the best division open. Most of the evidence
    for long strings comes from pairs of grams; short ones must above all be detected as full
    strings.
    """
    splits = [
        Split(shares, split_threshold(epsilon, shares, clients, alphabet, max_length, gram))
        for full in range(1, 100)
        if (shares := (full / 100, *[(1 - full / 100) / grams] * grams))
    ]
    return min(splits, key=lambda s: s.threshold)


def split_threshold(
    epsilon: float,
    shares: Sequence[float],
    clients: float,
    alphabet: Alphabet,
    max_length: int,
    gram: int = 2,
    length: float | None = None,
) -> float:
    """Return the predicted threshold of discovery with these shares of ε, full string first.

    length : length of a typical string; half of max_length by default
    """
    start = Bloom(noise=Noise.of(p=2**-32, q=0.5), bits=256, cohorts=64)
    parts = split(epsilon, shares)
    made = {part: calibrate(start, part, vary="p") for part in set(parts)}
    full, *each = (made[part] for part in parts)
    protocol = NGrams(alphabet, max_length, gram, full, tuple(each))
    question = Question("value", "string", "", protocol)
    return discoverable(question, clients, length=length)


def split_survey(shares: tuple[float, ...]) -> Survey:
    """Return the paper's protocol with these shares of ε."""
    dictionary = {"protocol": "ngrams", "max_length": 20, "alphabet": "a-z0-9._-"}
    dictionary |= {"split": list(shares)}
    return survey_of(value={"kind": "string", "epsilon": EPSILON, "dictionary": dictionary})


def main() -> None:
    """Run equal thirds, the predicted best division, and others."""
    options = arguments(__doc__, seed=1)
    trials = 1 if options.quick else 3
    record = Record("split", options.seed, {"reports": REPORTS, "trials": trials})
    population = Population(top_domains(), exponential(100, 25.0))
    protocol = split_survey((1.0, 1.0, 1.0)).question("value").protocol
    assert isinstance(protocol, NGrams)
    best = best_split(EPSILON, REPORTS, protocol.alphabet, 20)
    divisions = {
        "thirds": (1 / 3, 1 / 3, 1 / 3),
        "predicted best": best.shares,
        "full .4": (0.4, 0.3, 0.3),
        "full .5": (0.5, 0.25, 0.25),
        "full .15": (0.15, 0.425, 0.425),
    }
    rows = []
    for name, shares in divisions.items():
        survey, seeds = split_survey(shares), range(options.seed, options.seed + trials)
        runs = [run(survey, population, REPORTS, seed, "fused") for seed in seeds]
        found = np.array([r.found for r in runs])
        threshold = split_threshold(EPSILON, shares, REPORTS, protocol.alphabet, 20)
        row = {"division": name, "full string": float(shares[0]), "predicted threshold": threshold}
        row |= {"found": float(found.mean()), "least": int(found.min()), "most": int(found.max())}
        rows.append({**row, "runs with a false string": sum(r.false > 0 for r in runs)})
        print(rows[-1], flush=True)
    show(record, "split", rows, "Strings found of 100, by the full string's share of ε")
    finish(record, options)


if __name__ == "__main__":
    main()
