"""Listed strings: the same odds as in a search, and more strings than by searching alone."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from deniable import discover, simulate
from deniable.analysis.source import Source
from deniable.discovery.prefixes.listed import listed_rows
from deniable.discovery.prefixes.search import end_levels, followed, search
from deniable.discovery.shared.string_models import CharacterModel
from deniable.protocols import Alphabet
from deniable.simulation import Population, power
from tests.discovery.inputs import masses, prefixes_of, rows_of
from tests.surveys import make_survey

SURVEY = make_survey(
    """
[questions.word]
kind = "string"
bits = 512
cohorts = 16
epsilon = 3.0

[questions.word.dictionary]
protocol = "prefixes"
max_length = 5
alphabet = "a-c"
levels = [1, 2, 3, 4, 5, 5]
""",
    name="listed",
)
ABC = Alphabet("abc")
WORDS = Population(("abc", "abca", "b", "cab", "cabb", "bacca"), power(6, 2))


def test_odds_are_those_of_a_search_that_keeps_everything() -> None:
    """List every string of a small domain, with the prior probability of the character model."""
    rng = np.random.default_rng(1)
    reports = simulate(SURVEY, WORDS.draw(20_000, rng), rng=rng)
    tables = masses(Source(reports, SURVEY), SURVEY.questions[0])
    texts = ["".join(t) for n in range(6) for t in itertools.product("abc", repeat=n)]
    model = CharacterModel.uniform(ABC).trained(rows_of(ABC, ["abca", "cab", "bb"], 5))
    rows = rows_of(ABC, texts, 5)
    weight, end = np.exp(-model.description_length(rows)), end_levels(tables.tally, rows)
    assert weight.sum() == pytest.approx(1, rel=1e-5)
    whole = tables.scores.evidence()
    odds, _ = followed(whole, rows, weight)
    for level in range(5):
        # A search looks at the level of a string's end as well: nothing is to be seen there, but
        # that of masses at the foot of the grid .08 may fall below it.
        shown = np.arange(tables.tally.levels) < level
        before = replace(
            whole, entry=whole.entry * shown[:, None, None].astype(np.float32),
            precision=whole.precision * shown,
        )  # fmt: skip
        found, _ = search(before, model, 10_000, -np.inf)
        by_row = dict(zip((r.tobytes() for r in found.rows), found.odds.tolist(), strict=True))
        here = np.flatnonzero(end == level)
        assert len(here)
        np.testing.assert_allclose(
            odds[here], [by_row[rows[i].tobytes()] for i in here], rtol=1e-3, atol=0.09
        )


@pytest.mark.slow
def test_a_list_finds_more_and_what_it_finds_teaches_the_search() -> None:
    """The strings are too rare for a search; one of them is not on the list."""
    rng = np.random.default_rng(2)
    reports = simulate(SURVEY, WORDS.draw(3_000, rng), rng=rng)
    without = discover(SURVEY, reports, "word")
    found = discover(SURVEY, reports, "word", words=[*WORDS.values[1:], "aaa", "cc", "acbac"])
    assert set(without.strings) < set(found.strings) <= set(WORDS.values)
    stage = next(s for s in found.stages if s.name == "listed strings")
    assert stage.kept + stage.dropped == 8
    assert "half of α over the listed strings" in found.correction
    assert "listed" not in without.correction


@pytest.mark.slow
def test_impossible_listed_strings_change_only_the_share_of_alpha() -> None:
    protocol = prefixes_of(SURVEY.questions[0])
    rows, weight = listed_rows(protocol, {"xyz": 1.0, "": 1.0, "abcabc": 2.0, "abcab": 1.0})
    assert [protocol.alphabet.text(r.tobytes()) for r in rows] == ["abcab"]
    assert weight.tolist() == [3.0]
    rng = np.random.default_rng(3)
    reports = simulate(SURVEY, WORDS.draw(20_000, rng), rng=rng)
    assert "abc" in discover(SURVEY, reports, "word", words=["xyz"]).strings


def test_accept_applies_to_listed_strings() -> None:
    rng = np.random.default_rng(4)
    reports = simulate(SURVEY, WORDS.draw(20_000, rng), rng=rng)
    found = discover(SURVEY, reports, "word", words=WORDS.values, accept="c.*")
    assert found.strings
    assert all(s.startswith("c") for s in found.strings)
