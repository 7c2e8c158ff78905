"""What `deniable check` and `deniable plan` say about privacy and detection is true."""

from __future__ import annotations

import datetime as dt
import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from deniable import Client, Survey
from deniable.cli.app import app
from deniable.client.ledger import Ledger
from deniable.errors import BudgetExceeded
from deniable.planning.in_words import outlook
from deniable.survey.detection import NOT_TESTED
from tests.surveys import survey_toml

HEAD = """\
name = "s"
version = 1
owner = "me"
description = "why"
expires = {expires}
collect = "{collect}"
{budget}
[questions.ads]
kind = "boolean"
{noise}
"""
REFUSED = "A client answers once; a second answer is refused."
CHANGED = "A client whose answers change soon refuses to answer"
ALLOWED = "All reports that the budget allows: ε = "


def survey_text(noise: str = "epsilon = 1.0", collect: str = "once", budget: str = "") -> str:
    expires = dt.date.today() + dt.timedelta(365)
    return HEAD.format(noise=noise, collect=collect, budget=budget, expires=expires)


def check(path: Path, text: str, *args: str) -> str:
    file = path / "s.toml"
    file.write_text(text, encoding="utf-8")
    got = CliRunner().invoke(app, ["check", str(file), *args])
    assert got.exit_code == 0, got.output
    return " ".join(got.output.split())


@pytest.mark.parametrize("budget, refused", [("", True), ("budget = 1.9", True),
                                             ("budget = 2.0", False)])  # fmt: skip
@pytest.mark.parametrize("noise", ["epsilon = 1.0", "p = 0.25\nq = 0.75\nf = 0.2\nepsilon = 1.0"])
def test_check_says_whether_a_client_answers_once(
    tmp_path: Path, noise: str, budget: str, refused: bool
) -> None:
    """With permanent noise a second report may cost less than the first; the client decides."""
    told = check(tmp_path, text := survey_text(noise, budget=budget))
    client = Client(Survey.from_toml(text), secret=bytes(32), ledger=Ledger())
    client.answer({"ads": True})
    try:
        client.answer({"ads": True})
    except BudgetExceeded:
        assert REFUSED in told and ALLOWED not in told
    else:
        assert ALLOWED in told and REFUSED not in told
    if "f" not in noise.split():
        assert (REFUSED in told) == refused
    assert "further report" not in told and "no limit" not in told


def test_check_says_what_a_budget_allows_repeatedly(tmp_path: Path) -> None:
    told = check(tmp_path, survey_text(collect="repeatedly"))
    assert "All reports about one set of answers: ε = 1." in told
    assert CHANGED in told and ALLOWED not in told
    told = check(tmp_path, survey_text(collect="repeatedly", budget="budget = 3.0"))
    assert f"{ALLOWED}3." in told and CHANGED not in told


def test_shuffling_is_only_said_to_help_reports_that_are_collected_once(tmp_path: Path) -> None:
    once, repeatedly = (check(tmp_path, survey_text(collect=c)) for c in ("once", "repeatedly"))
    assert "Seen only in a batch" in once and "Seen only" not in repeatedly
    assert "after one report." in once and "after all reports" in repeatedly


def test_a_large_epsilon_warns(tmp_path: Path) -> None:
    assert "Warning" not in check(tmp_path, survey_text("epsilon = 2.9"))
    assert "warnings" not in json.loads(check(tmp_path, survey_text("epsilon = 2.9"), "--json"))
    weak = check(tmp_path, survey_text("epsilon = 4.0"))
    assert "Warning: ads: ε = 4 per report hardly hides a yes-or-no answer" in weak
    assert "odds of up to 55 to 1" in weak and "no protection" not in weak
    assert "no protection" in check(tmp_path, survey_text("epsilon = 8.0"))
    none = check(tmp_path, survey_text("epsilon = 800.0"))
    assert "Warning: ε = 22.19 per report is practically no protection" in none
    assert (
        len(json.loads(check(tmp_path, survey_text("epsilon = 800.0"), "--json"))["warnings"]) == 3
    )
    total = check(tmp_path, survey_text("epsilon = 9.0", collect="repeatedly"))
    assert "Warning: ε = 9 in total is practically no protection" in total


def test_thresholds_are_those_of_the_given_clients_only(tmp_path: Path) -> None:
    """Nothing speaks of other numbers, and no threshold is below one client or above all."""
    told = check(tmp_path, survey_text("epsilon = 12.0"), "--clients", "50")
    assert "│ 50 " in told and "million" not in told and "│ 1,000,000" not in told
    assert "2.00%" in told, "one client in 50, though the noise alone would allow fewer"
    few = check(tmp_path, survey_text("epsilon = 0.1"), "--clients", "10")
    assert "none" in few and "not even a value that all clients have" in few


def test_one_group_and_one_byte(tmp_path: Path) -> None:
    """A boolean has no clear fields, and its report is one byte."""
    told = check(tmp_path, survey_text())
    assert "1 byte in a batch" in told and "groups" not in told
    string = survey_text().replace('"boolean"', '"string"')
    assert "whatever the answer: cohort. This divides the clients into 64 groups" in check(
        tmp_path, string
    )


@pytest.mark.slow
def test_plan_with_too_few_clients_or_too_large_an_epsilon() -> None:
    few = CliRunner().invoke(app, ["plan", "--clients", "1000", "--epsilon", "0.1"]).output
    assert "Not even a value that all clients have is detected" in few
    fewer = CliRunner().invoke(app, ["plan", "--clients", "999", "--epsilon", "4"]).output
    assert NOT_TESTED in " ".join(fewer.split()) and "is detected half" not in fewer
    large = CliRunner().invoke(app, ["plan", "--clients", "1e4", "--epsilon", "9"]).output
    assert "Warning: ε = 9 per report is practically no protection" in large


def test_check_names_a_range_that_was_meant_as_a_hyphen(tmp_path: Path) -> None:
    question = """
[questions.page]
kind = "string"
epsilon = 3.0
dictionary = {{ protocol = "prefixes", max_length = 9, alphabet = "{}" }}
"""
    told = check(tmp_path, survey_text() + question.format("a-z.-_"))
    note = "Note: in the alphabet of page, '.-_' is a range of 50 characters (put a literal hyphen"
    assert note in told
    assert "is a range" not in check(tmp_path, survey_text() + question.format("a-z0-9._-"))


def test_few_cohorts_warn_before_anybody_answers(tmp_path: Path) -> None:
    question = (
        '[questions.page]\nkind = "string"\nepsilon = 2.0\nbits = 64\nhashes = 2\ncohorts = {}'
    )
    assert NOT_TESTED not in check(tmp_path, survey_toml(question.format(8)))
    told = check(tmp_path, survey_toml(question.format(7)))
    assert f"Warning: page: {NOT_TESTED}" in told and "(–: nothing is tested)" in told
    told = check(tmp_path, survey_toml(question.format(8)), "--clients", "999")
    assert f"Note: {NOT_TESTED}" in told


def test_thresholds_of_unknown_strings_name_the_extra_that_they_need(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    power = "deniable.inference.power.prefix_"
    monkeypatch.delitem(sys.modules, power + "prediction", raising=False)
    monkeypatch.delitem(sys.modules, power + "search", raising=False)
    monkeypatch.setitem(sys.modules, "scipy.special", None)
    dictionary = 'protocol = "prefixes"\nalphabet = "a-z"\nmax_length = 12'
    noise = "epsilon = 4.0\n[questions.page.dictionary]\n" + dictionary
    text = survey_text(noise).replace("boolean", "string").replace(".ads", ".page")
    told = check(tmp_path, text)
    assert "needs scipy: pip install 'deniable[analysis]'" in " ".join(told.split())
    assert "Detection threshold of discover" not in told
    page = Survey.load(tmp_path / "s.toml").question("page")
    assert "if enough clients have them (the detection" in outlook(page, 10_000)


@pytest.mark.parametrize("noise", ["epsilon = 3.0", "epsilon = 3.0\nepsilon_per_report = 2.0"])
def test_check_shows_what_a_loss_per_report_is_worth(tmp_path: Path, noise: str) -> None:
    """The chosen row is what a survey with that loss has; the others are what one would have."""
    text = survey_text(noise, collect="repeatedly")
    told = json.loads(check(tmp_path, text, "--json"))["questions"][0]["repeated"]
    assert sum(row["chosen"] for row in told) == 1
    for row in told:
        own = noise if row["chosen"] else f"epsilon = 3.0\nepsilon_per_report = {row['per_report']}"
        survey = Survey.from_toml(survey_text(own, collect="repeatedly"))
        mechanism = survey.questions[0].protocol.mechanisms[0]
        assert mechanism.loss.per_report == pytest.approx(row["per_report"], abs=1e-6)
        for days, error in row["standard_error"].items():
            expected = (mechanism.variance(reports=int(days)) / 10_000) ** 0.5
            assert error == pytest.approx(expected, rel=1e-5)
        # One day costs the most; permanent noise remains.
        errors = list(row["standard_error"].values())
        assert errors == sorted(errors, reverse=True)
    assert "(this survey)" in check(tmp_path, text)
    assert "Accuracy of" not in check(tmp_path, survey_text())


# --- what few would accept, and what a new version changes ----------------------------------------

GRAMS = """[questions.q]
kind = "string"
epsilon = 4
[questions.q.dictionary]
protocol = "ngrams"
max_length = 254
alphabet = "a-z"
gram = 1
grams = 60
"""


def test_a_supercookie_is_not_published(tmp_path: Path) -> None:
    file, made = tmp_path / "s.toml", tmp_path / "s.json"
    file.write_text(survey_toml(GRAMS))
    got = CliRunner().invoke(app, ["check", str(file), "-o", str(made)])
    assert got.exit_code == 1 and not made.exists()
    assert "about 10^61 groups, so that they could tell clients apart" in got.output


def test_a_new_version_is_compared_with_the_old_one(tmp_path: Path) -> None:
    old, new = tmp_path / "old.toml", tmp_path / "new.toml"
    old.write_text(survey_text("epsilon = 1.0"))
    for text, code, says in (
        (survey_text("epsilon = 1.0"), 0, "Nothing changes for people."),
        (survey_text("epsilon = 0.5").replace("version = 1", "version = 2"), 0, "0.5"),
        (survey_text("epsilon = 1.5").replace("version = 1", "version = 2"), 1, "worse"),
    ):
        new.write_text(text)
        got = CliRunner().invoke(app, ["check", str(new), "--against", str(old)])
        assert got.exit_code == code and says in got.output, got.output
    data = json.loads(
        CliRunner().invoke(app, ["check", str(new), "--against", str(old), "--json"]).output
    )
    assert {"what": "ε per report", "before": "1", "now": "1.5", "worse": True} in data["changes"]
