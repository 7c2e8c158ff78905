"""Discovery of whole strings: its parts against plain computations, and whole small discoveries."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.optimize import minimize

from deniable import discover
from deniable.analysis.source import Source
from deniable.cli.app import app
from deniable.discovery.shared.mixture import Mixture
from deniable.discovery.shared.screening import hashed_sums
from deniable.discovery.shared.string_models import CharacterModel, Lexicon
from deniable.discovery.shared.tables import MassTables
from deniable.discovery.shared.tally import Tally
from deniable.discovery.shared.testing import HashTest, LatticeTables
from deniable.discovery.whole_domain import string_domain as domain_module
from deniable.discovery.whole_domain.string_domain import StringDomain, StringWeights
from deniable.errors import InputError
from deniable.mechanisms import LocalHash
from deniable.planning import detectable, discoverable
from deniable.protocols import Alphabet
from deniable.protocols.alphabet import PAD, count_strings
from deniable.simulation import simulate
from deniable.simulation.coded import Coded
from deniable.survey import Survey, defaults
from tests.discovery import inputs
from tests.discovery.inputs import rows_of
from tests.surveys import survey_toml

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
max_length = 5
alphabet = "a-f"
{levels}
""",
    name="words",
)
LOCAL = 'mechanism = "localhash"'
BLOOM = "bits = 256\ncohorts = 16"
WORDS = ("abc", "deface", "feed", "cab", "facade", "bead", "ab", "")
SHARES = np.array([0.3, 0.2, 0.15, 0.1, 0.1, 0.08, 0.05, 0.02])
HELD = ("abc", "defac", "feed", "cab", "facad", "bead", "ab", "")  # cut at five symbols
ALL_LETTERS = Alphabet("abcdef")


def survey(mechanism: str = LOCAL, levels: str = "") -> Survey:
    return Survey.from_toml(TOML.format(mechanism=mechanism, levels=levels))


def tally(s: Survey, n: int = 60_000, seed: int = 1) -> Tally:
    rng = np.random.default_rng(seed)
    codes = rng.choice(len(WORDS), n, p=SHARES).astype(np.int32)
    return inputs.tally(Source(simulate(s, Coded(WORDS, codes), rng=rng), s), s.questions[0])


def mixture_of(t: Tally, strings: tuple[str, ...], start: float = 0.01) -> Mixture:
    rows = rows_of(ALL_LETTERS, strings, 5)
    return Mixture.of(MassTables.of(t), rows, np.full(len(rows), start)).fitted()


@pytest.fixture(scope="module")
def counted() -> Tally:
    return tally(survey())


# --- the domain ---------------------------------------------------------------------------------


@pytest.mark.parametrize("largest", [1_000_000, 40])
def test_every_string_is_scored_once(
    counted: Tally, largest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(domain_module, "MAX_RANGE", largest)
    evidence = MassTables.of(counted).scores.evidence()
    domain = StringDomain(6, 5)
    rows = domain.above(evidence, -np.inf)
    texts = {ALL_LETTERS.text(row.tobytes()) for row in rows}
    assert texts == {"".join(c) for n in range(6) for c in product("abcdef", repeat=n)}
    assert len(rows) == len(texts) == domain.strings == count_strings(6, 5) == 9331
    sums = evidence.sums(0, rows)
    least = float(np.sort(sums)[-100])
    some = domain.above(evidence, least)
    # A quarter of the sum must come from the first half of the families.
    families = (counted.families + 1) // 2
    half = hashed_sums(counted.header(0), rows, 5, evidence.entry[0, :families])
    high = (sums >= least) & (half >= 0.25 * least)
    assert {r.tobytes() for r in some} == {r.tobytes() for r in rows[high]}
    assert 80 < len(some) < 100


def test_long_strings_are_refused() -> None:
    with pytest.raises(InputError, match="up to max_length 23"):
        StringDomain(2, 24)
    assert defaults.prefix_lengths(2, 23) == [(23, 1.0)]
    assert len(defaults.prefix_lengths(2, 24)) > 2


# --- the mixture --------------------------------------------------------------------------------


def test_a_mixture_is_the_maximum_of_the_likelihood(counted: Tally) -> None:
    """Against a general minimiser of the likelihood, written out report by report."""
    strings = HELD[:4]
    m = counted.mechanism
    assert isinstance(m, LocalHash)
    got = mixture_of(counted, strings)
    slot = counted.protocol.parts[0].slots[0].mechanism
    own = np.array(
        [
            [slot.number(ALL_LETTERS.symbols(s, 5), cohort) for cohort in range(m.cohorts)]
            for s in strings
        ]
    )
    sent = counted.sent.reshape(m.cohorts, m.values)
    noise_p, noise_q = float(m.noise.p_star), float(m.noise.q_star)
    gain = noise_q - noise_p

    def loss(mass: np.ndarray) -> float:
        p = np.full(sent.shape, noise_p + gain * (1 - mass.sum()) / m.values)
        for numbers, f in zip(own, mass, strict=True):
            p[np.arange(m.cohorts), numbers] += gain * f
        return -float((sent * np.log(p)).sum())

    best = minimize(loss, np.full(4, 0.1), bounds=[(0, 0.5)] * 4, tol=1e-12)
    error = np.sqrt(np.diag(got.covariance))
    assert (np.abs(got.mass - best.x) < 0.02 * error).all()
    assert (np.abs(got.mass - SHARES[:4]) < 4 * error).all()  # 1e-4 a string


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", [LOCAL, BLOOM])
def test_standard_errors_agree_with_the_spread_of_many_trials(mechanism: str) -> None:
    """20 trials, 8 strings: the mean squared error, in standard errors, is within .45 of 1.

    The false-alarm rate is 1e-4 (chi-squared with 160 degrees of freedom).
    """
    s, squares = survey(mechanism), []
    for seed in range(20):
        got = mixture_of(tally(s, 10_000, seed), HELD)
        squares.append(((got.mass - SHARES) ** 2 / np.diag(got.covariance)).mean())
    assert abs(np.mean(squares) - 1) < 0.45


def test_explained_strings_reduce_the_variance(counted: Tally) -> None:
    """The score of an absent string has the predicted variance, far less than before."""
    rng = np.random.default_rng(2)
    absent = rng.integers(0, 6, (20_000, 5)).astype(np.uint8)
    spread = {}
    for strings in ((), HELD):
        evidence = mixture_of(counted, strings).scores.evidence()
        estimate = evidence.sums(0, absent) / evidence.precision[0]
        spread[len(strings)] = estimate.std()
        if strings:
            assert evidence.precision[0] ** -0.5 == pytest.approx(estimate.std(), rel=0.05)
    assert spread[8] < 0.8 * spread[0]


@pytest.mark.parametrize("mechanism", [LOCAL, BLOOM])
def test_p_values_of_absent_strings_are_uniform(mechanism: str) -> None:
    """Half of the mass is explained; each bound is 5 standard errors of a binomial (rate 1e-6)."""
    scores = mixture_of(tally(survey(mechanism)), HELD[:2]).scores
    test = HashTest(LatticeTables(scores, (0,), tuple(range(scores.tally.families))))
    rows = np.unique(np.random.default_rng(3).integers(0, 6, (40_000, 5)).astype(np.uint8), axis=0)
    held = {ALL_LETTERS.symbols(s, 5) for s in HELD}
    p = test.p_values(np.array([row for row in rows if row.tobytes() not in held]))
    for level in (0.5, 0.05, 0.005):
        assert abs((p <= level).mean() - level) < 5 * np.sqrt(level / len(p))
    assert (p <= 0.05).mean() > 0.03


def test_evidence_at_a_p_value(counted: Tally) -> None:
    scores = mixture_of(counted, HELD).scores
    test = HashTest(LatticeTables(scores, (0,), tuple(range(scores.tally.families))))
    evidence = scores.evidence()
    rows = np.random.default_rng(4).integers(0, 6, (5_000, 5)).astype(np.uint8)
    above = evidence.sums(0, rows) >= test.evidence_at(0.01)
    assert np.mean(above == (test.p_values(rows) <= 0.01)) > 0.999


# --- weights ------------------------------------------------------------------------------------


def every_string() -> np.ndarray:
    return np.concatenate(
        [
            np.full((1, 4), PAD, np.uint8),
            *(
                np.array([(*c, *[PAD] * (4 - n)) for c in product(range(3), repeat=n)], np.uint8)
                for n in range(1, 5)
            ),
        ]
    )


@pytest.mark.parametrize("words", [(), ("ab", "cab")])
@pytest.mark.parametrize("known", [0, 12])
def test_weights_sum_to_one_over_the_domain(words: tuple[str, ...], known: int) -> None:
    alphabet = Alphabet("abc")
    start = Lexicon.of_words(alphabet, words, 4) if words else CharacterModel.uniform(alphabet)
    rows = every_string()
    ends = ["", *"abc", *("".join(two) for two in product("abc", repeat=2))]
    found = rows_of(alphabet, ["ab" + end for end in ends[:known]], 4)
    weights = StringWeights.after(len(rows), start, found)
    assert np.exp(weights.log(rows)).sum() == pytest.approx(1, abs=1e-4)
    assert (weights.share > 0.7) == bool(known)


def test_strings_without_structure_share_alpha_evenly() -> None:
    alphabet = Alphabet("abcdefghijklmnopqrstuvwxyz")
    rows = np.random.default_rng(5).integers(0, 26, (60, 6)).astype(np.uint8)
    weights = StringWeights.after(count_strings(26, 6), CharacterModel.uniform(alphabet), rows)
    assert weights.share < 0.1


@pytest.mark.parametrize("known", [7, 10])
def test_known_strings_that_are_left_out_weigh_like_new_ones(known: int) -> None:
    """What strings had to exceed must not follow from weights that they taught themselves."""
    start = CharacterModel.uniform(Alphabet("abcdefghij"))
    rows = np.random.default_rng(6).integers(0, 10, (known + 400, 4)).astype(np.uint8)
    weights = StringWeights.after(count_strings(10, 4), start, rows[:known])
    taught, new = weights.log(rows[:known]), weights.log(rows[known:])
    left_out = weights.log_left_out(start, rows[:known])
    assert left_out.mean() == pytest.approx(new.mean(), abs=0.15)
    if known >= domain_module.MIN_STRINGS_TO_LEARN:
        assert taught.mean() > new.mean() + 0.3  # the twin
    assert not len(weights.log_left_out(start, rows[:0]))


# --- the whole way ------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", [LOCAL, BLOOM])
def test_common_strings_are_discovered_and_no_others(mechanism: str) -> None:
    s = survey(mechanism)
    rng = np.random.default_rng(6)
    codes = rng.choice(len(WORDS), 60_000, p=SHARES).astype(np.int32)
    reports = simulate(s, Coded(WORDS, codes), rng=rng)
    found = discover(s, reports, "word")
    assert set(found.strings) == set(HELD)
    assert found.candidates == 9331 and found.reading == "whole strings"
    assert list(found.estimate) == sorted(found.estimate, reverse=True)
    assert (found.p_value <= found.level).all() and (found.level < 0.05).all()
    assert abs(found.mass_found.estimate - 1) < 4 * found.mass_found.standard_error
    assert [stage.name for stage in found.stages][:3] == [
        "tally",
        "look at every string",
        "round 1",
    ]
    assert set(discover(s, reports, "word", accept="[a-c]*").strings) == {"abc", "cab", "ab", ""}
    assert set(discover(s, reports, "word", words=("bead", "feed")).strings) == set(HELD)


@pytest.mark.slow
def test_no_reports_and_no_answers_give_no_strings() -> None:
    """Eight trials without answers: at a rate of .05, three have a string once in 170 times."""
    s, wrong = survey(), 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        wrong += bool(discover(s, simulate(s, [None] * 3_000, rng=rng), "word").strings)
    assert wrong < 3
    nobody = discover(s, simulate(s, [], rng=rng), "word")
    assert nobody.strings == () and not nobody.tested


def test_small_domains_report_whole_strings(tmp_path: Path) -> None:
    file = tmp_path / "survey.toml"
    for levels, said in (("", "whole strings only"), ("levels = [3, 5]", "leave levels out")):
        file.write_text(TOML.format(mechanism=LOCAL, levels=levels))
        assert said in " ".join(CliRunner().invoke(app, ["check", str(file)]).output.split())
    whole = survey().questions[0]
    assert whole.protocol.canonical()["levels"] == [[5, 2**32]]
    listed = detectable(whole, 1e5, candidates=9331)
    # `discoverable` supposes that common strings are found first, and no longer disturb: 6% less.
    assert 0.92 * listed < discoverable(whole, 1e5) < 0.97 * listed


def test_invalid_surveys_are_refused() -> None:
    for mechanism, length, says in (
        ("bits = 16\ncohorts = 8", 12, "families"),
        (LOCAL, 20, "several prefix lengths"),
    ):
        text = TOML.format(mechanism=mechanism, levels=f"levels = [{length}]")
        refused = Survey.from_toml(text.replace("max_length = 5", f"max_length = {length}"))
        with pytest.raises(InputError, match=says):
            discover(refused, simulate(refused, ["a"] * 1_000, rng=1), "word")
