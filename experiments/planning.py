"""Compare predictions of `planning` with simulated crowds: thresholds, and strings found.

    python -m experiments.planning [--quick] [--seed 1] [--trials 3] [--case NAME]
        [-o FOLDER]

A case consists of a protocol, strings and a number of clients. There are 100 strings with weights
∝ exp(−rank/25), so that an error of 10% in the threshold corresponds to 2.5 strings. `measured` is
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
from deniable.simulation import Population, exponential, random_strings, top_domains
from experiments.options import arguments, finish
from experiments.paper.records import Record
from experiments.paper.trials import Settings, survey_of
from experiments.text_tables import show

Strings = Callable[[np.random.Generator], tuple[str, ...]]
DOMAINS = "a-z0-9._-"


def letters(length: int, alphabet: str = "abcdefghijklmnopqrstuvwxyz") -> Strings:
    """Return a function that draws a hundred random strings."""
    return lambda rng: random_strings(100, length, rng, alphabet)


def domains(_: np.random.Generator) -> tuple[str, ...]:
    """Return the domains; they are the same in every trial."""
    return top_domains()


def names(_: np.random.Generator) -> tuple[str, ...]:
    """Return domains without their endings, and some with their endings but without dots."""
    alone = [domain.split(".")[0] for domain in top_domains()]
    together = [domain.replace(".", "") for domain in top_domains()]
    return tuple(dict.fromkeys([*alone, *together]))[:100]


@dataclass(frozen=True)
class Case:
    """A way to ask, and the strings of the clients.

    random : whether the strings have no common structure
    split : shares of ε for the slots of an n-gram question
    """

    epsilon: float
    protocol: str
    max_length: int
    alphabet: str
    strings: Strings
    clients: int
    random: bool = True
    split: tuple[int, ...] = ()

    @property
    def survey(self) -> Survey:
        """Return the survey: local hashing for prefixes, Bloom filters for n-grams."""
        dictionary: Settings = {"protocol": self.protocol, "max_length": self.max_length}
        dictionary |= {"alphabet": self.alphabet}
        dictionary |= {"split": self.split} if self.split else {}
        question: Settings = {"kind": "string", "epsilon": self.epsilon, "dictionary": dictionary}
        question |= {"mechanism": "localhash"} if self.protocol == "prefixes" else {}
        return survey_of(v=question)


QUICK = {
    "whole, 4 letters": Case(4.0, "prefixes", 4, "a-z", letters(4), 10_000),
    "whole, 4 letters, ε = 2": Case(2.0, "prefixes", 4, "a-z", letters(4), 20_000),
    "n-grams, 6 letters": Case(4.394, "ngrams", 6, "a-z", letters(6), 100_000),
    "n-grams, ε = 6": Case(6.0, "ngrams", 6, "a-z", letters(6), 100_000),
    "n-grams, split 2 1 1": Case(4.394, "ngrams", 6, "a-z", letters(6), 100_000, split=(2, 1, 1)),
}
CASES = QUICK | {
    "n-grams, 10 letters": Case(4.394, "ngrams", 10, "a-z", letters(10), 300_000),
    "n-grams, domains": Case(4.394449, "ngrams", 20, DOMAINS, domains, 1_000_000, random=False),
    "prefixes, 10 letters": Case(4.0, "prefixes", 12, "a-z", letters(10), 100_000),
    "prefixes, 12 digits": Case(4.0, "prefixes", 12, "0-9", letters(12, "0123456789"), 100_000),
    "prefixes, names": Case(4.0, "prefixes", 16, "a-z0-9-", names, 100_000, random=False),
    "prefixes, domains": Case(4.394449, "prefixes", 20, DOMAINS, domains, 100_000, random=False),
    "prefixes, domains, a million": Case(
        4.394449, "prefixes", 20, DOMAINS, domains, 1_000_000, random=False
    ),
}


def measured_threshold(weights: Floats, found: float, sd: float) -> float:
    """Return the threshold for which the prediction equals the number of strings found."""
    least, most = 1e-3 * weights.min(), 2 * weights.max()
    inside = float(np.clip(found, 0.02, len(weights) - 0.02))
    return float(brentq(lambda t: expected_found(weights.tolist(), t, sd) - inside, least, most))


def compare(case: Case, seed: int, trials: int) -> dict[str, float]:
    """Return predicted and discovered strings, and thresholds, averaged over the trials."""
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
        "measured threshold": measured,
        "predicted threshold": predicted,
        "ratio": predicted / measured,
    }


def main() -> None:
    """Run the cases."""
    options = arguments(
        __doc__,
        seed=1,
        trials={"type": int, "default": 3, "help": "trials per case"},
        case={"default": None, "help": "run this case only"},
    )
    trials = 1 if options.quick else options.trials
    record = Record("planning", options.seed, {"trials": trials})
    rows = []
    for name, case in (QUICK if options.quick else CASES).items():
        if options.case in (None, name):
            rows.append({"case": name, **compare(case, options.seed, trials)})
            print(rows[-1], flush=True)
    show(record, "planning", rows, "Predictions and simulated results")
    finish(record, options)


if __name__ == "__main__":
    main()
