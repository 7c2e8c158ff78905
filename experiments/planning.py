"""Compare predictions of `planning` with simulated crowds: thresholds, and strings found.

    python -m experiments.planning [--quick] [--seed 1] [--trials 3] [--case NAME]
        [-o FOLDER]

A case consists of a protocol, strings and a number of clients. There are 100 strings with weights
∝ exp(−rank/25), so that an error of 10 % in the threshold corresponds to 2.5 strings. `measured` is
the threshold for which the predicted number of strings equals the number found. A run takes half a
minute to a minute and a half on two cores; --quick makes one run of the fast cases.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from deniable import Survey, discover, simulate
from deniable.kernels.array_types import Floats
from deniable.planning import discoverable, expected_found, noise_sd
from deniable.reproduction.records import Record
from deniable.simulation import Population, exponential, random_strings, top_domains
from experiments.options import arguments
from experiments.text_tables import show

HEAD = """
name = "planned"
version = 1
owner = "experiments"
description = "predictions"
expires = 2999-12-31
collect = "once"
[questions.v]
kind = "string"
"""
Strings = Callable[[np.random.Generator], tuple[str, ...]]
DOMAINS = "a-z0-9._-"


def letters(length: int, alphabet: str = "abcdefghijklmnopqrstuvwxyz") -> Strings:
    """A hundred random strings."""
    return lambda rng: random_strings(100, length, rng, alphabet)


def names(_: np.random.Generator) -> tuple[str, ...]:
    """Domains without their endings, and some that are written together."""
    alone = [domain.split(".")[0] for domain in top_domains()]
    together = [domain.replace(".", "") for domain in top_domains()]
    return tuple(dict.fromkeys([*alone, *together]))[:100]


@dataclass(frozen=True)
class Case:
    """One way to ask some strings of a crowd."""

    epsilon: float
    protocol: str
    max_length: int
    alphabet: str
    strings: Strings
    clients: int
    random: bool = True
    more: str = ""
    mechanism: str = ""

    @property
    def survey(self) -> Survey:
        return Survey.from_toml(
            f"{HEAD}epsilon = {self.epsilon}\n{self.mechanism}\n[questions.v.dictionary]\n"
            f'protocol = "{self.protocol}"\nmax_length = {self.max_length}\n'
            f'alphabet = "{self.alphabet}"\n{self.more}\n'
        )


HASHED = 'mechanism = "localhash"'
QUICK = {
    "whole, 4 letters": Case(4.0, "prefixes", 4, "a-z", letters(4), 10_000, mechanism=HASHED),
    "whole, 4 letters, ε = 2": Case(
        2.0, "prefixes", 4, "a-z", letters(4), 20_000, mechanism=HASHED
    ),
    "n-grams, 6 letters": Case(4.394, "ngrams", 6, "a-z", letters(6), 100_000),
    "n-grams, ε = 6": Case(6.0, "ngrams", 6, "a-z", letters(6), 100_000),
    "n-grams, split 2 1 1": Case(
        4.394, "ngrams", 6, "a-z", letters(6), 100_000, more="split = [2, 1, 1]"
    ),
}
CASES = QUICK | {
    "n-grams, 10 letters": Case(4.394, "ngrams", 10, "a-z", letters(10), 300_000),
    "n-grams, domains": Case(
        4.394449, "ngrams", 20, DOMAINS, lambda _: top_domains(), 1_000_000, random=False
    ),
    "prefixes, 10 letters": Case(
        4.0, "prefixes", 12, "a-z", letters(10), 100_000, mechanism=HASHED
    ),
    "prefixes, 12 digits": Case(
        4.0, "prefixes", 12, "0-9", letters(12, "0123456789"), 100_000, mechanism=HASHED
    ),
    "prefixes, names": Case(
        4.0, "prefixes", 16, "a-z0-9-", names, 100_000, random=False, mechanism=HASHED
    ),
    "prefixes, domains": Case(
        4.394449, "prefixes", 20, DOMAINS, lambda _: top_domains(), 100_000, random=False,
        mechanism=HASHED,
    ),
    "prefixes, domains, a million": Case(
        4.394449, "prefixes", 20, DOMAINS, lambda _: top_domains(), 1_000_000, random=False,
        mechanism=HASHED,
    ),
}  # fmt: skip


def measured_threshold(weights: Floats, found: float, sd: float) -> float:
    """The threshold that would make the prediction right."""
    least, most = 1e-3 * weights.min(), 2 * weights.max()
    inside = float(np.clip(found, 0.02, len(weights) - 0.02))
    return float(brentq(lambda t: expected_found(weights.tolist(), t, sd) - inside, least, most))


def compare(case: Case, seed: int, trials: int) -> dict[str, float]:
    """Predicted and found, on average over the trials."""
    weights, counts, lengths = exponential(100, 25.0), [], []
    for trial in range(trials):
        rng = np.random.default_rng([seed, trial])
        population = Population(case.strings(rng), weights)
        reports = simulate(case.survey, population.draw(case.clients, rng), rng=rng)
        found = discover(case.survey, reports, "v")
        counts.append(sum(s in population.values for s in found.strings))
        lengths.append(float(np.mean([len(s) for s in population.values])))
    question = case.survey.question("v")
    sd = noise_sd(question.protocol.mechanisms[0], case.clients)
    predicted = discoverable(
        question, case.clients, length=float(np.mean(lengths)), random=case.random
    )
    measured = measured_threshold(weights, float(np.mean(counts)), sd)
    return {
        "found": float(np.mean(counts)),
        "expected": expected_found(weights.tolist(), predicted, sd),
        "measured threshold": measured, "predicted threshold": predicted,
        "ratio": predicted / measured,
    }  # fmt: skip


def main() -> None:
    """Run the cases."""
    options = arguments(
        __doc__, seed=1, trials={"type": int, "default": 3}, case={"type": str, "default": None}
    )
    trials = 1 if options.quick else options.trials
    record = Record("planning", options.seed, {"trials": trials})
    rows = []
    for name, case in (QUICK if options.quick else CASES).items():
        if options.case in (None, name):
            rows.append({"case": name, **compare(case, options.seed, trials)})
            print(rows[-1], flush=True)
    show(record, "planning", rows, "Predictions beside simulated crowds")
    if options.output:
        record.write(options.output)


if __name__ == "__main__":
    main()
