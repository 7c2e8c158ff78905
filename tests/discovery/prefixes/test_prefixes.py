"""Discovery from prefixes: its parts against plain computations, and whole small discoveries."""

from __future__ import annotations

import numpy as np
import pytest

from deniable.analysis.source import Source
from deniable.columns import ReportBatch
from deniable.discovery.prefixes.run import discover_prefixes
from deniable.discovery.prefixes.search import search
from deniable.discovery.shared.character_model import CharacterModel, rows_of
from deniable.discovery.shared.evidence import ScoreTables
from deniable.discovery.shared.refit import refit
from deniable.discovery.shared.tables import MassTables, debiased, tables_of
from deniable.discovery.shared.tally import tally_of
from deniable.discovery.shared.testing import HashTest, allowances
from deniable.discovery.whole_domain.mixture import mixture_of
from deniable.errors import InputError
from deniable.mechanisms import LocalHash
from deniable.protocols import Alphabet
from deniable.simulation import simulate
from deniable.simulation.coded import Coded
from deniable.survey import Survey
from tests.single_reports import single_reports

TOML = """
name = "words"
version = 1
owner = "tests"
description = "prefixes"
expires = 2999-12-31
collect = "once"
[questions.word]
kind = "string"
{mechanism}
epsilon = 4.394
[questions.word.dictionary]
protocol = "prefixes"
max_length = 7
alphabet = "a-f"
levels = [2, 3, 4, 5, 6, 7, 7]
"""
LOCAL = 'mechanism = "localhash"'
BLOOM = "bits = 1024\ncohorts = 16"
WORDS = ("abc", "abcdef", "feed", "decade", "facade", "bead", "ab", "decafaced")
SHARES = np.array([0.2, 0.1, 0.2, 0.15, 0.1, 0.1, 0.1, 0.05])


def given(batch: ReportBatch) -> Source:
    half = len(batch) // 2
    return Source([batch.select(slice(0, half)), batch.select(slice(half, None))], batch.survey)


def survey(mechanism: str = LOCAL) -> Survey:
    return Survey.from_toml(TOML.format(mechanism=mechanism))


def reports(s: Survey, words: tuple[str, ...], shares: object, n: int, seed: int) -> Source:
    rng = np.random.default_rng(seed)
    codes = rng.choice(len(words), n, p=shares).astype(np.int32)
    return given(simulate(s, Coded(words, codes), rng=rng))


@pytest.fixture(scope="module")
def tables() -> MassTables:
    s = survey()
    return tables_of(reports(s, WORDS, SHARES, 60_000, 1), s.questions[0])


def test_tables_agree_with_counting_report_by_report() -> None:
    s = survey()
    batch = ReportBatch.concat(reports(s, WORDS, SHARES, 300, 2).batches())
    t = tables_of(given(batch), s.questions[0])
    m = s.questions[0].protocol.mechanisms[0]
    assert isinstance(m, LocalHash)
    level, family = 0, 3
    here = [
        r for r in single_reports(batch)
        if r.answers[0].clear == (level,) and r.cohort // m.lines == family
    ]  # fmt: skip
    support = np.array(
        [
            sum(m.on_line(v, r.cohort % m.lines) == r.answers[0].slots[0][0] for r in here)
            for v in range(m.cells)
        ]
    )
    q, p = float(m.noise.q_star), 1 / m.values
    expected = (support / len(here) - p) / (q - p)
    np.testing.assert_allclose(t.mass[level, family], expected, atol=2e-6)


@pytest.mark.parametrize("mechanism", [LOCAL, BLOOM])
def test_masses_come_back_within_their_errors(mechanism: str) -> None:
    """False alarm below 1e-4 a word: four standard errors."""
    s = survey(mechanism)
    t = tables_of(reports(s, WORDS, SHARES, 60_000, 3), s.questions[0])
    rows = rows_of(t.protocol.alphabet, WORDS, 7)
    mass, error = refit(t, rows, np.ones(t.families, bool))
    assert (np.abs(mass - SHARES) < 4 * error).all()
    left = t.without(rows, SHARES)
    spread = (left**2 * t.count[:, :, None]).mean() / t.noise
    assert 0.95 < spread < 1.1 < (t.mass**2 * t.count[:, :, None]).mean() / t.noise


def test_the_effect_of_a_string_is_what_its_reports_do() -> None:
    """One string that everyone holds: tables minus its effect are noise. 6 standard errors."""
    s = survey()
    t = tables_of(reports(s, ("feed",), [1.0], 200_000, 4), s.questions[0])
    left = t.without(rows_of(t.protocol.alphabet, ["feed"], 7), np.ones(1))
    line = left.reshape(*left.shape[:2], -1, t.line)
    cell = int(t.positions(0, rows_of(t.protocol.alphabet, ["feed"], 7))[0, 0])
    same_line = np.delete(line[0, 0, cell // t.line], cell % t.line)
    assert abs(same_line.mean()) < 6 * np.sqrt(t.noise / t.count[0, 0] / t.line)


def test_evidence_is_the_sum_of_the_cells(tables: MassTables) -> None:
    families = np.arange(tables.families) < 5
    evidence = ScoreTables.of(tables, tables.mass, families)
    rows = rows_of(tables.protocol.alphabet, WORDS, 7)
    cells = tables.positions(2, rows)
    plain = sum(evidence.entry[2, c][cells[c]] for c in range(5))
    np.testing.assert_allclose(evidence.sums(2, rows), plain, rtol=1e-5)
    assert (evidence.entry[:, 5:] == 0).all()


def test_character_model_sums_to_one_and_counts_by_hand() -> None:
    alphabet = Alphabet("abc")
    model = CharacterModel.uniform(alphabet)
    np.testing.assert_allclose(
        model.code(rows_of(alphabet, ["", "abca"], 4)), np.log(4) * np.array([1, 4])
    )
    learnt = model.learnt(rows_of(alphabet, ["ab", "ab", "ac"], 4))
    np.testing.assert_allclose(np.exp(learnt.log_p).sum(axis=1), 1, rtol=1e-5)
    # Order 0: 8 symbols in all, 4 different. a: 3, b: 2, c: 1, end: 2 → (n + 6/4)/(8 + 6).
    first = np.array([3, 2, 1, 3]) + 6 / 4
    first /= first.sum()
    # At the start only a was seen, three times: orders 1 and 2 say (3 + 3·P)/(3 + 3).
    second = (3 + 3 * first[0]) / 6
    third = (3 + 3 * second) / 6
    start = np.exp(learnt.of(rows_of(alphabet, [""], 4), 0))[0, 0]
    assert start == pytest.approx(third, rel=0.05)


def test_search_finds_what_is_heavy(tables: MassTables) -> None:
    evidence = ScoreTables.of(tables, tables.mass, np.ones(tables.families, bool))
    found, looked = search(evidence, CharacterModel.uniform(tables.protocol.alphabet), 50)
    best = found.some(np.argsort(-found.odds)[:30])
    names = {tables.protocol.alphabet.text(r.tobytes()) for r in best.rows}
    assert {"abc", "feed", "decade", "bead"} <= names
    assert looked > 1000


def test_p_values_of_strings_nobody_holds_are_uniform(tables: MassTables) -> None:
    """Over 20,000 absent strings; each bound is 5 standard errors of a binomial: 1e-6."""
    test = HashTest(tables, tables.mass, (4, 5, 6), tuple(range(5, 16)))
    rng = np.random.default_rng(5)
    rows = rng.integers(0, 6, (20_000, 7)).astype(np.uint8)
    p = test.p_values(rows)
    for level in (0.5, 0.05, 0.005):
        error = np.sqrt(level / len(p))
        assert abs((p <= level).mean() - level) < 5 * error


def test_explained_strings_leave_less_noise_and_exact_p_values_at_every_level() -> None:
    """Absent strings against tables weighed by what the heavy words explain: 5 standard errors of a
    binomial; and the stated number of reports that tell as much is the spread that is seen."""
    s = survey()
    tally = tally_of(reports(s, WORDS, SHARES, 60_000, 1), s.questions[0])
    plain = debiased(tally)
    rows = rows_of(plain.protocol.alphabet, WORDS, 7)
    weighed = mixture_of(tally, plain, rows, SHARES).scores
    assert (weighed.count > 1.2 * plain.count).all()
    spread = (weighed.mass**2 * weighed.count[:, :, None]).mean() / weighed.noise
    assert spread == pytest.approx(1, abs=0.05)
    test = HashTest(weighed, weighed.mass, (4, 5, 6), tuple(range(5, 16)))
    absent = np.random.default_rng(5).integers(0, 6, (20_000, 7)).astype(np.uint8)
    p = test.p_values(absent)
    for level in (0.5, 0.05, 0.005):
        assert abs((p <= level).mean() - level) < 5 * np.sqrt(level / len(p))


def test_normal_p_values_would_not_be_uniform_among_heavy_strings(tables: MassTables) -> None:
    """The twin: noise alone, without the collisions that the hash brings, is far too narrow."""
    rng = np.random.default_rng(5)
    cell = rng.integers(0, tables.cells, (20_000, 16))
    z = tables.mass[6, np.arange(16), cell].sum(axis=1) / np.sqrt(
        (tables.noise / tables.count[6]).sum()
    )
    assert (z > 2.807).mean() > 2 * 0.0025


def test_a_removed_string_put_back_is_tested_as_if_it_had_stayed(tables: MassTables) -> None:
    row = rows_of(tables.protocol.alphabet, ["decade"], 7)
    stayed = HashTest(tables, tables.mass, (5, 6), (0, 1))
    removed = HashTest(tables, tables.without(row, np.array([0.15])), (5, 6), (0, 1))
    there = stayed.p_values(row)[0]
    assert removed.p_value_put_back(row[0], 0.15) == pytest.approx(there, rel=0.02)


def test_allowances_sum_to_alpha_and_favour_the_likely() -> None:
    odds, z = np.array([5.0, 0.0, -5.0, -20.0]), np.array([3.0, 3.0, 3.0, 3.0])
    allowed = allowances(odds, z, 0.05)
    assert 0.0499 < allowed.sum() <= 0.05
    assert (np.diff(allowed) < 0).all()
    assert len(allowances(np.zeros(0), np.zeros(0), 0.05)) == 0


@pytest.mark.parametrize("mechanism", [LOCAL, BLOOM])
def test_a_small_crowd_gives_its_words_and_no_others(mechanism: str) -> None:
    s = survey(mechanism)
    d = discover_prefixes(reports(s, WORDS, SHARES, 60_000, 6), s.questions[0])
    assert set(d.strings) == {*WORDS[:-1], "decafac"}  # cut at seven symbols
    assert list(d.estimate) == sorted(d.estimate, reverse=True)
    assert abs(d.mass_unexplained.estimate) < 0.1
    # Four standard errors: false alarm below 1e-4.
    assert abs(d.mass_at_end.estimate - 0.05) < 4 * d.mass_at_end.standard_error < 0.05
    assert d.mass_at_end.low < 0.05 < d.mass_at_end.high < 0.15
    only = discover_prefixes(
        reports(s, WORDS, SHARES, 60_000, 6), s.questions[0], accept=lambda w: w.startswith("a")
    )
    assert set(only.strings) == {"abc", "abcdef", "ab"}


def test_noise_gives_nothing() -> None:
    """Four crowds that answer nothing; all of them silent at α = .05 or the seeds were unlucky."""
    s = survey()
    found = [
        discover_prefixes(given(simulate(s, [None] * 5_000, rng=np.random.default_rng(i))),
                          s.questions[0])
        for i in range(4)
    ]  # fmt: skip
    assert [d.strings for d in found] == [()] * 4
    assert all((d.mass_at_end.low, d.mass_at_end.high) == (0, 1) for d in found), "nobody can tell"


def test_mistakes_are_named() -> None:
    s = survey("bits = 64\ncohorts = 1")
    with pytest.raises(InputError, match="at least 2 families"):
        discover_prefixes(reports(s, WORDS, SHARES, 100, 1), s.questions[0])
    two = survey("bits = 64\nhashes = 2")
    with pytest.raises(InputError, match="hashes = 1"):
        discover_prefixes(reports(two, WORDS, SHARES, 100, 1), two.questions[0])
