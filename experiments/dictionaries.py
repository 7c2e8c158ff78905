"""What the trials with unknown dictionaries share: surveys, a run, and its line of numbers."""

from __future__ import annotations

import resource
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from deniable.discovery import discover
from deniable.results import Discovery
from deniable.simulation import Population, random_strings, simulate
from deniable.simulation.populations import Weights
from deniable.simulation.trials import hellinger
from deniable.survey import Survey
from deniable.survey.author import read_toml

HEAD = """
name = "trial"
version = 1
owner = "experiments"
description = "an unknown dictionary"
expires = 2999-12-31
collect = "once"

[questions.value]
kind = "string"
"""
NGRAMS = """
p = {p}
q = {q}
bits = 128
hashes = 2
cohorts = 64

[questions.value.dictionary]
protocol = "ngrams"
max_length = {length}
alphabet = "{alphabet}"
gram = {gram}
grams = {grams}
overlap = {overlap}
"""
PREFIXES = """
mechanism = "localhash"
epsilon = {epsilon}

[questions.value.dictionary]
protocol = "prefixes"
max_length = {length}
alphabet = "{alphabet}"
"""

AS_RUN = 0.04
"""The pair threshold that the authors' published program sets, whatever δ it has computed."""
READINGS: dict[str, tuple[str, dict[str, float]]] = {
    "paper, δ = .04 as its program": ("paper", {"delta": AS_RUN}),
    "paper, δ by its formula": ("paper", {}),
    "default": ("fused", {}),
}


def ngram_survey(
    *,
    q: float,
    length: int,
    gram: int,
    alphabet: str,
    p: float = 0.25,
    grams: int = 2,
    overlap: bool = False,
) -> Survey:
    """The paper's parameters: 128 bits, two hashes, f = 0, two n-grams a report."""
    settings = NGRAMS.format(
        p=p, q=q, length=length, gram=gram, alphabet=_quoted(alphabet), grams=grams,
        overlap=str(overlap).lower(),
    )  # fmt: skip
    return read_toml(HEAD + settings)


def prefix_survey(*, epsilon: float, length: int, alphabet: str) -> Survey:
    """One report of a prefix by local hashing, with all of epsilon."""
    settings = PREFIXES.format(epsilon=epsilon, length=length, alphabet=_quoted(alphabet))
    return read_toml(HEAD + settings)


def _quoted(alphabet: str) -> str:
    return alphabet.replace("\\", "\\\\")


@dataclass(frozen=True)
class Run:
    """One run: strings found that are there, strings found that are not, and what it took."""

    found: int
    false: int
    candidates: int
    covered: float
    seconds: float
    result: Discovery


def run(
    survey: Survey, population: Population, reports: int, seed: int, reading: str, **options: object
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
    return Run(int(there.sum()), int((~there).sum()), result.candidates, covered, seconds, result)


def distance(population: Population, found: Discovery) -> float:
    """Hellinger distance of what was found from the truth."""
    truth = dict(zip(population.values, population.weights.tolist(), strict=True))
    return hellinger(truth, dict(zip(found.strings, found.estimate.tolist(), strict=True)))


def report(name: str, runs: list[Run]) -> None:
    """Print one line: mean, spread and false strings."""
    found = np.array([r.found for r in runs])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"{name:34s} found {found.mean():.1f} ({found.min()} to {found.max()}), runs with a false "
        f"string {sum(r.false > 0 for r in runs)} of {len(runs)}, candidates "
        f"{int(np.median([r.candidates for r in runs])):,}, coverage "
        f"{np.nanmean([r.covered for r in runs]):.2f}, "
        f"{np.median([r.seconds for r in runs]):.1f} s, peak {peak:.1f} GB",
        flush=True,
    )


def short_strings(
    shapes: Mapping[str, Weights], seed: int, trials: int, reports: int = 100_000
) -> list[dict[str, Any]]:
    """Crowds with random strings of six letters in every reading: found, false, distance.

    The paper's parameters of section V's first trial and of Appendix B.
    """
    survey = ngram_survey(q=0.75, length=6, gram=2, alphabet="a-z")
    rows = []
    for shape, weights in shapes.items():
        for reading, (way, more) in READINGS.items():
            runs, distances = [], []
            for trial in range(seed, seed + trials):
                strings = random_strings(100, 6, np.random.default_rng([74, trial]))
                population = Population(strings, weights)
                runs.append(run(survey, population, reports, trial, way, **more))
                distances.append(distance(population, runs[-1].result))
            found = [r.found for r in runs]
            rows.append(
                {"weights": shape, "reading": reading, "found": float(np.mean(found)),
                 "least": min(found), "most": max(found), "Hellinger": float(np.mean(distances)),
                 "runs with a false string": sum(r.false > 0 for r in runs),
                 "seconds": float(np.median([r.seconds for r in runs]))}
            )  # fmt: skip
            print(rows[-1], flush=True)
    return rows
