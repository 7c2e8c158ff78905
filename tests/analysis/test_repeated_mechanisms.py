"""Joint tables of mechanisms for repeated collection: by likelihood, and from counts."""

from __future__ import annotations

import numpy as np
import pytest

from deniable import associate, simulate
from deniable.analysis import count
from tests.surveys import make_survey

SURVEY = make_survey(
    """
[questions.pick]
kind = "choice"
options = ["a", "b"]
epsilon = 5.0
epsilon_per_report = 4.0
[questions.word]
kind = "string"
mechanism = "localhash"
values = 31
families = 8
epsilon = 5.0
epsilon_per_report = 4.0
""",
    name="tables",
    collect="repeatedly",
)
TABLE = np.array([[0.4, 0.1], [0.1, 0.4]])
WORDS = ["x", "y"]


@pytest.mark.slow
def test_joint_tables_by_likelihood_and_from_counts() -> None:
    """Each cell within .05: five standard errors or more."""
    rng = np.random.default_rng(5)
    cell = rng.choice(4, 8000, p=TABLE.ravel())
    answers = {
        "pick": [["a", "b"][i // 2] for i in cell],
        "word": [WORDS[i % 2] for i in cell],
    }
    reports = simulate(SURVEY, answers, rng=rng)
    settings = {"candidates": {"word": WORDS}}
    exact = associate(SURVEY, reports, ["pick", "word"], **settings)
    counts = count(SURVEY, reports, ["pick", "word"])
    counted = associate(SURVEY, counts, ["pick", "word"], **settings)
    for result in (exact, counted):
        assert np.abs(np.asarray(result.table)[:2, :2] - TABLE).max() < 0.05
