"""Discovery from prefixes: its parts against plain computations, and whole small discoveries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from deniable import discover
from deniable.analysis.source import Source
from deniable.columns import ReportBatch
from deniable.discovery.prefixes.search import SAMPLED, sampling_stride, search
from deniable.discovery.shared.mixture import Mixture
from deniable.discovery.shared.string_models import CharacterModel
from deniable.discovery.shared.tables import MassTables
from deniable.discovery.shared.tally import NumberTally
from deniable.discovery.shared.testing import HashTest, LatticeTables
from deniable.errors import InputError
from deniable.inference.power.cutoffs import cutoff_height, cutoffs_at
from deniable.mechanisms import LocalHash
from deniable.protocols import Alphabet
from deniable.results import Discovery
from deniable.simulation import simulate
from deniable.simulation.coded import Coded
from deniable.survey import Survey
from tests.discovery.inputs import masses, rows_of
from tests.single_reports import single_reports
from tests.surveys import make_survey, survey_toml

# Some strings are longer than the questions allow, on purpose.
pytestmark = pytest.mark.filterwarnings("ignore::deniable.errors.LossyAnswerWarning")

TOML = survey_toml(
    """
[questions.word]
kind = "string"
{mechanism}
epsilon = 4.394
[questions.word.dictionary]
protocol = "prefixes"
max_length = 7
alphabet = "a-f"
levels = [2, 3, 4, 5, 6, 7, 7]
""",
    name="words",
)
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


def discovered(source: Source, accept: Callable[[str], bool] | None = None) -> Discovery:
    return discover(source.survey, list(source.batches()), "word", accept=accept)


@pytest.fixture(scope="module")
def tables() -> MassTables:
    s = survey()
    return masses(reports(s, WORDS, SHARES, 60_000, 1), s.questions[0])


def test_tables_agree_with_counting_report_by_report() -> None:
    s = survey()
    batch = ReportBatch.concat(reports(s, WORDS, SHARES, 300, 2).batches())
    t = masses(given(batch), s.questions[0])
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
def test_estimated_masses_agree_with_the_truth(mechanism: str) -> None:
    """The false-alarm rate is below 1e-4 per word: four standard errors."""
    s = survey(mechanism)
    t = masses(reports(s, WORDS, SHARES, 60_000, 3), s.questions[0])
    rows = rows_of(t.tally.protocol.alphabet, WORDS, 7)
    mass, error = t.fit(rows)
    assert (np.abs(mass - SHARES) < 4 * error).all()
    left = t.without(rows, SHARES).mass
    spread = (left**2 * t.reports[:, :, None]).mean() / t.noise
    assert 0.95 < spread < 1.1 < (t.mass**2 * t.reports[:, :, None]).mean() / t.noise


def test_removing_the_effect_of_a_string_leaves_noise() -> None:
    """All clients hold one string; tables minus its effect are noise, within 6 standard errors."""
    s = survey()
    t = masses(reports(s, ("feed",), [1.0], 200_000, 4), s.questions[0])
    assert isinstance(t.tally, NumberTally)
    row, base = rows_of(t.tally.protocol.alphabet, ["feed"], 7), t.tally.base
    left = t.without(row, np.ones(1)).mass
    line = left.reshape(*left.shape[:2], -1, base)
    cell = int(t.tally.positions(0, row)[0, 0])
    same_line = np.delete(line[0, 0, cell // base], cell % base)
    assert abs(same_line.mean()) < 6 * np.sqrt(t.noise / t.reports[0, 0] / base)


def test_evidence_is_the_sum_of_the_cells(tables: MassTables) -> None:
    evidence = tables.scores.evidence(np.arange(tables.tally.families) < 5)
    rows = rows_of(tables.tally.protocol.alphabet, WORDS, 7)
    cells = tables.tally.positions(2, rows)
    plain = sum(evidence.entry[2, c][cells[c]] for c in range(5))
    np.testing.assert_allclose(evidence.sums(2, rows), plain, rtol=1e-5)
    assert (evidence.entry[:, 5:] == 0).all()


def test_character_model_sums_to_one_and_counts_by_hand() -> None:
    alphabet = Alphabet("abc")
    model = CharacterModel.uniform(alphabet)
    np.testing.assert_allclose(
        model.description_length(rows_of(alphabet, ["", "abca"], 4)), np.log(4) * np.array([1, 4])
    )
    learnt = model.trained(rows_of(alphabet, ["ab", "ab", "ac"], 4))
    np.testing.assert_allclose(np.exp(learnt.log_p).sum(axis=1), 1, rtol=1e-5)
    # Order 0: 8 symbols in all, 4 different. a: 3, b: 2, c: 1, end: 2 → (n + 6/4)/(8 + 6).
    first = np.array([3, 2, 1, 3]) + 6 / 4
    first /= first.sum()
    # At the start only a was seen, three times: orders 1 and 2 say (3 + 3·P)/(3 + 3).
    second = (3 + 3 * first[0]) / 6
    third = (3 + 3 * second) / 6
    start = np.exp(learnt.next_symbol(rows_of(alphabet, [""], 4), 0))[0, 0]
    assert start == pytest.approx(third, rel=0.05)


@pytest.mark.parametrize("unlikely", [-np.inf, -8.5])
def test_search_finds_the_common_strings(tables: MassTables, unlikely: float) -> None:
    model = CharacterModel.uniform(tables.tally.protocol.alphabet)
    found, limits = search(tables.scores.evidence(), model, 50, unlikely)
    best = found.take(np.argsort(-found.odds)[:30])
    names = {tables.tally.protocol.alphabet.text(r.tobytes()) for r in best.rows}
    assert {"abc", "feed", "decade", "bead"} <= names
    assert limits.scored > 1000


def test_a_search_keeps_the_likeliest_if_there_are_too_many(
    tables: MassTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    alphabet = tables.tally.protocol.alphabet
    learnt = CharacterModel.uniform(alphabet).trained(rows_of(alphabet, ["decade"] * 50, 7))
    most = 30
    monkeypatch.setattr("deniable.discovery.prefixes.search.MAX_CHILDREN", most)
    found, limits = search(tables.scores.evidence(), learnt, 10**6, -np.inf)
    steps = 7  # symbols: those that ended earlier are scored beside the likeliest
    assert 0 < limits.scored <= most * steps * tables.tally.levels
    assert "decade" in {alphabet.text(row.tobytes()) for row in found.rows}


def test_a_search_leaves_out_what_the_evidence_excludes(tables: MassTables) -> None:
    evidence = tables.scores.evidence()
    silent = replace(evidence, entry=0 * evidence.entry, precision=0 * evidence.precision)
    model = CharacterModel.uniform(tables.tally.protocol.alphabet)
    for known in (evidence, silent):
        whole, some = (search(known, model, 10**6, u)[1].scored for u in (-np.inf, -8.5))
        assert (some < 0.5 * whole) == (known is evidence)


def test_p_values_of_absent_strings_are_uniform_at_prefix_lengths(tables: MassTables) -> None:
    """20,000 absent strings; each bound is 5 standard errors of a binomial (rate 1e-6)."""
    test = HashTest(LatticeTables(tables.scores, (4, 5, 6), tuple(range(5, 16))))
    rng = np.random.default_rng(5)
    rows = rng.integers(0, 6, (20_000, 7)).astype(np.uint8)
    p = test.p_values(rows)
    for level in (0.5, 0.05, 0.005):
        error = np.sqrt(level / len(p))
        assert abs((p <= level).mean() - level) < 5 * error


@pytest.mark.slow
def test_explained_strings_leave_less_noise_and_exact_p_values() -> None:
    """P-values are uniform if common words are explained, within 5 standard errors of a binomial.

    The effective number of reports predicts the spread of the scores.
    """
    s = survey()
    plain = masses(reports(s, WORDS, SHARES, 60_000, 1), s.questions[0])
    rows = rows_of(plain.tally.protocol.alphabet, WORDS, 7)
    weighed = Mixture.of(plain, rows, SHARES).scores
    assert (weighed.effective > 1.2 * plain.reports).all()
    spread = (weighed.estimate**2 * weighed.effective[:, :, None]).mean() / weighed.noise
    assert spread == pytest.approx(1, abs=0.05)
    test = HashTest(LatticeTables(weighed, (4, 5, 6), tuple(range(5, 16))))
    absent = np.random.default_rng(5).integers(0, 6, (20_000, 7)).astype(np.uint8)
    p = test.p_values(absent)
    for level in (0.5, 0.05, 0.005):
        assert abs((p <= level).mean() - level) < 5 * np.sqrt(level / len(p))


def test_normal_p_values_would_not_be_uniform_among_heavy_strings(tables: MassTables) -> None:
    """The broken twin: a normal distribution of the noise ignores collisions, and is too narrow."""
    rng = np.random.default_rng(5)
    cell = rng.integers(0, tables.tally.cells, (20_000, 16))
    z = tables.mass[6, np.arange(16), cell].sum(axis=1) / np.sqrt(
        (tables.noise / tables.reports[6]).sum()
    )
    assert (z > 2.807).mean() > 2 * 0.0025


def test_a_removed_string_put_back_is_tested_as_if_it_had_stayed(tables: MassTables) -> None:
    row = rows_of(tables.tally.protocol.alphabet, ["decade"], 7)
    stayed = HashTest(LatticeTables(tables.scores, (5, 6), (0, 1)))
    removed = HashTest(LatticeTables(tables.without(row, np.array([0.15])).scores, (5, 6), (0, 1)))
    there = stayed.p_values(row)[0]
    assert removed.p_value_put_back(row[0], 0.15) == pytest.approx(there, rel=0.02)


def test_cutoffs_sum_to_alpha_and_favour_the_likely() -> None:
    odds, z = np.array([5.0, 0.0, -5.0, -20.0]), np.array([3.0, 3.0, 3.0, 3.0])
    cutoff = cutoffs_at(cutoff_height(odds, z, 0.05), odds, z)
    assert 0.0499 < cutoff.sum() <= 0.05 and (np.diff(cutoff) < 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", [LOCAL, BLOOM])
def test_common_strings_are_discovered_and_no_others(mechanism: str) -> None:
    s = survey(mechanism)
    d = discovered(reports(s, WORDS, SHARES, 60_000, 6))
    assert set(d.strings) == {*WORDS[:-1], "decafac"}  # cut at seven symbols
    assert list(d.estimate) == sorted(d.estimate, reverse=True)
    assert abs(d.mass_unexplained.estimate) < 0.1
    # Four standard errors: false alarm below 1e-4.
    assert abs(d.mass_at_end.estimate - 0.05) < 4 * d.mass_at_end.standard_error < 0.05
    assert d.mass_at_end.low < 0.05 < d.mass_at_end.high < 0.15
    given_a = discovered(reports(s, WORDS, SHARES, 60_000, 6), accept=lambda w: w.startswith("a"))
    assert set(given_a.strings) == {"abc", "abcdef", "ab"}


@pytest.mark.slow
def test_noise_gives_nothing() -> None:
    """Four trials without answers; at α = .05 all of them are empty with probability .81."""
    s = survey()
    found = [
        discovered(given(simulate(s, [None] * 5_000, rng=np.random.default_rng(i))))
        for i in range(4)
    ]
    assert [d.strings for d in found] == [()] * 4
    assert all((d.mass_at_end.low, d.mass_at_end.high) == (0, 1) for d in found), (
        "no string is known to end"
    )


def test_invalid_surveys_are_refused() -> None:
    two = survey("bits = 64\nhashes = 2")
    with pytest.raises(InputError, match="hashes = 1"):
        discovered(reports(two, WORDS, SHARES, 1_000, 1))


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("levels", ["", "levels = [2, 4, 4]"])
def test_filters_with_hardly_any_noise_give_their_strings(levels: str) -> None:
    """At ε = 12 other clients vary far more than the noise; the tests must not lose their scale."""
    s = make_survey(
        f"""
[questions.word]
kind = "string"
epsilon = 12.0
[questions.word.dictionary]
protocol = "prefixes"
max_length = 4
alphabet = "a-f"
{levels}
"""
    )
    words = ["fade"] * 500 + ["bed"] * 300 + ["ca"] * 200
    found = discover(s, simulate(s, {"word": words}, rng=np.random.default_rng(1)), "word")
    assert found.strings == ("fade", "bed", "ca")


@pytest.mark.parametrize("symbols", [27, 40])
def test_a_sample_of_children_has_all_symbols(symbols: int) -> None:
    """A stride of 27, or of 2, would see only some of the symbols that follow each prefix."""
    for children in (100, 27 * SAMPLED, 40 * SAMPLED + 7, 54 * SAMPLED):
        every = sampling_stride(children, symbols)
        seen = np.bincount(np.arange(0, symbols * every, every) % symbols, minlength=symbols)
        assert every >= children // SAMPLED and (seen == 1).all()
