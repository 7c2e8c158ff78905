"""The command as a person types it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from deniable.cli.app import app
from deniable.planning import detectable, noise_sd
from deniable.survey import Survey
from tests.surveys import survey_toml
from tests.vectors import make


def run(*args: str) -> Result:
    return CliRunner().invoke(app, args)


ONCE = str(make.HERE / "survey-once.toml")
REPEATEDLY = str(make.HERE / "survey-repeatedly.toml")


def test_check_prints_what_is_promised() -> None:
    got = run("check", ONCE)
    assert got.exit_code == 0
    for expected in ("15.69", "A client answers once", "2,880 groups",
                     "75 bytes on its own, 55 bytes in",
                     "Detection threshold", "about one client in 2,880"):  # fmt: skip
        assert expected in got.output, got.output


def test_check_names_the_budget_that_allows_several_answers(tmp_path: Path) -> None:
    generous = tmp_path / "generous.toml"
    generous.write_text("budget = 32.0\n" + Path(ONCE).read_text())
    got = run("check", str(generous)).output
    assert "a second answer is refused" not in got
    assert "All reports that the budget allows: ε = 32." in got


def test_check_in_plain_words() -> None:
    assert "odds of any guess" in run("check", REPEATEDLY).output


def test_check_publishes_for_testing(tmp_path: Path) -> None:
    published = tmp_path / "testing.json"
    got = run("check", ONCE, "--testing", "-o", str(published))
    assert got.exit_code == 0 and "FOR TESTING" in got.output
    assert Survey.load(published) == Survey.load(ONCE).for_testing()
    again = run("check", str(published), "--json")
    assert json.loads(again.output)["testing"] is True
    assert "testing" not in json.loads(run("check", ONCE, "--json").output)


def test_check_publishes(tmp_path: Path) -> None:
    published = tmp_path / "s.json"
    assert run("check", ONCE, "-o", str(published)).exit_code == 0
    assert Survey.load(published) == Survey.load(ONCE)
    assert run("check", str(published)).exit_code == 0


def test_check_as_json() -> None:
    found = json.loads(run("check", ONCE, "--json").output)
    assert found["digest"] == Survey.load(ONCE).digest.hex()
    assert found["forever"] is None
    assert found["questions"][0]["detectable"]["1000000"] == pytest.approx(
        detectable(Survey.load(ONCE).questions[0], 10**6)
    )


def test_mistakes_are_printed_without_a_traceback(tmp_path: Path) -> None:
    bad = tmp_path / "bad.toml"
    bad.write_text(Path(ONCE).read_text().replace("max_length", "maxlength"))
    got = run("check", str(bad))
    assert got.exit_code == 1
    assert 'Did you mean "max_length"' in got.output
    assert "Traceback" not in got.output


@pytest.mark.parametrize("args", [["check"], ["check", "/none"], ["chekc"], ["check", "--nope"]])
def test_wrong_calls_exit_with_2(args: list[str]) -> None:
    assert run(*args).exit_code == 2


def test_binary_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_bytes(b"\xff\xfe\x00")
    got = run("check", str(tmp_path / "x.toml"))
    assert got.exit_code == 1
    assert "not a text file" in got.output


ODD = {
    "long grams": 'epsilon = 4.0\n[questions.w.dictionary]\nprotocol = "ngrams"\nmax_length = 24\n'
    'gram = 12\nalphabet = "bytes"',
    "more hashes than bits": "bits = 128\nhashes = 256\np = 0.25\nq = 0.75",
    "a huge loss": "bits = 1024\nhashes = 400\np = 0.25\nq = 0.75",
}


@pytest.mark.parametrize("body", ODD.values(), ids=ODD.keys())
def test_check_survives_odd_surveys(body: str, tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text(survey_toml(f'[questions.w]\nkind = "string"\n{body}\n'))
    got = run("check", str(path))
    assert got.exit_code == 0, got.output
    assert "whole survey" in got.output


def test_check_never_overwrites_its_source() -> None:
    before = Path(ONCE).read_text()
    assert run("check", ONCE, "-o", ONCE).exit_code == 2
    assert Path(ONCE).read_text() == before


def test_help_has_an_example() -> None:
    assert "Examples:\n    deniable check" in run("check", "--help").output


def test_noise_is_the_documented_formula() -> None:
    """σ = sqrt(r(1−r)/h)/(q*−p*)/√N with r = p* + (q*−p*)·(1−(1−1/k)^h)."""
    mechanism = Survey.load(ONCE).questions[0].protocol.mechanisms[0]
    r = 0.25 + 0.5 * (1 - (1 - 1 / 128) ** 2)
    assert noise_sd(mechanism, 10**6) == pytest.approx((r * (1 - r) / 2) ** 0.5 / 0.5 / 1000)
