"""A device refuses surveys beyond its limits, whatever their authors want and people answer."""

from __future__ import annotations

import json
import math
import re
from importlib.resources import files
from pathlib import Path

import pytest
from experiments.paper.dictionaries import ngram_survey, prefix_survey
from experiments.paper.trials import bloom, boolean, survey_of

from deniable.client import Client, SurveyLimits
from deniable.client.limits import DEFAULT_LIMITS
from deniable.errors import DeniableError, InputError, SurveyRefused
from deniable.survey import Survey
from tests.surveys import make_survey

ROOT = Path(__file__).parents[2]
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


def published_surveys() -> dict[str, Survey]:
    """Every survey of the documentation, the examples and the test vectors."""
    made: dict[str, Survey] = {}
    for path in [*ROOT.glob("examples/**/*.toml"), *ROOT.glob("tests/vectors/*.toml")]:
        made[path.name] = Survey.load(path)
    for path in [*ROOT.glob("docs/**/*.md"), ROOT / "README.md"]:
        for i, text in enumerate(re.findall(r"```toml[^\n]*\n(.*?)```", path.read_text(), re.S)):
            try:
                made[f"{path.name} {i}"] = Survey.from_toml(text)
            except DeniableError:  # a fragment
                continue
    for name in ("surveys.json", "ledger.json"):
        text = (files("deniable.conformance") / "vectors" / name).read_text()
        for i, canonical in enumerate(strings(json.loads(text))):
            made[f"{name} {i}"] = Survey.from_json(canonical)
    return made


def strings(data: object) -> list[str]:
    """Published surveys anywhere in a JSON value."""
    if isinstance(data, str):
        return [data] if data.startswith("{") and '"deniable-survey/1"' in data else []
    inner = data.values() if isinstance(data, dict) else data if isinstance(data, list) else ()
    return [text for each in inner for text in strings(each)]


def test_the_defaults_accept_every_survey_that_we_publish() -> None:
    surveys = published_surveys()
    assert len(surveys) > 15
    for name, survey in surveys.items():
        assert DEFAULT_LIMITS.exceeded(survey) == [], name


def test_the_clear_fields_must_not_be_a_supercookie(tmp_path: Path) -> None:
    survey = make_survey(GRAMS)
    assert survey.groups > 10**58
    with pytest.raises(SurveyRefused, match=r"more than 8,388,608 groups, so that they could tell"):
        Client.open(survey, tmp_path / "device")
    assert not (tmp_path / "device").exists()
    with pytest.raises(SurveyRefused):
        Client(survey, secret=bytes(32))
    Client(survey, secret=bytes(32), limits=SurveyLimits(groups=math.inf))


@pytest.mark.parametrize(
    "questions, header, says",
    [
        ('[questions.q]\nkind = "boolean"\nepsilon = 20.5\n', {}, "its budget ε = 20.389 exceeds"),
        ('[questions.q]\nkind = "boolean"\nepsilon = 1\n', {"budget": 1e200}, "exceeds ε = 20"),
        ('[questions.q]\nkind = "boolean"\nepsilon = 1\n', {"description": "x" * 2**18},
         "its published form has 262,"),
        ("".join(f'[questions.q{i}]\nkind = "string"\nepsilon = 1\nbits = 65536\ncohorts = 1\n'
                 for i in range(9)), {}, "its reports have 73,728 bytes, more than 65,536"),
        ('[questions.q]\nkind = "string"\np = 0.25001\nq = 0.25\nbits = 2\nhashes = 65536\n'
         '[questions.r]\nkind = "boolean"\nepsilon = 1\n', {}, "take 65,537 hashes"),
    ],
)  # fmt: skip
def test_each_limit_refuses(questions: str, header: dict[str, object], says: str) -> None:
    survey = make_survey(questions, **header)
    with pytest.raises(SurveyRefused, match=re.escape(says)):
        Client(survey, secret=bytes(32))
    everything = dict.fromkeys(("epsilon", "groups", "size", "report_size", "hashes"), math.inf)
    Client(survey, secret=bytes(32), limits=SurveyLimits(**everything))


@pytest.mark.parametrize("limit", [0, -1, math.nan, "5", None])
def test_limits_are_positive_numbers(limit: float) -> None:
    with pytest.raises(InputError, match="the limit epsilon must be a number above 0"):
        SurveyLimits(epsilon=limit)


def test_the_surveys_of_the_paper_are_accepted() -> None:
    grams = ngram_survey(q=0.75, alphabet="a-z0-9._-", length=20, gram=2)
    prefixes = prefix_survey(epsilon=grams.loss.per_report, length=20, alphabet="a-z0-9._-")
    for survey in (grams, prefixes, survey_of(x=bloom(), y=bloom(), z=boolean())):
        assert DEFAULT_LIMITS.exceeded(survey) == []
