"""What the trials with unknown dictionaries share: surveys, a run, and its line of numbers."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from deniable.discovery import discover
from deniable.kernels.array_types import Floats
from deniable.reproduction.processes import in_processes
from deniable.reproduction.records import Row
from deniable.reproduction.trials import bloom, hellinger, survey_of
from deniable.results import Discovery
from deniable.simulation import Population, random_strings, simulate
from deniable.survey import Survey

AS_RUN = 0.04
"""The pair threshold that the authors' published program sets, whatever δ it has computed."""
READINGS: dict[str, tuple[str, dict[str, float]]] = {
    "paper, δ = .04 as its program": ("paper", {"delta": AS_RUN}),
    "paper, δ by its formula": ("paper", {}),
    "default": ("fused", {}),
}


def ngram_survey(*, q: float, alphabet: str, length: int, gram: int, **changes: object) -> Survey:
    """Make a survey with the paper's parameters: 128 bits, two hashes, two n-grams per report."""
    dictionary = {
        "protocol": "ngrams",
        "max_length": length,
        "alphabet": alphabet,
        "gram": gram,
        "grams": 2,
        **changes,
    }
    return survey_of(value=bloom(q=q, dictionary=dictionary))


def prefix_survey(*, epsilon: float, length: int, alphabet: str) -> Survey:
    """Make a survey with one report of a prefix by local hashing, with all of epsilon."""
    dictionary = {"protocol": "prefixes", "max_length": length, "alphabet": alphabet}
    return survey_of(
        value={
            "kind": "string",
            "mechanism": "localhash",
            "epsilon": epsilon,
            "dictionary": dictionary,
        }
    )


@dataclass(frozen=True)
class Run:
    """One run: strings found that are there, strings found that are not, and what it took.

    distance : Hellinger's, of what was found from the truth
    """

    found: int
    false: int
    distance: float
    candidates: int
    covered: float
    seconds: float
    result: Discovery

    @property
    def shares(self) -> dict[str, float]:
        """The estimated share of every string that was found."""
        return dict(zip(self.result.strings, self.result.estimate.tolist(), strict=True))


def run(
    survey: Survey,
    population: Population,
    reports: int,
    seed: int,
    reading: str | None,
    **options: object,
) -> Run:
    """Simulate the crowd and discover its strings."""
    rng = np.random.default_rng([seed, reports])
    batch = simulate(survey, population.draw(reports, rng), rng=rng)
    start = time.perf_counter()
    result = discover(survey, batch, "value", reading=reading, **options)  # type: ignore[arg-type]
    seconds = time.perf_counter() - start
    there = np.array([s in population.values for s in result.strings], bool)
    truth = np.array([population.share(s) for s in result.strings])
    inside = (result.low <= truth) & (truth <= result.high)
    covered = float(inside[there].mean()) if there.any() else float("nan")
    away = distance(population, result)
    return Run(
        int(there.sum()), int((~there).sum()), away, result.candidates, covered, seconds, result
    )


def distance(population: Population, found: Discovery) -> float:
    """Hellinger distance of what was found from the truth."""
    truth = dict(zip(population.values, population.weights.tolist(), strict=True))
    return hellinger(truth, dict(zip(found.strings, found.estimate.tolist(), strict=True)))


def most_common(population: Population, shares: Mapping[str, Mapping[str, float]]) -> list[Row]:
    """List the 30 most common strings: the truth, and each analysis's estimate if it has one."""
    return [
        {"value": value, "truth": float(population.weights[i])}
        | {name: found.get(value) for name, found in shares.items()}
        for i, value in enumerate(population.values[:30])
    ]


def grams_by_position(found: Discovery) -> list[int]:
    """Significant n-grams at every position, as the stage's note has them."""
    (note,) = (s.note for s in found.stages if s.name == "grams significant")
    return [int(number) for number in note.removeprefix("by position: ").split(",")]


def summary(name: str, runs: Sequence[Run]) -> Row:
    """One line: mean, spread, false strings and what it took."""
    found = [r.found for r in runs]
    return {
        "case": name,
        "runs": len(runs),
        "found": float(np.mean(found)),
        "least": min(found),
        "most": max(found),
        "runs with a false string": sum(r.false > 0 for r in runs),
        "candidates": float(np.median([r.candidates for r in runs])),
        "covered": float(np.mean([r.covered for r in runs if r.found] or [np.nan])),
        "seconds": float(np.median([r.seconds for r in runs])),
    }


@dataclass(frozen=True)
class Short:
    """Crowds with random strings of one length: the parameters of section V's simulations."""

    weights: Floats
    length: int = 6
    gram: int = 2

    @property
    def survey(self) -> Survey:
        """Three reports a client, p = .25, q = .75."""
        return ngram_survey(q=0.75, length=self.length, gram=self.gram, alphabet="a-z")


def short_trial(short: Short, seed: int, reading: str, delta: float | None = None) -> Run:
    """One crowd of 100,000; the same strings and the same reports whatever the reading."""
    strings = random_strings(100, short.length, np.random.default_rng([74, short.length, seed]))
    more = {} if delta is None else {"delta": delta}
    population = Population(strings, short.weights)
    return run(short.survey, population, 100_000, seed, reading, **more)


def short_strings(
    shapes: Mapping[str, Floats], seed: int, trials: int, stage: str
) -> dict[tuple[str, str], list[Run]]:
    """Crowds of every shape in every reading: runs by shape and reading."""
    keys = [(shape, reading) for shape in shapes for reading in READINGS]
    tasks = [
        (Short(shapes[shape]), i, READINGS[reading][0], READINGS[reading][1].get("delta"))
        for shape, reading in keys
        for i in range(seed, seed + trials)
    ]
    runs = in_processes(short_trial, tasks, stage)
    return {key: runs[i * trials : (i + 1) * trials] for i, key in enumerate(keys)}
