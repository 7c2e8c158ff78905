"""Published surveys come from anyone: reading one takes time in proportion to its bytes."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from deniable.client.limits import SurveyLimits, read_published
from deniable.errors import InputError, SurveyRefused
from deniable.mechanisms import Bloom
from deniable.survey import Survey
from tests.surveys import make_survey

GRAM = {
    "kind": "bloom", "scheme": "deniable-1", "bits": 2, "hashes": 1, "cohorts": 1,
    "flip": 0, "p": 1 << 30, "q": 3 << 30,
}  # fmt: skip
DARK = make_survey('[questions.dark]\nkind = "boolean"\nepsilon = 1\n')


def hostile(questions: int, grams: int, **changes: Any) -> bytes:
    """A survey whose n-grams have 254 positions each."""
    protocol = {
        "name": "ngrams", "alphabet": "a", "max_length": 255, "gram": 2, "overlap": True,
        "full": GRAM, "grams": [{**GRAM, **changes} for _ in range(grams)],
    }  # fmt: skip
    question = {"kind": "string", "description": "", "protocol": protocol}
    names = [f"q{i}" for i in range(questions)]
    every = [{**question, "name": name, "encodings": [], "loss": []} for name in names]
    return json.dumps({**json.loads(DARK.canonical), "questions": every}).encode()


def test_reading_makes_no_more_than_the_bytes_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """One mechanism for each position of each n-gram would be 254 times as many."""
    made = 0
    check = Bloom.__post_init__

    def counted(self: Bloom) -> None:
        nonlocal made
        made += 1
        check(self)

    monkeypatch.setattr(Bloom, "__post_init__", counted)
    for questions in (1, 2):
        made = 0
        with pytest.raises(InputError, match="budget"):
            Survey.from_json(hostile(questions, 20))
        assert made <= 4 * 21 * questions


def test_the_exact_loss_of_every_part_takes_time_so_there_are_not_too_many() -> None:
    with pytest.raises(InputError, match=r"at most 4096 parts .* not 4400"):
        Survey.from_json(hostile(22, 199))


def test_cohorts_without_common_factors_are_refused_at_once() -> None:
    """The product of thousands of primes would be a number of thousands of digits."""
    primes = [n for n in range(60_000, 65_536) if all(n % k for k in range(2, 257))]
    raw = json.loads(hostile(len(primes), 2))
    for question, prime in zip(raw["questions"], primes, strict=True):
        question["protocol"]["full"]["cohorts"] = prime
    with pytest.raises(InputError, match="least common multiple") as error:
        Survey.from_json(json.dumps(raw).encode())
    assert len(str(error.value)) < 500


@pytest.mark.parametrize("budget", [-(10**400), 10**400, -1])
def test_a_budget_that_no_number_can_hold_is_refused(budget: int) -> None:
    text = DARK.canonical.decode().replace(f'"budget":{DARK.budget}', f'"budget":{budget}')
    with pytest.raises(InputError, match="budget must be an integer from 0"):
        Survey.from_json(text)


def test_options_belong_to_single_questions_only() -> None:
    """With n-grams, a long list of options would be checked once for every position."""
    options = {"kind": "choice", "options": ["a", "b"], "flip": 0, "p": 1 << 30, "q": 3 << 30}
    raw = json.loads(hostile(1, 2))
    protocol = raw["questions"][0]["protocol"]
    raw["questions"][0] |= {
        "kind": "choice",
        "protocol": {**protocol, "full": options, "grams": [options] * 2},
    }
    with pytest.raises(InputError, match="cannot use the mechanism choice"):
        Survey.from_json(json.dumps(raw).encode())


def test_a_huge_file_is_not_parsed() -> None:
    with pytest.raises(InputError, match="at most 4,194,304 bytes"):
        Survey.from_json(b"[" * (4 << 20) + b"]")


def test_digest_and_size_are_compared_before_anything_is_parsed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data, other = DARK.canonical + b"\n", hostile(1, 2)
    assert read_published(data, "here", digest=DARK.digest) == DARK
    assert read_published(data[:-1], "here", digest=DARK.digest.hex()) == DARK
    digest = hashlib.sha256(other).hexdigest()[:32]

    def parsed(_: object) -> None:
        raise AssertionError("parsed")

    monkeypatch.setattr(Survey, "from_json", parsed)
    with pytest.raises(InputError, match=f"not the reviewed one: its digest is {digest}, not"):
        read_published(other, "here", digest=DARK.digest)
    with pytest.raises(InputError, match="must have 32 hexadecimal digits"):
        read_published(data, "here", digest="short")
    with pytest.raises(SurveyRefused, match="bytes, more than the 100 that this device reads"):
        read_published(data, "here", limits=SurveyLimits(size=100))


def test_surveys_in_files_of_reports_are_read_by_the_same_parser(tmp_path: Path) -> None:
    arrow = pytest.importorskip("deniable.columns.arrow")
    with pytest.raises(InputError, match="at most 4096 parts"):
        arrow._parse_survey(hostile(22, 199))
