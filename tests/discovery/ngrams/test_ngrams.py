"""Discovery by n-grams in small populations whose strings are known."""

from __future__ import annotations

from itertools import product
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest

from deniable.discovery import discover
from deniable.discovery.ngrams.gram_search import Neighbours, search
from deniable.discovery.ngrams.grams import assemble, compatible, gram_blocks, gram_count
from deniable.discovery.ngrams.paper_reading import pair_threshold
from deniable.discovery.shared.string_models import CharacterModel
from deniable.errors import InputError
from deniable.protocols import NGrams
from deniable.protocols.alphabet import OTHER, PAD, Alphabet
from deniable.results import Discovery, Result
from deniable.simulation import Population, simulate
from deniable.survey import Survey
from deniable.survey.toml_file import read_toml
from tests.discovery.inputs import rows_of
from tests.surveys import survey_toml

mpl.use("Agg")

TEXT = survey_toml(
    """
[questions.s]
kind = "string"
{noise}
bits = 64
hashes = 2
cohorts = 8
""",
    name="small",
)
DICTIONARY = """
[questions.s.dictionary]
protocol = "ngrams"
{settings}
"""


def survey_of(settings: str | None, noise: str = "p = 0.1\nq = 0.9") -> Survey:
    body = TEXT.format(noise=noise)
    return read_toml(body + (DICTIONARY.format(settings=settings) if settings else ""))


def reports_of(survey: Survey, values: dict[str, float], n: int, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    population = Population(tuple(values), np.array(list(values.values())))
    return simulate(survey, population.draw(n, rng), rng=rng)


WORDS = {"rabbit": 0.5, "hermit": 0.4, "cat": 0.1}


@pytest.mark.slow
@pytest.mark.parametrize("reading", ["paper", "fused"])
@pytest.mark.parametrize(
    "settings",
    [
        'max_length = 6\nalphabet = "a-z"\ngram = 2',
        'max_length = 6\nalphabet = "a-z"\ngram = 2\ngrams = 3',
        'max_length = 6\nalphabet = "a-z"\ngram = 3',
        'max_length = 6\nalphabet = "a-z"\ngram = 2\noverlap = true',
        'max_length = 8\nalphabet = "a-cehimrt"\ngram = 4',
        'max_length = 6\nalphabet = "bytes"\ngram = 1',
    ],
)
def test_every_shape_of_ngrams(settings: str, reading: str) -> None:
    """Strings of two lengths are discovered with every n, number of grams, overlap and alphabet."""
    survey = survey_of(settings)
    found = discover(survey, reports_of(survey, WORDS, 30_000), "s", reading=reading)
    assert set(found.strings) == set(WORDS)
    truth = np.array([WORDS[s] for s in found.strings])
    # Six settings, two readings, three strings: 4.5 standard errors are exceeded once in 4,000.
    assert np.all(np.abs(found.estimate - truth) < 4.5 * found.standard_error)
    assert found.candidates >= 3
    assert np.all(found.p_value <= found.level)


@pytest.mark.slow
@pytest.mark.parametrize("reading", ["paper", "fused"])
@pytest.mark.parametrize("gram", [1, 2])
def test_any_unicode_as_bytes(gram: int, reading: str) -> None:
    """UTF-8 of one to four bytes per character, and a trailing space, which is no padding."""
    words = {"naïve": 0.4, "日本": 0.3, "🦦a": 0.2, "a ": 0.1}
    survey = survey_of(f'max_length = 6\nalphabet = "bytes"\ngram = {gram}')
    found = discover(survey, reports_of(survey, words, 40_000), "s", reading=reading)
    assert set(found.strings) == set(words)


@pytest.mark.parametrize(
    ("delta", "expected"),
    [(0.02, {"rabbit", "hermes", "cat"}), (0.2, {"rabbit", "hermes"}), (0.45, {"rabbit"})],
)
def test_pairs_below_delta_are_no_edges(delta: float, expected: set[str]) -> None:
    """cat, hermes and rabbit have .1, .4 and .5 of the clients, and no gram in common."""
    survey = survey_of('max_length = 6\nalphabet = "a-z"\ngram = 2')
    reports = reports_of(survey, {"rabbit": 0.5, "hermes": 0.4, "cat": 0.1}, 30_000)
    found = discover(survey, reports, "s", reading="paper", delta=delta)
    assert set(found.strings) == expected


def test_overlapping_grams_agree_where_they_overlap() -> None:
    """No candidate is made of grams that contradict each other, for any delta.

    Of "abab" and "baba" every position has two grams, so 2^3 combinations, but only two strings.
    """
    survey = survey_of('max_length = 4\nalphabet = "ab"\ngram = 2\noverlap = true')
    reports = reports_of(survey, {"abab": 0.5, "baba": 0.5}, 20_000)
    found = discover(survey, reports, "s", reading="paper", delta=-1.0)
    assert set(found.strings) == {"abab", "baba"} and found.candidates == 2
    apart = survey_of('max_length = 4\nalphabet = "ab"\ngram = 2')
    reports = reports_of(apart, {"abab": 0.5, "baba": 0.5}, 20_000)
    loose = discover(apart, reports, "s", reading="paper", delta=-1.0)
    assert set(loose.strings) == {"abab", "baba"} and loose.candidates == 4


@pytest.mark.slow
def test_many_more_grams_than_are_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Screening keeps the grams that decoding needs."""
    monkeypatch.setattr("deniable.discovery.ngrams.gram_reports.MAX_DECODED", 100)
    monkeypatch.setattr("deniable.discovery.ngrams.gram_reports.MAX_SCREENED", 50)
    survey = survey_of('max_length = 6\nalphabet = "a-z"\ngram = 2')
    found = discover(survey, reports_of(survey, WORDS, 30_000), "s")
    assert set(found.strings) == set(WORDS)


def test_the_papers_reading_says_what_it_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    survey = survey_of('max_length = 4\nalphabet = "a-h"\ngram = 2\ngrams = 2')
    reports = reports_of(survey, {"abcd": 0.5, "efgh": 0.3, "hahc": 0.2}, 20_000)
    whole = discover(survey, reports, "s", reading="paper")
    assert set(whole.strings) == {"abcd", "efgh", "hahc"} and whole.truncation == ""
    monkeypatch.setattr("deniable.discovery.ngrams.paper_reading.MAX_GRAMS", 2)
    monkeypatch.setattr("deniable.discovery.ngrams.paper_reading.MAX_CANDIDATES", 1)
    cut = discover(survey, reports, "s", reading="paper")
    assert cut.strings == ("abcd",)
    assert "2 significant n-grams left out" in cut.truncation
    assert "more than 1 cliques" in cut.truncation
    assert ("grams used", 4, 2) in [(s.name, s.kept, s.dropped) for s in cut.stages]


def test_the_papers_figure() -> None:
    """rabbit and hermit are discovered; hebbit, a clique caused by noise, fails its test."""
    survey = survey_of('max_length = 6\nalphabet = "a-z"\ngram = 2')
    reports = reports_of(survey, {"rabbit": 0.5, "hermit": 0.5}, 20_000)
    found = discover(survey, reports, "s", reading="paper", delta=-1.0)
    assert set(found.strings) == {"rabbit", "hermit"}
    assert found.graph is not None
    candidates = {
        "".join(found.graph.labels[g][i] for g, i in enumerate(clique))
        for clique in found.graph.cliques
    }
    assert candidates >= {"rabbit", "hermit", "hebbit"}
    assert found.candidates == len(candidates)
    axes = found.plot(graph=True)
    assert {"ra", "bb", "it", "he", "rm"} <= {t.get_text() for t in axes.texts}
    truth = {"rabbit": 0.5, "hermit": 0.5}
    assert [t.get_text() for t in found.plot(truth=truth).get_yticklabels()] == list(found.strings)


def test_a_result_is_restored_from_json() -> None:
    survey = survey_of('max_length = 6\nalphabet = "a-z"\ngram = 2')
    found = discover(survey, reports_of(survey, WORDS, 20_000), "s", reading="paper")
    again = Result.from_json(found.to_json())
    assert isinstance(again, Discovery)
    assert again.strings == found.strings and again.stages == found.stages
    assert again.graph == found.graph and again.provenance == found.provenance
    np.testing.assert_array_equal(again.estimate, found.estimate)
    assert "pairs above" in found.stage_table() and "strings discovered" in str(found)


@pytest.mark.slow
def test_strings_that_accept_refuses_are_not_candidates() -> None:
    survey = survey_of('max_length = 6\nalphabet = "a-z"\ngram = 2')
    reports = reports_of(survey, WORDS, 20_000)
    for accept in ("[a-z]{6}", lambda text: len(text) == 6):
        assert set(discover(survey, reports, "s", accept=accept).strings) == {"rabbit", "hermit"}
    assert discover(survey, reports, "s", accept="x.*", reading="paper").candidates == 0


@pytest.mark.slow
def test_mass_that_fills_the_last_symbol() -> None:
    survey = survey_of('max_length = 6\nalphabet = "a-z"\ngram = 2')
    found = discover(survey, reports_of(survey, WORDS, 50_000), "s")
    assert found.mass_at_end is not None
    # One check: 4 standard errors are exceeded once in 16,000.
    assert abs(found.mass_at_end.estimate - 0.9) < 4 * found.mass_at_end.standard_error
    assert found.mass_at_end.standard_error < 0.1


def test_nothing_is_found_in_noise() -> None:
    """Clients without an answer give no string with either reading."""
    survey = survey_of('max_length = 4\nalphabet = "a-z"\ngram = 2')
    rng = np.random.default_rng(3)
    reports = simulate(survey, [None] * 5_000, rng=rng)
    for reading in ("paper", "fused"):
        assert discover(survey, reports, "s", reading=reading).strings == ()


@pytest.mark.parametrize(
    ("settings", "options", "message"),
    [
        (None, {}, "whole values only"),
        ('max_length = 4\nalphabet = "a-z"', {"reading": "best"}, "expected reading"),
        ('max_length = 4\nalphabet = "a-z"', {"accept": "("}, "regular expression"),
        ('max_length = 4\nalphabet = "a-z"', {"alpha": 1.0}, "alpha must lie"),
        ('max_length = 4\nalphabet = "a-z"', {"delta": 0.1}, "delta is the pair threshold"),
        ('max_length = 4\nalphabet = "a-z"', {"words": ["ab"]}, "words need protocol"),
    ],
)
def test_invalid_questions_and_options_are_refused(
    settings: str | None, options: dict[str, Any], message: str
) -> None:
    survey = survey_of(settings)
    reports = simulate(survey, ["ab"] * 100, rng=np.random.default_rng(0))
    with pytest.raises(InputError, match=message):
        discover(survey, reports, "s", **options)


def protocol_of(settings: str, noise: str = "p = 0.1\nq = 0.9") -> NGrams:
    protocol = survey_of(settings, noise).questions[0].protocol
    assert isinstance(protocol, NGrams)
    return protocol


def test_the_pair_threshold_is_the_papers_number() -> None:
    protocol = protocol_of('max_length = 4\nalphabet = "a-z"', "p = 0.25\nq = 0.32")
    assert pair_threshold(protocol, 10**6) == pytest.approx(0.0062, abs=5e-5)


@pytest.mark.parametrize("overlap", ["false", "true"])
def test_grams_that_fit_together_are_those_of_strings(overlap: str) -> None:
    """All grams of all strings over two letters, against the definition."""
    protocol = protocol_of(f'max_length = 4\nalphabet = "ab"\ngram = 2\noverlap = {overlap}')
    grams = np.concatenate(list(gram_blocks(protocol, rows=3)))
    assert len(grams) == gram_count(protocol) == len({g.tobytes() for g in grams})
    texts = ["".join(t) for n in range(5) for t in product("ab?", repeat=n)]
    rows = [protocol.alphabet.symbols(t, 4) for t in texts]
    for g in range(protocol.positions):
        for h in range(g + 1, protocol.positions):
            a, b = protocol.start(g), protocol.start(h)
            real = {(r[a : a + 2], r[b : b + 2]) for r in rows}
            fits = compatible(protocol, g, h, grams, grams)
            said = {(grams[i].tobytes(), grams[j].tobytes()) for i, j in np.argwhere(fits)}
            assert said == real
    cut = [np.array([list(r[protocol.start(g) :][:2]) for r in rows], np.uint8)
           for g in range(protocol.positions)]  # fmt: skip
    assert [r.tobytes() for r in assemble(protocol, cut)] == rows


def test_a_wide_beam_is_a_full_search() -> None:
    rng = np.random.default_rng(7)
    sizes = (4, 5, 3, 4)
    prior = [rng.normal(size=n).astype(np.float32) for n in sizes]
    gain = {
        (g, h): np.where(rng.random((sizes[g], sizes[h])) < 0.2, -np.inf,
                         rng.normal(size=(sizes[g], sizes[h]))).astype(np.float32)
        for g in range(4) for h in range(g + 1, 4)
    }  # fmt: skip
    scores = {}
    for nodes in product(*map(range, sizes)):
        pairs = sum(float(gain[g, h][nodes[g], nodes[h]]) for g, h in gain)
        scores[nodes] = pairs + sum(float(p[i]) for p, i in zip(prior, nodes, strict=True))
    best = sorted((s for s in scores.values() if s > -np.inf), reverse=True)
    wide = search(prior, gain, 1000)
    np.testing.assert_allclose(wide.score, best, atol=1e-4)
    assert all(
        scores[tuple(nodes)] == pytest.approx(s, abs=1e-4)
        for nodes, s in zip(wide.chosen.tolist(), wide.score, strict=True)
    )
    assert not wide.dropped and search(prior, gain, 20).dropped


@pytest.mark.parametrize("gram", [1, 2, 3])
def test_neighbours_by_hand(gram: int) -> None:
    """Against the models' own probabilities of whole strings: log P(left right) / P(left) P(right).

    "By itself" means without anything before, not at a string's beginning.
    """
    alphabet = Alphabet("abc")
    rows = rows_of(alphabet, ["abcabc", "abcab", "cabcab", "abca", "bcabca", "abc"] * 2, 6)
    order = min(2, gram)
    models = {k: CharacterModel(3, k, CharacterModel.uniform(alphabet).log_p[: 5**k]).trained(rows)
              for k in range(3)}  # fmt: skip

    def log_p(before: bytes, symbol: int) -> float:
        model = models[len(before)]
        row = np.frombuffer(before, np.uint8).reshape(1, -1)
        return float(model.next_symbol(row, len(before))[0, min(symbol, 3)])

    grams = [bytes(g) for g in product([0, 1, 2], repeat=gram)]
    grams += [g[:-1] + bytes([PAD]) for g in grams[:4]]
    table = np.array([list(g) for g in grams], np.uint8)
    got = Neighbours(alphabet, rows, gram).follows(table, table)
    for i, left in enumerate(grams):
        for j, right in enumerate(grams):
            expected = 0.0
            for t in range(gram) if left[-1] != PAD else ():
                expected += log_p((left + right[:t])[-order:], right[t])
                expected -= log_p(right[max(t - order, 0) : t], right[t])
            assert got[i, j] == pytest.approx(expected, abs=1e-4)


def test_characters_outside_the_alphabet_are_ignored() -> None:
    alphabet = Alphabet("abc")
    rows = rows_of(alphabet, ["abcabc"] * 9 + ["ab?abc"], 6)
    grams = np.array([[0, 1], [2, 0], [0, OTHER]], np.uint8)
    gain = Neighbours(alphabet, rows, 2).follows(grams, grams)
    assert gain[0, 1] > 0 > gain[0, 0]
    assert not gain[2].any() and not gain[:, 2].any()
    np.testing.assert_array_equal(gain, Neighbours(alphabet, rows[:9], 2).follows(grams, grams))


def test_too_few_reports_give_an_empty_result_with_a_reason() -> None:
    """With 60 positions, 1,000 clients do not report on all 1,770 pairs of them."""
    survey = survey_of('max_length = 120\nalphabet = "a-h"')
    found = discover(survey, reports_of(survey, {"bad": 0.5, "cafe": 0.5}, 1_000, 1), "s")
    assert found.strings == () and "too few reports" in found.truncation
    assert found.truncation in found.heading() and found.correction == "no string was tested"
