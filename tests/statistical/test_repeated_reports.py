"""Several reports of each client: intervals cover the share that they promise to cover.

Bit counts are drawn directly, as `experiments.repeated_coverage` does; the full table is there. The
broken twin is the rule that was used before: it inflated all variances by the correlation of a bit
that no client sets.
"""

from __future__ import annotations

from datetime import date
from pathlib import Path

import numpy as np
import pytest
from experiments.repeated_coverage import Crowds, covered

from deniable import store
from deniable.analysis import decode, trend
from deniable.columns import ReportBatch
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
[questions.w]
kind = "string"
epsilon = 3.0
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
    ],
)
def test_intervals_cover(question: str, epsilon: float, repeats: int, crowds: int) -> None:
    """All intervals, and those of the most common value, contain the share that is asked for.

    The limits are .95 ± .025 for all values, and 4.5 standard errors for the most common one: with
    other seeds, less than one false alarm in 10,000 runs. With 1,500 crowds, a coverage of .90 is
    noticed in 999 of 1,000 runs.
    """
    rng = np.random.default_rng([repeats, int(epsilon)])
    drawn = Crowds.of(question, epsilon)
    population, answered, former = [], [], []
    for _ in range(crowds):
        counts, realised = drawn.draw(repeats, rng)
        result = drawn.decoded(counts, repeats)
        population.append(covered(result, drawn.shares))
        answered.append(covered(result.of_respondents(drawn.clients), realised))
        former.append(covered(drawn.formerly(counts, repeats), drawn.shares))
    for inside in (population, answered):
        assert abs(np.mean(inside) - 0.95) < 0.025
        assert abs(np.mean([each[0] for each in inside]) - 0.95) < 4.5 * np.sqrt(0.0475 / crowds)
    if repeats > 1 and epsilon > 2:
        assert np.mean([each[0] for each in former]) < 0.92


def test_trends_cover(tmp_path: Path) -> None:
    """Sixty days with a crowd each, through a store: at most 10 intervals miss the share.

    With coverage .95 there are more in 3 of 10,000 runs. The twin that takes 30 reports per client
    for one misses about 28.
    """
    rng = np.random.default_rng(4)
    days = [date.fromordinal(date(2027, 1, 4).toordinal() + i) for i in range(60)]
    with store.open(f"{tmp_path}/reports.db", create=True) as reports:
        reports.add_survey(SURVEY)
        for i, day in enumerate(days):
            values = {"yes": rng.random(300) < 0.3}
            batch = ReportBatch.concat(list(simulate_days(SURVEY, values, 30, rng=rng)))
            data, key = to_bodies(batch), i.to_bytes(16, "big")
            upload = Upload(key, SURVEY.digest, len(data), data.tobytes(), day, key)
            reports.append([upload])
        wide, wrong = (trend(SURVEY, reports, "yes", reports_per_client=r) for r in (30, 1))
        narrow = trend(SURVEY, reports, "yes", reports_per_client=30, target="respondents")
    missed = [int(((t.low > 0.3) | (t.high < 0.3)).sum()) for t in (wide, wrong)]
    assert missed[0] <= 10 < 18 < missed[1]
    assert (narrow.standard_error < wide.standard_error).all()
    read = Trend.from_json(narrow.to_json())
    assert [part.target for part in read.parts] == ["respondents"] * 60


def test_wrong_settings_are_refused() -> None:
    batch = next(simulate_days(SURVEY, {"w": ["a"] * 10}, 1, rng=np.random.default_rng(0)))
    with pytest.raises(InputError, match="at least 1"):
        decode(SURVEY, batch, "w", ["a"], reports_per_client=0.5)
    with pytest.raises(InputError, match='Did you mean "respondents"'):
        decode(SURVEY, batch, "w", ["a"], target="respondent")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="not available for a subgroup"):
        decode(SURVEY, batch, "w", ["a"], where={"yes": True}, target="respondents")
