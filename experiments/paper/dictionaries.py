"""What the experiments with unknown dictionaries share: surveys, runs, and lines of a table."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from deniable.analysis import decode
from deniable.discovery import discover
from deniable.inference.marginal.detection import Correction
from deniable.kernels.array_types import Floats
from deniable.results import Discovery, Marginal
from deniable.simulation import Population, random_strings, simulate
from deniable.survey import Survey
from experiments.paper.original import discover_original
from experiments.paper.processes import trials_by_case
from experiments.paper.records import Record, Row
from experiments.paper.trials import Settings, bloom, hellinger, survey_of

READINGS: dict[str, tuple[str, float | None]] = {
    "paper, δ = .04 as its program": ("paper", 0.04),
    "paper, δ by its formula": ("paper", None),
    "default": ("fused", None),
}
"""Reading and pair threshold; the authors' published program sets .04, whatever δ it computes."""
WHOLE: dict[str, tuple[str, float | None]] = {
    "paper whole, δ = .04 as its program": ("original", 0.04),
    "paper whole, δ by its formula": ("original", None),
}
"""The paper's decoder with its own marginals and its own model of Other."""


def ngram_survey(*, q: float, alphabet: str, length: int, gram: int, **changes: object) -> Survey:
    """Return a survey with the paper's parameters: 128 bits, two hashes, two n-grams per report."""
    dictionary = {"protocol": "ngrams", "max_length": length, "alphabet": alphabet, "gram": gram}
    return survey_of(value=bloom(q=q, dictionary={**dictionary, "grams": 2, **changes}))


def prefix_survey(*, epsilon: float, length: int, alphabet: str) -> Survey:
    """Return a survey with one report of a prefix by local hashing, with all of epsilon."""
    dictionary = {"protocol": "prefixes", "max_length": length, "alphabet": alphabet}
    question = {"kind": "string", "mechanism": "localhash", "epsilon": epsilon}
    return survey_of(value={**question, "dictionary": dictionary})


@dataclass(frozen=True)
class Run:
    """One discovery in simulated reports.

    truth : float64[C], true share of each discovered string, 0 if it is false
    distance : Hellinger distance of the discovered strings from the population
    """

    result: Discovery
    truth: Floats
    distance: float
    seconds: float

    @property
    def found(self) -> int:
        """Number of true strings that were discovered."""
        return int((self.truth > 0).sum())

    @property
    def false(self) -> int:
        """Number of false strings that were discovered."""
        return len(self.truth) - self.found

    @property
    def covered(self) -> float:
        """Share of true discovered strings whose interval contains the truth."""
        inside = (self.result.low <= self.truth) & (self.truth <= self.result.high)
        return float(inside[self.truth > 0].mean()) if self.found else float("nan")

    @property
    def shares(self) -> dict[str, float]:
        """Estimated share of every discovered string."""
        return dict(zip(self.result.strings, self.result.estimate.tolist(), strict=True))


def run(
    survey: Survey,
    population: Population,
    reports: int,
    seed: int,
    reading: str | None,
    delta: float | None = None,
) -> Run:
    """Simulate reports of the population, and discover its strings."""
    rng = np.random.default_rng([seed, reports])
    batch = simulate(survey, population.draw(reports, rng), rng=rng)
    start = time.perf_counter()
    if reading == "original":
        result = discover_original(survey, batch, "value", delta)
    else:
        result = discover(survey, batch, "value", reading=reading, delta=delta)
    seconds = time.perf_counter() - start
    truth = np.array([population.share(s) for s in result.strings])
    shares = dict(zip(population.values, population.weights.tolist(), strict=True))
    estimates = dict(zip(result.strings, result.estimate.tolist(), strict=True))
    return Run(result, truth, hellinger(shares, estimates), seconds)


def decoded(
    question: Settings, population: Population, reports: int, seed: int, correction: Correction
) -> Marginal:
    """Simulate reports of whole strings, and decode them with the population as the dictionary."""
    rng = np.random.default_rng([seed, reports])
    survey = survey_of(value=question)
    batch = simulate(survey, population.draw(reports, rng), rng=rng)
    return decode(survey, batch, "value", population.values, correction=correction)


def most_common(population: Population, shares: Mapping[str, Mapping[str, float]]) -> list[Row]:
    """List the 30 most common strings: the truth, and the estimate of each analysis, if any."""
    return [
        {"value": value, "truth": float(population.weights[i])}
        | {name: estimates.get(value) for name, estimates in shares.items()}
        for i, value in enumerate(population.values[:30])
    ]


def mean_shares(populations: Sequence[Population], runs: Mapping[str, Sequence[Run]]) -> list[Row]:
    """List the 30 highest ranks: the true share, and what each analysis makes of it on average.

    Strings differ between crowds, their shares do not. For each analysis there is the mean
    estimate of the crowds that discovered the string of a rank, None if none did, and the share of
    crowds that did.
    """
    rows: list[Row] = []
    for rank in range(30):
        row: dict[str, float | None] = {
            "rank": rank + 1,
            "truth": float(populations[0].weights[rank]),
        }
        for name, each in runs.items():
            pairs = zip(populations, each, strict=True)
            found = [run.shares.get(population.values[rank]) for population, run in pairs]
            seen = [share for share in found if share is not None]
            row[name] = float(np.mean(seen)) if seen else None
            row[f"{name}: found"] = len(seen) / len(found)
        rows.append(row)
    return rows


def note_cuts(record: Record, runs: Mapping[str, Sequence[Run]]) -> None:
    """Note what a search left out, by case: the number of crowds, and the first such crowd's."""
    for name, each in runs.items():
        cuts = [run.result.truncation for run in each if run.result.truncation]
        if cuts:
            crowds = f"in {len(cuts)} of {len(each)} crowds the search was incomplete"
            record.notes.append(f"Left out, {name}: {crowds}; in the first, {cuts[0]}.")


def summary(name: str, runs: Sequence[Run]) -> Row:
    """Return one line of a table: mean and range of strings, false strings, effort."""
    found = [r.found for r in runs]
    return {
        "case": name,
        "runs": len(runs),
        "found": float(np.mean(found)),
        "least": min(found),
        "most": max(found),
        "runs with a false string": sum(r.false > 0 for r in runs),
        "runs cut": sum(bool(r.result.truncation) for r in runs),
        "candidates": float(np.median([r.result.candidates for r in runs])),
        "covered": float(np.mean([r.covered for r in runs if r.found] or [np.nan])),
        "seconds": float(np.median([r.seconds for r in runs])),
    }


@dataclass(frozen=True)
class Short:
    """Populations of 100 random strings of one length, as in the simulations of section V."""

    weights: Floats
    length: int = 6
    gram: int = 2

    @property
    def survey(self) -> Survey:
        """Three reports per client, p = .25, q = .75."""
        return ngram_survey(q=0.75, length=self.length, gram=self.gram, alphabet="a-z")

    def population(self, seed: int) -> Population:
        """Return the strings of one trial."""
        rng = np.random.default_rng([74, self.length, seed])
        return Population(random_strings(100, self.length, rng), self.weights)


def short_trial(short: Short, seed: int, reading: str, delta: float | None = None) -> Run:
    """Run one trial with 100,000 clients; every reading has the same strings and reports."""
    return run(short.survey, short.population(seed), 100_000, seed, reading, delta)


def short_strings(
    shapes: Mapping[str, Floats],
    seed: int,
    trials: int,
    stage: str,
    readings: Mapping[str, tuple[str, float | None]] = READINGS,
) -> dict[tuple[str, str], list[Run]]:
    """Run every shape with every reading; return the runs by shape and reading."""
    seeds = range(seed, seed + trials)
    cases = {
        (shape, reading): [(Short(weights), i, *options) for i in seeds]
        for shape, weights in shapes.items()
        for reading, options in readings.items()
    }
    return trials_by_case(short_trial, cases, stage)
