"""plan: parameters of a question, and what it will be able to detect."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from deniable import Survey, plan
from deniable.cli.app import app
from deniable.errors import InputError
from deniable.planning import detectable, discoverable
from deniable.results import Plan


def run(*args: str, text: str | None = None) -> Result:
    return CliRunner().invoke(app, args, input=text)


@pytest.fixture(autouse=True)
def _there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


# --- plan ----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "asked, names",
    [({}, {"Bloom filter"}), ({"kind": "boolean"}, {"one bit"}),
     ({"kind": "choice", "options": 9}, {"subset selection", "one bit per option"}),
     ({"unknown": True}, {"prefixes, local hashing", "prefixes, Bloom filter",
                          "n-grams, Bloom filter"}),
     ({"unknown": True, "collect": "repeatedly"},
      {"prefixes, local hashing", "prefixes, Bloom filter", "n-grams, Bloom filter"}),
     ({"unknown": True, "max_length": 3}, {"whole strings, local hashing",
                                           "whole strings, Bloom filter",
                                           "n-grams, Bloom filter"})],
)  # fmt: skip
def test_the_file_does_what_the_plan_says(asked: dict[str, object], names: set[str]) -> None:
    """Thresholds, bytes and ε of the plan are those of the survey that it writes."""
    found = plan(clients=200_000, epsilon=3.0, **asked)  # type: ignore[arg-type]
    assert {design.name for design in found.designs} == names
    assert list(found.designs) == sorted(found.designs, key=lambda d: d.threshold)
    survey = Survey.from_toml(found.survey_file("x.toml"))
    question = survey.questions[0]
    if asked.get("unknown"):
        assert found.threshold == pytest.approx(discoverable(question, 200_000))
    else:
        assert found.threshold == pytest.approx(detectable(question, 200_000))
    assert survey.body_size == found.best.bytes
    loss = question.loss.in_total if asked.get("collect") else question.loss.per_report
    assert 2.99 < loss <= 3.0


@pytest.mark.slow
def test_the_third_follows_from_two() -> None:
    asked = {"unknown": True, "max_length": 8, "alphabet": "a-z"}
    found = plan(clients=100_000, detect=0.01, **asked)  # type: ignore[arg-type]
    assert found.threshold <= 0.01
    less = plan(clients=100_000, epsilon=found.epsilon - 0.01, **asked)  # type: ignore[arg-type]
    assert less.threshold > 0.01, "ε is the least, in hundredths"
    crowd = plan(epsilon=2.0, detect=0.01, **asked)  # type: ignore[arg-type]
    assert crowd.threshold == pytest.approx(0.01, rel=1e-4)
    assert plan(epsilon=2.0, clients=crowd.clients // 2, **asked).threshold > 0.01  # type: ignore[arg-type]


@pytest.mark.slow
def test_more_is_found_with_more() -> None:
    found = plan(clients=100_000, epsilon=3.0, unknown=True)
    assert (np.diff(found.thresholds, axis=0) < 0).all(), "with ε"
    assert (np.diff(found.thresholds, axis=1) < 0).all(), "with clients"
    assert (np.diff(found.found, axis=1) >= 0).all()
    words, random = (plan(clients=1e6, epsilon=4.0, unknown=True, random=r) for r in (False, True))
    assert words.threshold < random.threshold
    assert words.best.found["100 Zipf(1)"] > random.best.found["100 Zipf(1)"]


@pytest.mark.slow
def test_a_plan_travels_and_draws_itself(tmp_path: Path) -> None:
    found = plan(clients=1e5, epsilon=2.0, unknown=True)
    again = Plan.from_json(found.to_json())
    assert again.designs == found.designs
    assert np.array_equal(again.found, found.found)
    assert again.to_arrow().num_rows == len(found.epsilons) * len(found.sizes)
    assert "strings that nobody listed" in str(found)


@pytest.mark.parametrize(
    "asked, words",
    [({"clients": 1e5}, "two of clients"),
     ({"clients": 1e5, "epsilon": 1.0, "detect": 0.1}, "two of clients"),
     ({"clients": 0, "epsilon": 1.0}, "between 1 and 10"),
     ({"clients": 1e5, "epsilon": 99.0}, "epsilon must be between"),
     ({"clients": 1e5, "detect": 1.5}, "between 0 and 1"),
     ({"clients": 1000, "detect": 1e-4}, "ask more clients"),
     ({"clients": 1e5, "epsilon": 1.0, "kind": "date"}, "kind must be"),
     ({"clients": 1e5, "epsilon": 1.0, "kind": "choice", "options": 1}, "2 options"),
     ({"clients": 1e5, "epsilon": 1.0, "candidates": 0}, "candidates must be at least 1"),
     ({"clients": 1e5, "epsilon": 1.0, "length": 0, "unknown": True}, "length must be above 0")],
)  # fmt: skip
def test_impossible_plans(asked: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        plan(**asked)  # type: ignore[arg-type]


@pytest.mark.slow
def test_plan_writes_a_survey_and_pictures(tmp_path: Path) -> None:
    got = run("plan", "--clients", "1e6", "--detect", "0.2%", "--unknown", "--write", "pages.toml",
              "-o", "plan.svg", "-o", "plan.csv", "-o", "plan.html")  # fmt: skip
    assert got.exit_code == 0, got.output
    survey = Survey.load("pages.toml")
    assert survey.name == "pages"
    assert f"epsilon = {survey.questions[0].loss.per_report:.2f}" in Path("pages.toml").read_text()
    assert "prefixes, local hashing" in got.stdout and "exponential(25)" in got.stdout
    assert "<svg" in Path("plan.svg").read_text()
    assert Path("plan.csv").read_text().startswith("epsilon,clients,threshold,found of 100 Zipf(1)")
    assert "Zipf(1.2)" in Path("plan.html").read_text()
    again = run("plan", "--clients", "1e6", "--epsilon", "1", "--write", "pages.toml")
    assert again.exit_code == 1
    assert "--force" in again.output


@pytest.mark.slow
def test_plan_as_json() -> None:
    told = Plan.from_json(run("plan", "--clients", "1,000", "--epsilon", "1", "--json").stdout)
    assert (told.clients, told.epsilon) == (1000, 1.0)


@pytest.mark.parametrize(
    "args, code, words",
    [((), 2, "give two of --clients"), (("--clients", "many", "--epsilon", "1"), 2, "such as 1e6"),
     (("--clients", "0", "--epsilon", "1"), 2, "from 1 to 10^12"),
     (("--clients", "10", "--detect", "200%"), 2, "such as 0.001 or 0.1%"),
     (("--clients", "10", "--detect", "1%"), 1, "ask more clients"),
     (("--clients", "10", "--epsilon", "1", "--unknown", "--alphabet", "z-a"), 1, "backwards")],
)  # fmt: skip
def test_wrong_plans_are_explained(args: tuple[str, ...], code: int, words: str) -> None:
    got = run("plan", *args)
    assert got.exit_code == code, got.output
    assert words.replace("such as 1e6", "1000000 or 1e6") in got.output
