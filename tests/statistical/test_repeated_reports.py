"""Several reports of each client: intervals cover the share that they promise to cover.

Bit counts are drawn directly, as `experiments.repeated_coverage` does; the full table is there. The
broken twin is the rule that was used before: it inflated all variances by the correlation of a bit
that no client sets.
"""

from __future__ import annotations

from datetime import date
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from experiments.repeated_coverage import Crowds, covered

from deniable import store
from deniable.analysis import compare, decode, trend
from deniable.columns.batch import to_bodies
from deniable.errors import InputError
from deniable.results import Trend
from deniable.simulation import simulate_days
from deniable.store import Upload
from tests.surveys import make_survey

SURVEY = make_survey(
    """
[questions.yes]
kind = "boolean"
epsilon = 3.0
[questions.pick]
kind = "choice"
options = ["a", "b", "c"]
epsilon = 8.0
[questions.w]
kind = "string"
epsilon = 8.0
cohorts = 8
""",
    name="repeated",
    collect="repeatedly",
)


@pytest.mark.parametrize(
    ("question", "epsilon", "repeats", "crowds"),
    [
        ("boolean", 3.0, 30, 1500),
        ("boolean", 3.0, 1, 1500),
        ("choice", 6.0, 7, 1500),
        ("choice", 2.0, 30, 1500),
        ("string", 8.0, 30, 60),
        ("string, 2 hashes", 8.0, 7, 60),
        ("choice, asymmetric", 4.0, 30, 1500),
        ("choice, asymmetric", 2.0, 7, 1500),
        ("string, asymmetric", 4.0, 30, 60),
        ("string, local hash", 4.0, 7, 40),
        ("string, local hash", 2.0, 30, 20),
    ],
)
def test_intervals_cover(question: str, epsilon: float, repeats: int, crowds: int) -> None:
    """All intervals, and those of the most common value, contain the share in the population.

    The limits are .95 ± .025 for all values, and 4.5 standard errors for the most common one: with
    other seeds, less than one false alarm in 10,000 runs. With 1,500 crowds, a coverage of .90 is
    noticed in 999 of 1,000 runs.
    """
    rng = np.random.default_rng([repeats, int(epsilon)])
    drawn = Crowds.of(question, epsilon)
    population, former, alone = [], [], []
    for _ in range(crowds):
        counts = drawn.draw(repeats, rng)
        result = drawn.decoded(counts, repeats)
        population.append(covered(result, drawn.shares))
        if (old := drawn.formerly(counts, repeats)) is not None:
            former.append(covered(old, drawn.shares))
        elif question.startswith("choice"):
            alone.append(covered(drawn.decoded(counts, 1), drawn.shares))
    assert abs(np.mean(population) - 0.95) < 0.025
    top = np.mean([each[0] for each in population])
    assert abs(top - 0.95) < 4.5 * np.sqrt(0.0475 / crowds)
    if alone:  # the twin takes the reports of a client for those of many
        assert np.mean(alone) < 0.8
    if repeats > 1 and epsilon > 2 and former:
        assert np.mean([each[0] for each in former]) < 0.92


def test_trends_cover(tmp_path: Path) -> None:
    """Forty weeks with a crowd each, through a store: intervals of all questions by week.

    For each question at most 8 of 40 intervals of the first value miss its share; with coverage .95
    there are more in 1 of 1,000 runs. The twin that takes 28 reports per client for one misses 53
    of all 120; with coverage .95, more than 17 are missed in 1 of 10,000 runs.
    """
    rng = np.random.default_rng(4)
    shares = {"yes": [0.3, 0.7], "pick": [0.5, 0.3, 0.2], "w": [0.5, 0.3, 0.2]}
    values = {"yes": [True, False], "pick": ["a", "b", "c"], "w": ["a", "b", "c"]}
    missed: list[int] = []
    monday = date(2027, 1, 4).toordinal()
    with store.open(f"{tmp_path}/reports.db", create=True) as reports:
        reports.add_survey(SURVEY)
        for week in range(40):
            answers = {q: rng.choice(values[q], 200, p=shares[q]) for q in shares}
            for i, batch in enumerate(simulate_days(SURVEY, answers, 28, rng=rng)):
                data, key = to_bodies(batch), (28 * week + i).to_bytes(16, "big")
                when = date.fromordinal(monday + 7 * week + i // 4)
                upload = Upload(key, SURVEY.digest, len(data), data.tobytes(), when, key)
                reports.append([upload])
        for question in shares:
            listed = ["a", "b", "c"] if question == "w" else None
            by_week = partial(trend, SURVEY, reports, question, listed, by="week")
            wide, wrong = (by_week(reports_per_client=r) for r in (28, 1))
            share, size = shares[question][0], len(missed)
            for t in (wide, wrong):
                missed.append(int(((t.low[:, 0] > share) | (t.high[:, 0] < share)).sum()))
            assert missed[size] <= 8, question
    assert sum(missed[::2]) <= 17 < sum(missed[1::2])
    read = Trend.from_json(wide.to_json())
    assert compare(read) == compare(wide)


def test_wrong_settings_are_refused() -> None:
    batch = next(simulate_days(SURVEY, {"w": ["a"] * 10}, 1, rng=np.random.default_rng(0)))
    with pytest.raises(InputError, match="at least 1"):
        decode(SURVEY, batch, "w", ["a"], reports_per_client=0.5)
