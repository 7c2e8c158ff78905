"""False strings: at most alpha of the runs, over every candidate that was looked at."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from deniable.discovery import discover
from deniable.discovery.ngrams import peeling
from deniable.simulation import Population, random_strings, simulate, uniform
from tests.surveys import make_survey

RUNS = 15
SURVEY = make_survey(
    """
[questions.s]
kind = "string"
p = 0.25
q = 0.6
bits = 64
hashes = 2
cohorts = 16

[questions.s.dictionary]
protocol = "ngrams"
max_length = 4
alphabet = "a-z"
gram = 2
""",
    name="calibration",
)


def runs_with_false_strings() -> int:
    """Of 15 crowds of 20,000 with thirty equally common strings: hard to find, easy to mistake."""
    wrong = 0
    for seed in range(RUNS):
        rng = np.random.default_rng([5, seed])
        population = Population(random_strings(30, 4, rng), uniform(30))
        reports = simulate(SURVEY, population.draw(20_000, rng), rng=rng)
        found = discover(SURVEY, reports, "s")
        wrong += any(text not in population.values for text in found.strings)
    return wrong


def test_false_strings_are_rare() -> None:
    # At a rate of .05 five or more of 15 come up once in 1,600.
    assert runs_with_false_strings() < 5


def test_without_counting_candidates_false_strings_are_common(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The broken twin: every candidate tested as if it were the only one."""

    def uncounted(height: float, odds: Any, z: Any) -> Any:
        return np.full(len(odds), honest(height, odds, z).max(initial=0.0))

    honest = peeling.cutoffs_at
    monkeypatch.setattr(peeling, "cutoffs_at", uncounted)
    assert runs_with_false_strings() > 10
