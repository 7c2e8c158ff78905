"""Protocols: clear fields, tokens of strings, and that clear fields never depend on the value."""

from __future__ import annotations

import os
from collections import Counter
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.client import Client
from deniable.errors import InputError
from deniable.mechanisms import Bloom, Noise
from deniable.mechanisms.noise import ONE
from deniable.protocols import Alphabet, NGrams, Prefixes, from_canonical
from deniable.protocols.alphabet import OTHER, PAD
from deniable.protocols.base import cohort_of
from deniable.protocols.prefixes import Level
from deniable.survey import Survey
from tests.vectors import make

BLOOM = Bloom(noise=Noise.of(p=0.25, q=0.75, f=0.5), bits=16, hashes=1, cohorts=4)
LETTERS = Alphabet("abcdefghijklmnopqrstuvwxyz")
ANYTHING: st.SearchStrategy[str | None] = st.none() | st.text(
    st.characters(codec=None, exclude_categories=[]), max_size=40
)
SURVEYS = make.surveys()


def ngrams(**changes: Any) -> NGrams:
    given = {"alphabet": LETTERS, "max_length": 6, "gram": 2, "full": BLOOM, "grams": (BLOOM,) * 2}
    return NGrams(**(given | changes)).within("s", "q")


def prefixes(**changes: Any) -> Prefixes:
    levels = (Level(2, ONE // 4), Level(4, ONE // 4), Level(4, ONE // 2))
    given = {"alphabet": LETTERS, "max_length": 4, "levels": levels, "mechanism": BLOOM}
    return Prefixes(**(given | changes)).within("s", "q")


@pytest.mark.slow
@pytest.mark.parametrize("survey", SURVEYS, ids=lambda s: s.name)
@given(values=st.lists(ANYTHING, min_size=2, max_size=4))
def test_size_and_clear_fields_do_not_depend_on_the_value(
    survey: Survey, values: list[str | None]
) -> None:
    seen = set()
    for number, value in enumerate(values):
        client = Client(survey, secret=make.SECRETS[0])
        report = client.answer(make.answers(survey, value, number))
        clear = tuple(answer.clear for answer in report.answers)
        seen.add((len(bytes(report)), report.cohort, clear))
    assert len(seen) == 1


def test_draws_are_uniform_and_stay() -> None:
    """8,000 secrets; each count within 4.5 standard deviations: false alarm below 1e-4."""
    protocol, levels = ngrams(), prefixes()
    secrets = [os.urandom(32) for _ in range(8000)]
    pairs = Counter(protocol.draw(s, "s", "q") for s in secrets)
    assert set(pairs) == set(combinations(range(3), 2))
    drawn = Counter(levels.draw(s, "s", "q") for s in secrets)
    cohorts = Counter(cohort_of(s, "s", 5) for s in secrets)
    for counts, shares in (
        (pairs, dict.fromkeys(pairs, 1 / 3)),
        (drawn, {(0,): 0.25, (1,): 0.25, (2,): 0.5}),
        (cohorts, dict.fromkeys(range(5), 0.2)),
    ):
        for key, share in shares.items():
            sd = (8000 * share * (1 - share)) ** 0.5
            assert abs(counts[key] - 8000 * share) < 4.5 * sd  # type: ignore[index]
    assert [protocol.draw(s, "s", "q") for s in secrets[:50]] == [
        protocol.draw(s, "s", "q") for s in secrets[:50]
    ]


@given(st.binary(min_size=32, max_size=32), st.integers(2, 5))
def test_positions_are_distinct_and_increasing(secret: bytes, r: int) -> None:
    protocol = ngrams(max_length=12, grams=(BLOOM,) * r)
    draw = protocol.draw(secret, "s", "q")
    assert len(draw) == r
    assert list(draw) == sorted(set(draw))
    assert all(0 <= g < 6 for g in draw)


def test_every_combination_can_be_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    from deniable.mechanisms import prf

    protocol = ngrams(max_length=10, grams=(BLOOM,) * 3)
    ranks = iter(range(10))
    monkeypatch.setattr(prf, "draw", lambda *_: next(ranks))
    got = [protocol.draw(b"", "s", "q") for _ in range(10)]
    assert got == list(combinations(range(5), 3))


def test_tokens_of_ngrams() -> None:
    protocol = ngrams()
    row = bytes([7, 4, 17, 12, 8, 19])
    assert protocol.tokens("hermit", (0, 2)) == (row, row[:2], row[4:])
    assert protocol.tokens("hermits", (0, 2)) == (row, row[:2], row[4:])
    assert protocol.tokens("he", (0, 1)) == (bytes([7, 4]) + bytes([PAD] * 4), row[:2], b"\xff\xff")
    assert protocol.tokens(None, (0, 1)) == (None, None, None)
    overlapping = ngrams(overlap=True)
    assert overlapping.positions == 5
    assert overlapping.tokens("hermit", (0, 1))[1:] == (row[0:2], row[1:3])
    assert [s.name for s in overlapping.slots((0, 3))] == ["full", "gram:0", "gram:3"]


def test_tokens_of_prefixes() -> None:
    protocol = prefixes()
    assert protocol.tokens("hermit", (0,)) == (bytes([7, 4]),)
    assert protocol.tokens("h", (1,)) == (bytes([7, PAD, PAD, PAD]),)
    names = [protocol.slots((i,))[0].name for i in range(3)]
    assert names == ["level:0:2", "level:1:4", "level:2:4"], "each level has its own hash and noise"


def test_slots_hash_apart() -> None:
    first, second = (ngrams().slots(draw)[1].mechanism for draw in ((0, 1), (1, 2)))
    many = [bytes([i, j]) for i in range(26) for j in range(26)]
    same = sum(first.true_bits(t, 0) == second.true_bits(t, 0) for t in many)
    assert same < len(many) / 16 * 2, "16 bits: about 1 in 16 coincide by chance"


@pytest.mark.slow
@given(st.text(max_size=30))
def test_symbols_come_back(text: str) -> None:
    letters = "".join(c for c in text if c in LETTERS.codes)
    assert LETTERS.text(LETTERS.symbols(letters, 40)) == letters
    assert Alphabet(None).text(Alphabet(None).symbols(text, 200)) == text


def test_odd_characters() -> None:
    assert LETTERS.symbols("aé", 3) == bytes([0, OTHER, PAD])
    assert LETTERS.text(bytes([0, OTHER, PAD])) == "a\N{REPLACEMENT CHARACTER}"
    spaced = Alphabet(" a")
    assert spaced.symbols("a ", 4) != spaced.symbols("a", 4), "a trailing space is not padding"
    assert Alphabet(None).symbols("\ud83d\udc08", 4) == "🐈".encode()
    assert Alphabet(None).symbols("\ud83d", 4) == "\N{REPLACEMENT CHARACTER}".encode() + b"\xff"


@pytest.mark.parametrize(
    ("make_it", "changes", "says"),
    [
        (ngrams, {"max_length": 7}, "use 8"),
        (ngrams, {"gram": 9}, "1 to 6"),
        (ngrams, {"grams": (BLOOM,)}, "at least 2"),
        (ngrams, {"grams": (BLOOM,) * 4}, "at most 3"),
        (prefixes, {"levels": ()}, "1 to 256 lengths"),
        (prefixes, {"levels": (Level(4, ONE // 2), Level(2, ONE // 2))}, "must increase"),
        (prefixes, {"levels": (Level(2, ONE),)}, "end with max_length = 4"),
        (prefixes, {"levels": (Level(4, 7),)}, "sum to 2"),
        (prefixes, {"levels": (Level(5, ONE),)}, "from 1 to max_length"),
    ],
)
def test_invalid_protocols_are_refused(make_it: Any, changes: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        make_it(**changes)


@pytest.mark.parametrize("characters", ["", "aa", "".join(map(chr, range(300, 600))), "\ud800"])
def test_impossible_alphabets_are_refused(characters: str) -> None:
    with pytest.raises(InputError):
        Alphabet(characters)


@pytest.mark.parametrize("data", [{}, {"name": "x"}, {"name": "single"}, {"name": "ngrams"}])
def test_unreadable_protocols_are_refused(data: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        from_canonical(data)
