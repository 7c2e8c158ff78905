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
from deniable.reproduction.dictionaries import run
from deniable.reproduction.records import Record
from deniable.simulation import Population, exponential, top_domains
from deniable.survey import Question
from experiments.options import arguments
from experiments.text_tables import show

EPSILON, REPORTS = 4.394449, 1_000_000
SURVEY = """
name = "split"
version = 1
owner = "experiments"
description = "an unknown dictionary"
expires = 2999-12-31
collect = "once"
[questions.value]
kind = "string"
epsilon = {epsilon}
[questions.value.dictionary]
protocol = "ngrams"
max_length = 20
alphabet = "a-z0-9._-"
split = {split}
"""


@dataclass(frozen=True)
class Split:
    """Shares of ε for the full string and for each n-gram, and the threshold they give."""

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
    """The division of ε between full string and n-grams with the lowest predicted threshold.

    The paper gives each report the same share and leaves the best one open. Long strings take most
    of their evidence from pairs of grams; short ones must above all stand out as full strings.
    """
    found = [
        Split(shares, split_threshold(epsilon, shares, clients, alphabet, max_length, gram))
        for full in range(1, 100)
        if (shares := (full / 100, *[(1 - full / 100) / grams] * grams))
    ]
    return min(found, key=lambda s: s.threshold)


def split_threshold(
    epsilon: float,
    shares: Sequence[float],
    clients: float,
    alphabet: Alphabet,
    max_length: int,
    gram: int = 2,
    length: float | None = None,
) -> float:
    """Predicted threshold of n-gram discovery with these shares of ε, full string first.

    length : of a typical string, half of max_length if not given
    """
    start = Bloom(noise=Noise.of(p=2**-32, q=0.5), bits=256, cohorts=64)
    parts = split(epsilon, shares)
    made = {part: calibrate(start, part, vary="p") for part in set(parts)}
    full, *each = (made[part] for part in parts)
    protocol = NGrams(alphabet, max_length, gram, full, tuple(each))
    question = Question("value", "string", "", protocol)
    return discoverable(question, clients, length=length)


def main() -> None:
    """Thirds, the predicted best, and others."""
    options = arguments(__doc__, seed=1)
    trials = 1 if options.quick else 3
    record = Record("split", options.seed, {"reports": REPORTS, "trials": trials})
    population = Population(top_domains(), exponential(100, 25.0))
    alphabet = survey_of((1.0, 1.0, 1.0)).question("value").protocol
    assert isinstance(alphabet, NGrams)
    letters: Alphabet = alphabet.alphabet
    best = best_split(EPSILON, REPORTS, letters, 20)
    rows = []
    for name, shares in (
        ("thirds", (1 / 3, 1 / 3, 1 / 3)), ("predicted best", best.shares),
        ("full .4", (0.4, 0.3, 0.3)), ("full .5", (0.5, 0.25, 0.25)),
        ("full .15", (0.15, 0.425, 0.425)),
    ):  # fmt: skip
        survey = survey_of(shares)
        runs = [run(survey, population, REPORTS, options.seed + i, "fused") for i in range(trials)]
        found = np.array([r.found for r in runs])
        rows.append(
            {"division": name, "full string": float(shares[0]),
             "predicted threshold": split_threshold(EPSILON, shares, REPORTS, letters, 20),
             "found": float(found.mean()), "least": int(found.min()), "most": int(found.max()),
             "runs with a false string": sum(r.false > 0 for r in runs)}
        )  # fmt: skip
        print(rows[-1], flush=True)
    show(record, "split", rows, "Strings found of 100, by the full string's share of ε")
    if options.output:
        record.write(options.output)


def survey_of(shares: tuple[float, ...]) -> Survey:
    """The paper's protocol with these shares of ε."""
    return Survey.from_toml(SURVEY.format(epsilon=EPSILON, split=list(shares)))


if __name__ == "__main__":
    main()
