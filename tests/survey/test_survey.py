"""Survey files: defaults, messages for every mistake, and the exact published form."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.errors import DeniableError, InputError, SurveyError
from deniable.mechanisms.noise import ONE
from deniable.privacy import NANO
from deniable.survey import Survey
from tests.surveys import survey_toml
from tests.vectors import make

HEAD = survey_toml(name="s", collect="{collect}")


def survey(body: str, collect: str = "once") -> Survey:
    return Survey.from_toml(HEAD.format(collect=collect) + body)


def mistakes(text: str) -> tuple[str, ...]:
    with pytest.raises(SurveyError) as caught:
        Survey.from_toml(text)
    return caught.value.mistakes


STRING = '[questions.a]\nkind = "string"\n'
BOOLEAN = '[questions.a]\nkind = "boolean"\n'


@pytest.mark.parametrize("path", sorted(make.HERE.glob("survey-*.toml")), ids=lambda p: p.stem)
def test_published_form_comes_back(path: Path, tmp_path: Path) -> None:
    original = Survey.load(path)
    original.publish(tmp_path / "s.json")
    again = Survey.load(tmp_path / "s.json")
    assert again == original
    assert again.canonical == original.canonical
    json.loads(original.canonical, parse_float=pytest.fail)  # integers and texts only


def test_digest_changes_with_anything() -> None:
    base = survey(BOOLEAN + "epsilon = 1.0")
    others = [
        survey(BOOLEAN + "epsilon = 1.0000001"),
        survey(BOOLEAN + 'epsilon = 1.0\ndescription = "x"'),
        survey(BOOLEAN.replace("questions.a", "questions.b") + "epsilon = 1.0"),
    ]
    assert len({base.digest, *(o.digest for o in others)}) == 4


@pytest.mark.slow
@given(st.floats(0.01, 12), st.sampled_from(["once", "repeatedly"]))
def test_filled_in_parameters_spend_epsilon_and_no_more(epsilon: float, collect: str) -> None:
    for body in (BOOLEAN, STRING, '[questions.a]\nkind = "choice"\noptions = ["x", "y"]\n'):
        s = survey(body + f"epsilon = {epsilon!r}", collect)
        spent = s.loss.per_report if collect == "once" else s.loss.in_total
        assert spent <= epsilon
        # One step of an integer moves ε by at most e^ε/2³¹.
        assert spent == pytest.approx(epsilon, abs=1e-8 + math.exp(epsilon) / 2**31)
        assert s.budget <= epsilon * NANO


def test_the_documented_rules() -> None:
    def noise(body: str, collect: str = "once") -> list[float]:
        n = survey(body, collect).questions[0].protocol.mechanisms[0].noise
        return [2 * n.flip / ONE, n.p / ONE, n.q / ONE]

    e = math.e
    assert noise(BOOLEAN + "epsilon = 1") == pytest.approx([0, 1 / (1 + e), e / (1 + e)])
    assert noise(STRING + "epsilon = 1") == pytest.approx([0, 1 / (1 + e), 0.5])
    assert noise(STRING + "epsilon = 1\nq = 0.9") == pytest.approx([0, 9 / (9 + e), 0.9])
    assert noise(STRING + "epsilon = 1\np = 0.25") == pytest.approx([0, 0.25, e / (3 + e)])
    f = 2 / (1 + math.exp(0.5))
    assert noise(STRING + "epsilon = 1", "repeatedly") == pytest.approx([f, 0.25, 0.75])
    full = survey(STRING + "epsilon = 1").questions[0].protocol.mechanisms[0].canonical()
    assert (full["bits"], full["hashes"], full["cohorts"]) == (128, 1, 64)


def test_ngrams_split_epsilon_as_asked() -> None:
    s = survey(
        STRING + "epsilon = 4\n[questions.a.dictionary]\nprotocol = 'ngrams'\nmax_length = 4\n"
        "alphabet = 'ab'\nsplit = [2, 1, 1]\n"
    )
    shares = [m.loss.per_report for m in s.questions[0].protocol.mechanisms]
    assert shares == pytest.approx([2, 1, 1], abs=1e-6)
    assert s.loss.per_report <= 4


def test_groups_are_counted() -> None:
    s = Survey.load(make.HERE / "survey-once.toml")
    assert s.groups == 64 * 45
    assert s.smallest_group == pytest.approx(1 / (64 * 45))


def test_every_mistake_is_named_with_its_place() -> None:
    found = mistakes(
        """name = "Bad Name"
version = "one"
owner = "o"
expires = 2020-01-01T00:00:00
colect = "once"

[questions.page]
kind = "string"
bits = 1
epsilon = -1
hashs = 2

[questions.theme]
kind = "choise"
options = []
"""
    )
    text = "\n".join(found)
    for expected in (
        "name (line 1): must be 1 to 64", "version (line 2): must be an integer",
        "description: missing", "expires (line 4): must be a date",
        "collect: missing", 'colect (line 5): unknown setting of a survey. Did you mean "collect"?',
        "questions.page.bits (line 9): must be an integer from 2",
        "questions.page.epsilon (line 10): must be a number above 0",
        'questions.page.hashs (line 11): unknown setting of a string question. '
        'Did you mean "hashes"?',
        'questions.theme.kind (line 14): must be "string", "choice", "boolean" or "number", '
        'not "choise". Did you mean "choice"?',
    ):  # fmt: skip
        assert expected in text, f"{expected!r} not in\n{text}"


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("", "questions: missing"),
        ("[questions]", "at least one"),
        ("questions = 3", "tables"),
        ("[questions]\na = 1", r"a table \[questions.a\]"),
        (BOOLEAN, "set epsilon, or both p and q"),
        (BOOLEAN + "p = 0.5\nq = 0.5", "p and q are equal"),
        (BOOLEAN + "p = 0\nq = 0.5", "prove a value"),
        (BOOLEAN + "epsilon = 0.1\np = 0.25\nq = 0.75", "more than epsilon = 0.1"),
        (BOOLEAN + "epsilon = true", "a number above"),
        (BOOLEAN + "epsilon = inf", "a number above"),
        (STRING + "epsilon = 1\nscheme = 'rappor-pyton'", "rappor-python"),
        (STRING + "epsilon = 1\nscheme = 'rappor-python'", "at most 32 bits"),
        ('[questions."Bad!"]\nkind = "boolean"\nepsilon = 1.0', "name of a question"),
        (STRING + "epsilon = 1\n[questions.a.dictionary]\nprotocol = 'grams'\nmax_length = 4\n"
         "alphabet = 'a-z'", 'Did you mean "ngrams"'),
        (STRING + "epsilon = 1\n[questions.a.dictionary]\nprotocol = 'ngrams'\nmax_length = 5\n"
         "alphabet = 'a-z'", "use 6"),
        (STRING + "epsilon = 1\n[questions.a.dictionary]\nprotocol = 'ngrams'\nmax_length = 4\n"
         "alphabet = 'z-a'", "runs backwards"),
        (STRING + "epsilon = 1\n[questions.a.dictionary]\nprotocol = 'ngrams'\nmax_length = 4\n"
         "alphabet = 'a-z_.-_'", "repeats '_': '.-_' is a range from '.' to '_'; put a literal"),
        (STRING + "epsilon = 1\n[questions.a.dictionary]\nprotocol = 'ngrams'\nmax_length = 4\n"
         "alphabet = 'a-za'", "repeats 'a': list each character once"),
        (STRING + "epsilon = 1\n[questions.a.dictionary]\nprotocol = 'ngrams'\nmax_length = 4\n"
         "alphabet = 'a-z'\nsplit = [1, 1]", "3 numbers"),
        (STRING + "epsilon = 1\n[questions.a.dictionary]\nprotocol = 'prefixes'\nmax_length = 4\n"
         "alphabet = 'a-z'\nlevels = [2, 4]\nshares = [1]", "2 numbers"),
        (STRING + "epsilon = 1\ncohorts = 6553\n[questions.b]\nkind = 'string'\nepsilon = 1\n"
         "cohorts = 64", "at most 65536, not 419392"),
    ],
)  # fmt: skip
def test_mistakes_are_clear(body: str, says: str) -> None:
    text = "\n".join(mistakes(HEAD.format(collect="once") + body))
    assert re.search(says, text), text


def test_repeated_collection_needs_permanent_noise() -> None:
    text = HEAD.format(collect="repeatedly") + BOOLEAN + "p = 0.25\nq = 0.75\nf = 0"
    assert "f = 0" in "\n".join(mistakes(text))


def test_the_budget_covers_one_answer() -> None:
    head = HEAD.format(collect="once") + "budget = 0.5\n"
    assert "increase the budget" in "\n".join(mistakes(head + BOOLEAN + "epsilon = 1.0"))


def test_not_toml() -> None:
    assert "line 2" in mistakes('name = "a"\nversion = = 1')[0]


def broken(change: dict[str, Any]) -> bytes:
    data = json.loads(Survey.load(make.HERE / "survey-plain.toml").canonical)
    data.update(change)
    return json.dumps(data, sort_keys=True, separators=(",", ":")).encode()


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b"{}", b"null", b'{"format":"deniable-survey/2"}', broken({"extra": 1}),
     broken({"version": True}), broken({"expires": "soon"}), broken({"questions": []}),
     broken({"budget": 1}), broken({"budget": float("nan")}), broken({"budget": float("inf")}),
     broken({"budget": 5e9}), broken({"owner": [1, 2]}), broken({"description": 3}),
     b"[" * 100_000],
)  # fmt: skip
def test_published_surveys_are_read_strictly(data: bytes) -> None:
    with pytest.raises(InputError):
        Survey.from_json(data)


def test_a_published_survey_with_a_wrong_loss_is_refused() -> None:
    canonical = Survey.load(make.HERE / "survey-plain.toml").canonical
    assert b'"once":499999999' in canonical or b'"once":500000000' in canonical
    lie = re.sub(rb'"once":\d+', b'"once":100000000', canonical)
    with pytest.raises(InputError, match="states a wrong loss"):
        Survey.from_json(lie)


@pytest.mark.parametrize(
    ("name", "path", "value"),
    [
        ("vectors", ("questions", 0, "protocol", "mechanism", "cohorts"), True),
        ("vectors", ("questions", 0, "protocol", "mechanism", "flip"), False),
        ("vectors", ("questions", 1, "protocol", "overlap"), "yes"),
        ("vectors", ("questions", 1, "protocol", "alphabet"), ["a", "b"]),
        ("vectors", ("questions", 1, "protocol", "max_length"), 10**12),
        ("vectors", ("questions", 2, "protocol", "max_length"), 10**12),
        ("vectors", ("questions", 2, "protocol", "levels", 0, 0), True),
        ("vectors", ("questions", 3, "protocol", "mechanism", "options"), [1, 2, 3]),
        ("vectors", ("questions", 0, "encodings", 0), "00" * 32),
    ],
)
def test_types_inside_published_surveys_are_checked(
    name: str, path: tuple[Any, ...], value: Any
) -> None:
    survey = next(s for s in make.surveys() if s.name == name)
    data = json.loads(survey.canonical)
    place = data
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    changed = json.dumps(data, sort_keys=True, separators=(",", ":")).encode()
    with pytest.raises(InputError):
        Survey.from_json(changed)


@pytest.mark.parametrize("number", ["9" * 400, "1e999", "9" * 5001])
def test_huge_numbers_are_mistakes(number: str) -> None:
    for setting in (f"epsilon = {number}", f"epsilon = 1.0\np = {number}"):
        assert len(mistakes(HEAD.format(collect="once") + BOOLEAN + setting)) == 1


def test_a_dotted_name_is_one_name() -> None:
    text = HEAD.format(collect="once") + '[questions."a.b"]\nkind = "boolean"\nepsilon = 1.0'
    assert "name of a question" in "\n".join(mistakes(text))


def test_every_setting_is_documented() -> None:
    page = Path("docs/reference/survey.md").read_text()
    source = Path("src/deniable/survey/toml_file.py").read_text()
    settings = set(re.findall(r'"(\w+)": \w', source)) | {"p", "q", "f", "split", "shares"}
    assert len(settings) > 20
    assert {s for s in settings if f"`{s}`" not in page} == set()


@given(st.text(max_size=200))
def test_random_text_raises_our_error(text: str) -> None:
    with pytest.raises(DeniableError):
        Survey.from_toml(text)
