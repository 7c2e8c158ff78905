"""What the browser client refuses: surveys that it does not know, and answers that cannot be."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from deniable.survey import Survey
from tests.browser.conftest import run_in_node
from tests.vectors.make import surveys

SURVEYS = {survey.name: survey for survey in surveys()}


def changed(survey: Survey, old: str, new: str) -> list[Any]:
    """The survey with one thing changed, and the digest that it then has."""
    text = survey.canonical.decode()
    assert old in text
    text = text.replace(old, new)
    return [text, hashlib.sha256(text.encode()).hexdigest(), None]


def ends(cases: list[list[Any]]) -> list[str]:
    ended: list[str] = run_in_node("refusals.js", cases)
    return ended


def test_a_survey_needs_its_digest() -> None:
    survey = SURVEYS["urls"]
    text, digest = survey.canonical.decode(), survey.sha256.hex()
    other = "0" * 64
    ended = ends(
        [
            [text, digest, None], [text + "\n", digest, None], [text, digest[:32], None],
            [text, other, None], [text, digest[:30], None], [text, "", None], [text, None, None],
            [text + " ", digest, None], ["\ufeff" + text, digest, None],
            [text + "\n\n", digest, None],
        ]
    )  # fmt: skip
    assert ended[:3] == ["read"] * 3
    assert all(end.startswith("SurveyError: the digest of the survey is") for end in ended[3:])
    assert digest in ended[3] and other in ended[3]


def test_unknown_surveys_are_refused() -> None:
    once, localhash = SURVEYS["urls"], SURVEYS["localhash"]
    cases = {
        "format deniable-survey/2": changed(once, "deniable-survey/1", "deniable-survey/2"),
        "bloom deniable-2": changed(once, '"deniable-1"', '"deniable-2"'),
        "bloom rappor-cpp": changed(once, '"deniable-1"', '"rappor-cpp"'),
        "string prefixes other": changed(localhash, '"localhash","p"', '"other","p"'),
        "boolean single boolean-asymmetric": changed(
            SURVEYS["vectors"], '"kind":"boolean","p"', '"kind":"boolean-asymmetric","p"'
        ),
        "string single localhash-later": changed(
            SURVEYS["repeated"], '"localhash-permanent"', '"localhash-later"'
        ),
        "string later localhash": changed(localhash, '"prefixes"', '"later"'),
        "choice later choice": changed(once, '"name":"single"', '"name":"later"'),
        "number single choice": changed(once, '"kind":"choice","loss"', '"kind":"number","loss"'),
        "budget 9007199254740992": changed(once, f'"budget":{once.budget}', f'"budget":{2**53}'),
    }
    for expected, end in zip(cases, ends(list(cases.values())), strict=True):
        assert end.startswith("SurveyError: ") and expected in end, end


def test_surveys_beyond_the_limits_of_a_page_are_refused() -> None:
    """Those of the vectors are accepted, as the first tests show."""
    once = SURVEYS["urls"]
    grams = '"max_length":20,"name":"ngrams","overlap":false'
    text, *_ = changed(once, grams, '"max_length":254,"name":"ngrams","overlap":true')
    text = text.replace('"cohorts":64', '"cohorts":65536')
    cookie = [text, hashlib.sha256(text.encode()).hexdigest(), None]
    cases = {
        "has epsilon = 20.5": changed(once, f'"budget":{once.budget}', '"budget":20500000000'),
        "has groups = ": cookie,
        "has hashes = ": changed(once, '"hashes":2', '"hashes":65536'),
    }
    for expected, end in zip(cases, ends(list(cases.values())), strict=True):
        assert end.startswith("SurveyRefused: ") and expected in end, end


@pytest.mark.parametrize("name", ["urls", "localhash"])
def test_the_limit_of_reports_counts_every_byte(name: str) -> None:
    survey = SURVEYS[name]
    case = [survey.canonical.decode(), survey.sha256.hex(), None]
    size = survey.body_size
    fits, refused = ends([[*case, {"reportSize": size}], [*case, {"reportSize": size - 1}]])
    assert fits == "read" and f"has reportSize = {size}" in refused


def test_a_second_answer_is_refused_with_the_reason() -> None:
    survey = SURVEYS["urls"]
    (end,) = ends([[survey.canonical.decode(), survey.sha256.hex(), [{}, {}]]])
    assert end == "BudgetExceeded: survey urls has already been answered: no report was made"


def test_answers_that_cannot_be_are_refused() -> None:
    survey = SURVEYS["urls"]
    digest = survey.sha256.hex()
    expired, expired_digest, _ = changed(survey, "2999-12-31", "2020-01-01")

    def answer(values: dict[str, Any]) -> list[Any]:
        return [survey.canonical.decode(), digest, values]

    ended = ends(
        [
            answer({}), answer({"url": None, "browser": "none of these"}),
            answer({"url": 5}), answer({"browser": True}), answer({"other": "x"}),
            answer({"toString": "x"}), [expired, expired_digest, {}],
        ]
    )  # fmt: skip
    size = 20 + survey.body_size
    assert ended[:2] == [f"{size} bytes"] * 2
    assert ended[2:6] == [
        "InputError: url must be a string or null", "InputError: browser must be a string or null",
        "InputError: survey urls has no question other",
        "InputError: survey urls has no question toString",
    ]  # fmt: skip
    assert ended[6] == "SurveyExpired: survey urls expired on 2020-01-01"


def test_vectors_cover_every_protocol_and_mechanism() -> None:
    """So that a client that replays them knows all it must."""
    text = json.dumps([json.loads(s.canonical) for s in SURVEYS.values()])
    kinds = ("bloom", "bloom-asymmetric", "localhash", "localhash-permanent", "choice")
    for kind in ("single", "ngrams", "prefixes", "bins", *kinds, "choice-asymmetric", "boolean"):
        assert f'"{kind}"' in text


def test_numbers_need_a_number() -> None:
    survey = SURVEYS["numbers"]
    text, digest = survey.canonical.decode(), survey.sha256.hex()
    values = [{"edges": x} for x in (0.5, -1e300, None, True, "3", [3])]
    ended = ends([[text, digest, each] for each in values])
    assert ended[:3] == [f"{20 + survey.body_size} bytes"] * 3
    assert ended[3:] == ["InputError: edges must be a number or null"] * 3
