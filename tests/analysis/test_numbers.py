"""Number questions through every verb: simulate, decode, trend, associate, and the commands."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from deniable import decode, simulate, store, trend
from deniable.cli.app import app
from deniable.columns.batch import to_bodies
from deniable.errors import InputError, LossyAnswerWarning
from deniable.render import view_of
from deniable.render.html import report
from deniable.results import Histogram, Result
from deniable.simulation.number_populations import numbers_from_spec
from deniable.store import Upload
from tests.surveys import make_survey, survey_toml

QUESTIONS = """
[questions.latency]
kind = "number"
epsilon = 4.0
low = 0
high = 100
bins = 10
unit = "ms"
[questions.mobile]
kind = "boolean"
epsilon = 4.0
"""
SURVEY = make_survey(QUESTIONS)


def answers(seed: int, shift: float = 0.0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    mobile = rng.random(20_000) < 0.4
    latency = np.clip(rng.normal(40.0 + shift + 20.0 * mobile, 10.0), 0.0, 99.9)
    return {"latency": latency, "mobile": mobile}


def holds(quantity: object, value: float) -> bool:
    return quantity.low <= value <= quantity.high  # type: ignore[attr-defined,no-any-return]


def test_a_number_is_decoded_as_a_histogram() -> None:
    given = answers(1)
    found = decode(SURVEY, simulate(SURVEY, given, rng=1), "latency")
    assert isinstance(found, Histogram) and found.unit == "ms"
    assert np.allclose(found.edges, np.arange(0, 101, 10))
    assert holds(found.mean, given["latency"].mean())
    assert holds(found.quantile(0.9), np.quantile(given["latency"], 0.9))
    assert np.allclose(np.sqrt(np.diagonal(found.covariance)), found.standard_error)


def test_a_number_in_a_subgroup() -> None:
    given = answers(2)
    reports = simulate(SURVEY, given, rng=2)
    found = decode(SURVEY, reports, "latency", where={"mobile": True})
    assert isinstance(found, Histogram)
    mobile = given["latency"][given["mobile"]]
    assert holds(found.mean, mobile.mean()) and holds(found.median, np.median(mobile))
    assert found.mean.low > decode(SURVEY, reports, "latency", where={"mobile": False}).mean.low  # type: ignore[attr-defined]
    slow = decode(SURVEY, reports, "mobile", where={"latency": ["70 to 80", "80 to 90"]})
    assert slow.low[0] > 0.5
    with pytest.raises(InputError, match="not an answer"):
        decode(SURVEY, reports, "mobile", where={"latency": "70"})


def test_numbers_over_time(tmp_path: Path) -> None:
    with store.open(f"{tmp_path}/reports.db", create=True) as reports:
        reports.add_survey(SURVEY)
        for day, shift in ((1, 0.0), (2, 15.0)):
            data = to_bodies(simulate(SURVEY, answers(day, shift), rng=day))
            key = bytes([day] * 16)
            body = data.tobytes()
            upload = Upload(key, SURVEY.digest, len(data), body, date(2025, 3, day), key)
            reports.append([upload])
        found = trend(SURVEY, reports, "latency")
    means = found.numbers("mean")
    assert 10 < means[1, 0] - means[0, 0] < 20
    again = Result.from_json(found.to_json())
    assert (again.numbers("median") == found.numbers("median")).all()  # type: ignore[attr-defined]
    assert any("mean" in note and "ms" in note for note in view_of(found).notes())
    page = report([found], survey=SURVEY)
    assert "median, 2025-03-02" in page


def test_simulations_warn_about_numbers_outside_the_bins() -> None:
    with pytest.warns(LossyAnswerWarning, match="outside 0 to 100.*The bins are 0 to 10"):
        simulate(SURVEY, {"latency": [150.0], "mobile": [True]})
    with pytest.raises(InputError, match="outside 0 to 100"):
        simulate(SURVEY, {"latency": [150.0], "mobile": [True]}, strict=True)
    with pytest.raises(InputError, match="must be a number"):
        simulate(SURVEY, {"latency": [True], "mobile": [True]})


def test_populations_of_numbers() -> None:
    lognormal = np.array(numbers_from_spec("lognormal:median=100,sigma=0.5").values)
    assert np.median(lognormal) == pytest.approx(100, rel=1e-3)
    assert lognormal.mean() == pytest.approx(100 * np.exp(0.125), rel=0.01)
    for wrong in ("zipf:n=3", "normal:median=3", "normal:mean=x", "normal:sd=1e308"):
        with pytest.raises(InputError):
            numbers_from_spec(wrong)


def test_commands_take_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    def run(*words: str, code: int = 0) -> str:
        done = CliRunner().invoke(app, words)
        assert done.exit_code == code, done.output
        return done.output

    run("init", "s.toml", "--number", "latency=0,50,5", "--no-ask")
    assert "bins = 5" in Path("s.toml").read_text()
    assert "expected --number" in run("init", "t.toml", "--number", "latency", "--no-ask", code=2)
    for wrong in ("5,1", "0,1,1", "0,1,2.5"):
        run("init", "t.toml", "--number", f"latency={wrong}", "--no-ask", code=1)
    for wrong in ("a,b", "0,inf"):
        run("init", "t.toml", "--number", f"latency={wrong}", "--no-ask", code=2)
    Path("s.toml").write_text(survey_toml(QUESTIONS))
    assert "numbers outside count in the first or last bin" in " ".join(
        run("check", "s.toml").split()
    )
    Path("a.csv").write_text("latency,mobile\n10,yes\n,no\n1e1,\n")
    run("simulate", "s.toml", "--values", "a.csv", "-o", "r.parquet")
    Path("b.csv").write_text("latency,mobile\nten,yes\n")
    done = CliRunner().invoke(app, ["simulate", "s.toml", "--values", "b.csv", "-o", "r.parquet"])
    assert done.exit_code == 1
    Path("m.csv").write_text("value,weight\nyes,1\nno,1\n")
    crowd = ("--population", "latency=normal:mean=50,sd=10", "--population", "mobile=m.csv")
    run("simulate", "s.toml", *crowd, "--clients", "5000", "--seed", "1", "-o", "r.parquet")
    found = json.loads(run("decode", "s.toml", "r.parquet", "--question", "latency", "--json"))
    assert found["kind"] == "Histogram" and abs(found["mean"]["estimate"] - 50) < 5
    run("decode", "s.toml", "r.parquet", "--question", "latency", "-o", "h.png", "-o", "h.html")
    assert "one bit per bin" in run("plan", "--kind", "number", "--options", "8",
                                    "--epsilon", "2", "--clients", "10000")  # fmt: skip
