"""Long work says how far it has come, and can be stopped."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

from deniable import Survey, associate, decode, discover, simulate
from deniable.compute.progress import Progress
from deniable.simulation import Population, zipf
from tests.surveys import survey_toml

HEAD = survey_toml(
    """
[questions.a]
kind = "boolean"
epsilon = 1.0
[questions.c]
kind = "choice"
options = ["x", "y", "z"]
epsilon = 1.0
[questions.w]
kind = "string"
epsilon = 4.0
{mechanism}
[questions.w.dictionary]
protocol = "{protocol}"
max_length = {length}
alphabet = "a-c"
{more}
""",
    name="progress",
)
WHOLE = Survey.from_toml(
    HEAD.format(mechanism='mechanism = "localhash"', protocol="prefixes", length=3, more="")
)
LEVELS = Survey.from_toml(
    HEAD.format(mechanism="", protocol="prefixes", length=3, more="levels = [1, 2, 3, 3]")
)
NGRAMS = Survey.from_toml(HEAD.format(mechanism="", protocol="ngrams", length=4, more=""))


def reports(survey: Survey, clients: int = 3000) -> object:
    rng = np.random.default_rng(1)
    words = Population(("abc", "ba", "cab"), zipf(3))
    answers = {
        "a": rng.random(clients) < 0.3, "c": rng.choice(["x", "y"], clients),
        "w": words.draw(clients, rng),
    }  # fmt: skip
    return simulate(survey, answers, rng=rng)


class Heard:
    """A listener that remembers."""

    def __init__(self) -> None:
        self.stages: dict[str, list[float]] = defaultdict(list)

    def __call__(self, stage: str, done: float) -> None:
        self.stages[stage].append(done)


@pytest.mark.parametrize(
    "survey, stage",
    [(WHOLE, "looking at every string"), (LEVELS, "searching, width 1,000"),
     (NGRAMS, "passes over falling frequencies")],
    ids=["whole", "levels", "ngrams"],
)  # fmt: skip
def test_discovery_tells_its_stages(survey: Survey, stage: str) -> None:
    heard = Heard()
    discover(survey, reports(survey), "w", progress=heard)
    assert heard.stages["reading reports"][-1] == 1.0
    assert heard.stages[stage][0] == 0.0
    assert all(0 <= done <= 1 for each in heard.stages.values() for done in each)
    assert heard.stages[stage] == sorted(heard.stages[stage])


def test_a_fit_tells_how_near_it_is() -> None:
    heard = Heard()
    associate(WHOLE, reports(WHOLE, 50_000), ["a", "c"], progress=heard, nats=1e-6)
    near = heard.stages["fitting the table"]
    assert len(near) > 1 and near == sorted(near) and near[0] == 0.0


def test_a_listener_that_raises_stops_the_work() -> None:
    def stop(stage: str, done: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        decode(WHOLE, reports(WHOLE), "a", progress=stop)


def test_nobody_listens_afterwards() -> None:
    heard = Heard()
    listener: Progress = heard
    decode(WHOLE, reports(WHOLE), "a", progress=listener)
    before = len(heard.stages["reading reports"])
    decode(WHOLE, reports(WHOLE), "a")
    assert len(heard.stages["reading reports"]) == before
