"""False strings among all strings of a domain: at most alpha of the runs."""

from __future__ import annotations

import numpy as np
import pytest

from deniable.discovery import discover
from deniable.discovery.whole_domain.string_domain import StringWeights
from deniable.simulation import Population, random_strings, simulate, zipf
from tests.surveys import make_survey

RUNS = 40
SURVEY = make_survey(
    """
[questions.s]
kind = "string"
mechanism = "localhash"
epsilon = 3.6
[questions.s.dictionary]
protocol = "prefixes"
max_length = 4
alphabet = "a-j"
""",
    name="calibration",
)


def runs_with_false_strings() -> int:
    """Of 40 crowds of 4,000 with heavy strings, and light ones that cannot be found."""
    wrong = 0
    for seed in range(RUNS):
        rng = np.random.default_rng([9, seed])
        population = Population(random_strings(300, 4, rng, "abcdefghij"), zipf(300))
        reports = simulate(SURVEY, population.draw(4_000, rng), rng=rng)
        found = discover(SURVEY, reports, "s")
        wrong += any(text not in population.values for text in found.strings)
    return wrong


def test_false_strings_are_rare() -> None:
    # At a rate of .05 eight or more of 40 come up once in 1,500.
    assert runs_with_false_strings() < 8


def test_a_domain_counted_too_small_gives_false_strings(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken twin: α divided over a hundredth of the strings."""
    honest = StringWeights.after

    def too_few(strings: int, *rest: object) -> StringWeights:
        return honest(strings // 100, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(StringWeights, "after", too_few)
    assert runs_with_false_strings() > 20
