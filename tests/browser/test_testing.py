"""The client for testing, in node and Chromium: the same reports as in Python, never for people."""

from __future__ import annotations

import math
import warnings
from typing import Any

import pytest

from deniable import Client
from deniable.errors import InputError
from deniable.survey import Survey
from tests.browser.conftest import Run, run_in_node
from tests.surveys import EDITOR_AND_PAGE, make_survey
from tests.vectors.make import surveys

ANSWERS: list[dict[str, Any]] = [{}, {"url": "a"}, {"url": "a"}]
CHOICE = make_survey(
    EDITOR_AND_PAGE
    + """
[questions.text]
kind = "string"
epsilon = 2
[questions.text.dictionary]
protocol = "prefixes"
max_length = 4
alphabet = "bytes"
levels = [2, 4]
"""
).for_testing()


def in_browser(run: Run, survey: Survey, answers: list[dict[str, Any]], **options: Any) -> Any:
    texts = {"canonical": survey.canonical.decode(), "sha256": survey.sha256.hex()}
    return run("testing.js", {**texts, "options": options, "answers": answers})


def in_python(survey: Survey, seed: int, answers: list[dict[str, Any]]) -> list[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        client = Client.for_testing(survey, seed=seed)
        return [bytes(client.answer(values)).hex() for values in answers]


@pytest.mark.parametrize("seed", [0, 7, 2**53 - 1])
def test_both_clients_make_the_same_reports_from_a_seed(run: Run, seed: int) -> None:
    """Also more often than the budget allows."""
    survey = next(s for s in surveys() if s.name == "urls").for_testing()
    got = in_browser(run, survey, ANSWERS, seed=seed)
    assert got["ended"] == [True, *in_python(survey, seed, ANSWERS)]
    assert got["ended"][2] != got["ended"][3], "noise must be fresh in each report"
    (warned,) = got["warned"]
    assert "protect nobody" in warned


def test_a_client_for_testing_refuses_a_real_survey() -> None:
    real = next(iter(surveys()))
    (end,) = in_browser(run_in_node, real, ANSWERS)["ended"]
    assert end.startswith("SurveyError: survey ") and "check survey.toml --testing" in end
    (end,) = in_browser(run_in_node, real.for_testing(), ANSWERS, seed=-1)["ended"]
    assert end.startswith("InputError: seed must be an integer")


def test_no_export_answers_a_real_survey_with_predictable_noise(run: Run) -> None:
    """Two clients draw the same 64 or more random bits by chance with probability 2⁻⁶⁴ or less."""
    real = next(s for s in surveys() if s.name == "urls")
    got = run("predictable.js", {"canonical": real.canonical.decode(), "sha256": real.sha256.hex()})
    assert got == {"ended": ["SurveyError"] * 4, "same": False}


def test_a_real_client_refuses_a_survey_for_testing() -> None:
    testing = next(iter(surveys())).for_testing()
    case = [testing.canonical.decode(), testing.sha256.hex(), {}]
    (end,) = run_in_node("refusals.js", [case])
    assert end == "SurveyError: this survey is for testing: see testing.js"


def test_answers_that_are_lost_are_those_that_python_names() -> None:
    answers = [
        {"editor": "vim", "page": "abcd", "text": "ÄÄ"},
        {"editor": "nano"},
        {"page": "abcde"},
        {"page": "a.b"},
        {"text": "ÄÄÄ"},
        {"editor": None, "page": ""},
    ]
    lenient = in_browser(run_in_node, CHOICE, answers)
    assert lenient["ended"] == [True, *in_python(CHOICE, 0, answers)]
    strict = in_browser(run_in_node, CHOICE, answers, strict=True)
    reasons = []
    for values, end in zip(answers, strict["ended"][1:], strict=True):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            client = Client.for_testing(CHOICE, strict=True)
        try:
            client.answer(values)
            assert not end.startswith("InputError")
        except InputError as error:
            question, reason = str(error).split(" (")[0].split(": ", 1)
            assert end.startswith(f"InputError: {question.replace(chr(39), '')}: {reason}, such as")
            reasons.append(reason)
    assert len(set(reasons)) == len(reasons) == len(lenient["warned"]) - 1 == 4


def test_both_clients_put_numbers_into_the_same_bins(run: Run) -> None:
    """Edges, their neighbours among the doubles, and numbers far outside."""
    survey = next(s for s in surveys() if s.name == "numbers").for_testing()
    edges = {edge for q in survey.questions for edge in q.protocol.edges}  # type: ignore[attr-defined]
    near = [math.nextafter(e, end) for e in edges for end in (-math.inf, math.inf)]
    numbers = [*sorted(edges), *near, -1e308, 1e308, 5e-324, 2**53 + 1.0]
    answers = [{q.name: x for q in survey.questions} for x in numbers]
    got = in_browser(run, survey, answers, seed=3)
    assert got["ended"] == [True, *in_python(survey, 3, answers)]
    assert sum("outside 0 to 10 are counted" in text for text in got["warned"]) > 2
