"""`check` says why few people would accept a survey, and is silent about an ordinary one."""

from __future__ import annotations

import datetime as dt

import pytest

from deniable.planning.acceptance import acceptance_warnings
from tests.surveys import make_survey

TODAY = dt.date(2027, 1, 1)
DARK = '[questions.dark]\nkind = "boolean"\nepsilon = 1\n'
LONG = """[questions.{}]
kind = "string"
epsilon = 1
cohorts = 4096
[questions.{}.dictionary]
protocol = "prefixes"
max_length = 20
alphabet = "a-z"
"""


def warnings(questions: str = DARK, **header: object) -> list[str]:
    return acceptance_warnings(make_survey(questions, **{"expires": "2027-12-31", **header}), TODAY)


def test_an_ordinary_survey_gets_no_warning() -> None:
    assert warnings() == []
    assert warnings(collect="repeatedly", budget=4) == []
    assert warnings(LONG.format("q", "q")) == []


@pytest.mark.parametrize(
    "questions, header, says",
    [
        (DARK, {"expires": "2030-01-01"}, "ends in 3 years"),
        (DARK, {"budget": 5}, "allows 5 answers"),
        (DARK, {"budget": 5, "collect": "repeatedly"}, "allows 5 changed sets of answers"),
        (DARK, {"budget": 21}, "clients refuse this survey by default: its budget ε = 21"),
        (DARK + '[questions.w]\nkind = "string"\nepsilon = 8\n', {}, "w: ε = 8 per report hardly"),
        (LONG.format("q", "q"), {"collect": "repeatedly"}, "the smallest group of clients"),
        (LONG.format("q", "q") + LONG.format("r", "r"), {}, "the smallest group of clients"),
    ],
)
def test_each_warning(questions: str, header: dict[str, object], says: str) -> None:
    assert any(says in warning for warning in warnings(questions, **header)), warnings(
        questions, **header
    )


@pytest.mark.parametrize(
    "noise", ["epsilon = 1\nepsilon_per_report = 0.999", "p = 0\nq = 1\nf = 0.9"]
)
def test_permanent_noise_without_fresh_noise_is_warned_of(noise: str) -> None:
    question = f'[questions.q]\nkind = "string"\nbits = 256\n{noise}\n'
    survey = make_survey(question, collect="repeatedly")
    assert any("almost equal" in text for text in acceptance_warnings(survey, TODAY))
    usual = make_survey(
        question.replace(noise, "epsilon = 4\nepsilon_per_report = 3"), collect="repeatedly"
    )
    assert not any("almost equal" in text for text in acceptance_warnings(usual, TODAY))
