"""Several reports of each client: standard errors say so, or coverage falls."""

from __future__ import annotations

import numpy as np
import pytest

from deniable.analysis import decode
from deniable.columns import ReportBatch
from deniable.errors import InputError
from deniable.simulation import Population, simulate_days, zipf
from tests.surveys import make_survey

SURVEY = make_survey(
    """
[questions.w]
kind = "string"
p = 0.1
q = 0.9
f = 0.5
cohorts = 8
[questions.c]
kind = "choice"
options = ["a", "b", "c", "d", "e"]
p = 0.1
q = 0.9
f = 0.5
""",
    name="repeated",
    collect="repeatedly",
)
DAYS = 5


def coverage(question: str, reports_per_client: float) -> float:
    """Share of 95% intervals that hold the truth, over 600 strings or 300 options."""
    rng = np.random.default_rng(8)
    values = tuple("abcde") if question == "c" else tuple(f"w{i}" for i in range(20))
    truth = Population(values, zipf(len(values)))
    candidates = None if question == "c" else values
    inside = 0
    rounds = 60 if question == "c" else 30
    for _ in range(rounds):
        days = simulate_days(SURVEY, {question: truth.draw(3000, rng)}, DAYS, rng=rng)
        found = decode(
            SURVEY, ReportBatch.concat(list(days)), question, candidates,
            reports_per_client=reports_per_client,
        )  # fmt: skip
        inside += int(((found.low <= truth.weights) & (truth.weights <= found.high)).sum())
    return inside / rounds / len(values)


def test_intervals_cover_when_told_and_not_otherwise() -> None:
    """95% ± 3.8% (3 sd of 300). The twin that takes reports for clients covers far less."""
    assert coverage("c", DAYS) > 0.91
    assert coverage("c", 1.0) < 0.85


def test_strings_cover_too() -> None:
    """Here the scatter between bits shows most of it even when it is not told."""
    assert coverage("w", DAYS) > 0.92


def test_fewer_than_one_report_is_refused() -> None:
    batch = next(simulate_days(SURVEY, {"w": ["a"] * 10}, 1, rng=np.random.default_rng(0)))
    with pytest.raises(InputError, match="at least 1"):
        decode(SURVEY, batch, "w", ["a"], reports_per_client=0.5)
