"""Local hashes as rows and as counts: against the client's own arithmetic, report by report."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from deniable import associate, decode, discover, simulate
from deniable.analysis.categories import candidates_of
from deniable.columns import ReportBatch
from deniable.errors import InputError
from deniable.inference.models import Candidates, model_of
from deniable.inference.models.local_hash import HashModel, HashReports, support_counts
from deniable.mechanisms import LocalHash
from deniable.protocols import Prefixes
from deniable.results import Discovery, Result
from deniable.simulation import Population, contingency, correlated, zipf
from tests.single_reports import single_reports
from tests.surveys import make_survey

SURVEY = make_survey(
    """
[questions.word]
kind = "string"
mechanism = "localhash"
epsilon = 3.0
[questions.word.dictionary]
protocol = "prefixes"
max_length = 5
alphabet = "a-f"
levels = [2, 3, 4, 5, 5]

[questions.place]
kind = "string"
mechanism = "localhash"
epsilon = 3.0
[questions.place.dictionary]
protocol = "prefixes"
max_length = 4
alphabet = "a-f"
levels = [2, 3, 4, 4]

[questions.page]
kind = "string"
epsilon = 3.0
cohorts = 16

[questions.theme]
kind = "choice"
options = ["light", "dark"]
epsilon = 2.0
""",
    name="hashed",
)
WORDS = ("ab", "abc", "abcde", "fade", "bead", "cab", "facea")
PLACES = ("bad", "ad", "deaf")
CLIENTS = 40_000
QUESTION = SURVEY.question("word")
MECHANISM = QUESTION.protocol.mechanisms[0]


def model(names: tuple[str, ...] = WORDS) -> HashModel:
    found = model_of(candidates_of(QUESTION, names))
    assert isinstance(found, HashModel)
    return found


def count(batch: ReportBatch) -> HashReports:
    return model().counter()(batch.column("word"))


@pytest.fixture(scope="module")
def batch() -> ReportBatch:
    rng = np.random.default_rng(3)
    table = correlated(zipf(7), np.array([0.5, 0.3, 0.2]), strength=0.5)
    both = contingency(table, word=WORDS, place=PLACES).draw(CLIENTS, rng)
    page = Population(("p", "q", "r"), np.array([0.5, 0.3, 0.2])).draw(CLIENTS, rng)
    theme = Population(("light", "dark"), np.array([0.7, 0.3])).draw(CLIENTS, rng)
    return simulate(SURVEY, {**both, "page": page, "theme": theme}, rng=rng)


def client_rows(batch: ReportBatch, count: int) -> np.ndarray:
    """P(number | word), from the client's tokens, levels and filter."""
    protocol, m = QUESTION.protocol, MECHANISM
    assert isinstance(protocol, Prefixes)
    assert isinstance(m, LocalHash)
    rows = np.empty((count, len(WORDS)))
    for r, report in enumerate(single_reports(batch.select(slice(0, count)))):
        (level,), (sent,) = report.answers[0].clear, report.answers[0].slots
        for i, word in enumerate(WORDS):
            length = protocol.levels[level].length
            if length <= len(word) and length < protocol.max_length:
                rows[r, i] = 1 / m.values
                continue
            slot = protocol.parts[0].slots[level].mechanism
            true = slot.number(protocol.token(word, 0, level), report.cohort)
            q, p = float(m.noise.q_star), m.noise.p / 2**32
            rows[r, i] = q if true == int.from_bytes(sent, "little") else p
    return rows


def test_rows_are_the_clients_probabilities(batch: ReportBatch) -> None:
    column = batch.select(slice(0, 500)).column("word")
    found = model().likelihood(column.bits, column.stratum)
    expected = client_rows(batch, 500)
    np.testing.assert_allclose(found.rows.max(axis=1), 1)
    np.testing.assert_allclose(found.rows * np.exp(found.log_scale)[:, None], expected, rtol=1e-5)
    share = np.array([0.3, 0.1, 0.1, 0.1, 0.05, 0.05, 0.1, 0.2])
    mixed = expected @ share[:-1] + share[-1] / MECHANISM.bound
    mixture = model().mixture_log_likelihood(column.bits, column.stratum, share)
    np.testing.assert_allclose(np.exp(mixture), mixed)


def test_support_is_counted_report_by_report(batch: ReportBatch) -> None:
    some = batch.select(slice(0, 2000))
    counts, design = support_counts(count(some), model())
    expected = client_rows(some, 2000) == float(MECHANISM.noise.q_star)
    informative = candidates_of(QUESTION, WORDS).informative
    seen = np.array([[r.answers[0].clear[0], r.cohort] for r in single_reports(some)])
    for i in range(len(WORDS)):
        at = design.positions[:, i, 0]
        rows = np.flatnonzero(at >= 0)
        assert set(design.slot[rows]) == set(np.flatnonzero(informative[:, i]))
        supported = expected[informative[seen[:, 0], i], i].sum()
        assert counts.ones[rows, at[rows]].sum() == supported
    # A report supports one cell in g of all that are counted.
    share = counts.ones.sum() / (counts.total.sum() * design.bits)
    assert share == pytest.approx(1 / MECHANISM.bound, rel=0.02)


def test_counts_of_shards_add(batch: ReportBatch) -> None:
    parts = [batch.select(slice(0, 100)), batch.select(slice(100, 300))]
    both = count(parts[0]) + count(parts[1])
    whole = count(batch.select(slice(0, 300)))
    assert both.reports == whole.reports
    assert support_counts(both, model())[0].ones.tolist() == (
        support_counts(whole, model())[0].ones.tolist()
    )


@pytest.mark.slow
def test_decode_gives_each_word_its_share(batch: ReportBatch) -> None:
    """17 estimates, 4.5 standard errors: false alarm 1e-4."""
    absent = ("dad", "bed", "ade", "abcd", "abcdf", "fadea", "faced", "ba", "da", "ea")
    found = decode(SURVEY, batch, "word", (*WORDS, *absent))
    truth = np.append(zipf(7), np.zeros(len(absent)))
    assert (np.abs(found.estimate - truth) < 4.5 * found.standard_error).all()
    assert found.detected[:5].all() and not found.detected[7:].any()
    assert decode(SURVEY, batch, "word", []).mass_unexplained.estimate == 1
    few = batch.select(slice(0, 0))
    with pytest.raises(InputError, match="no reports to analyse"):
        decode(SURVEY, few, "word", WORDS)


def test_strings_cut_alike_are_one(batch: ReportBatch) -> None:
    found = decode(SURVEY, batch, "word", ["ab", "faceaa", "faceab"])
    assert found.groups == ((1, 2),)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("other", "candidates", "expected"),
    [
        ("place", {"place": PLACES}, correlated(zipf(7), np.array([0.5, 0.3, 0.2]), strength=0.5)),
        ("page", {"page": ("p", "q", "r")}, np.outer(zipf(7), [0.5, 0.3, 0.2])),
        ("theme", {}, np.outer(zipf(7), [0.7, 0.3])),
    ],
)
def test_words_are_associated_with_every_kind(
    batch: ReportBatch, other: str, candidates: dict[str, Any], expected: np.ndarray
) -> None:
    """Some 60 cells, 4.5 standard errors: false alarm below 1e-3."""
    joint = associate(SURVEY, batch, ["word", other], candidates={"word": WORDS, **candidates})
    assert joint.reports == CLIENTS
    assert joint.labels[0][:2] == ("ab", "abc")
    for i, name in enumerate(joint.labels[0]):
        for k in range(expected.shape[1]):
            if name in WORDS:
                error = joint.table[i, k] - expected[WORDS.index(name), k]
                assert abs(error) < 4.5 * joint.standard_error[i, k]
    p_value = joint.test().p_value
    assert p_value < 1e-6 if other == "place" else p_value > 1e-4


def test_the_papers_model_of_bits_is_refused(batch: ReportBatch) -> None:
    with pytest.raises(InputError, match="local hashing"):
        associate(
            SURVEY, batch, ["word", "theme"], candidates={"word": WORDS}, top=2, other="product"
        )


@pytest.mark.slow
def test_what_was_discovered_is_a_list_of_candidates(batch: ReportBatch) -> None:
    found = {name: discover(SURVEY, batch, name) for name in ("word", "place")}
    joint = associate(SURVEY, batch, ["word", "place"], candidates=found)
    listed = {name: d.strings for name, d in found.items()}
    by_text = associate(SURVEY, batch, ["word", "place"], candidates=listed)
    np.testing.assert_array_equal(joint.table, by_text.table)
    again = Result.from_json(found["word"].to_json())
    assert isinstance(again, Discovery)
    np.testing.assert_array_equal(again.symbols, found["word"].symbols)
    # Symbols of one question say nothing in another: there the texts count.
    elsewhere = candidates_of(SURVEY.question("place"), found["word"])
    assert elsewhere.symbols is not None and elsewhere.symbols.shape[1] == 4
    assert candidates_of(SURVEY.question("page"), found["word"]).symbols is None
    nothing = replace(found["word"], strings=())
    with pytest.raises(InputError, match="no strings were discovered"):
        decode(SURVEY, batch, "word", nothing)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"positions": np.zeros((3, 2, 1), np.int32)}, "2 candidates but 1 labels"),
        ({"slot": np.zeros(2, np.int64)}, "one entry for each"),
        ({"keep": 0.1}, "q must be above 1/5"),
        ({"positions": np.full((3, 1, 1), 25, np.int32)}, "must lie in 0..24"),
    ],
)
def test_wrong_cells_are_refused(changes: dict[str, Any], message: str) -> None:
    good = HashModel(np.zeros((3, 1, 1), np.int32), 5, 2, 0.5, labels=("a",))
    with pytest.raises(InputError, match=message):
        replace(good, **changes)


def test_wrong_reports_are_refused() -> None:
    hashed = HashModel(np.zeros((3, 1, 1), np.int32), 5, 2, 0.5, labels=("a",))
    number = np.zeros((2, 1), np.uint8)
    with pytest.raises(InputError, match="stratum as integers"):
        hashed.likelihood(number, np.zeros(1, np.int32))
    with pytest.raises(InputError, match="strata below 15"):
        hashed.likelihood(number, np.array([0, 15]))
    with pytest.raises(InputError, match="numbers below 5"):
        hashed.likelihood(np.array([[0], [5]], np.uint8), np.zeros(2, np.int32))


def test_no_candidates_and_no_reports() -> None:
    none = model_of(Candidates(QUESTION, (), np.empty((0, 5), np.uint8)))
    assert isinstance(none, HashModel)
    counts, design = support_counts(HashReports(()), none)
    assert counts.reports == 0 and design.candidates == 0
