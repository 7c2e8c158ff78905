"""Exact ε: enumerate every output of whole reports of the real client, for all pairs of values.

Each survey is checked twice: the largest likelihood ratio equals the claimed bound (it holds, and
is tight), and each probability equals the formula. Five broken clients must fail.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from deniable.mechanisms import BitMechanism, base, bit_mechanism, noise
from deniable.survey import Answer, Survey, from_bytes
from deniable.survey.report import REPORT, header
from tests.enumeration import Distribution, distribution, expected, worst_log_ratio
from tests.surveys import survey_toml

HEADER = survey_toml(name="{name}", collect="{collect}", budget=1000)
HALF = Fraction(1, 2)


def survey(questions: str, collect: str = "repeatedly", name: str = "tiny") -> Survey:
    return Survey.from_toml(HEADER.format(name=name, collect=collect) + questions)


def claimed(s: Survey, days: int) -> float:
    return sum(m.loss_after(days) for q in s.questions for m in q.protocol.mechanisms)


def check_formula(s: Survey, value: dict[str, Any], found: Distribution, clear: Fraction) -> None:
    """Each probability is that of the clear fields times the product over the slots."""
    for outcome, probability in found.items():
        reports = [from_bytes(header(s, REPORT) + body, s) for body in outcome]
        want = clear
        for number, question in enumerate(s.questions):
            answers: list[Answer] = [r.answers[number] for r in reports]
            assert len({a.clear for a in answers}) == 1
            draw = answers[0].clear
            tokens = question.protocol.tokens(value.get(question.name), draw)
            for i, slot in enumerate(question.protocol.slots(draw)):
                m = slot.mechanism
                bits = m.true_bits(tokens[i], m.own_cohort(reports[0].cohort))
                outputs = [int.from_bytes(a.slots[i], "little") for a in answers]
                want *= expected(bits, outputs, m.width, m.noise)
        assert probability == want


def check_bound(s: Survey, found: list[Distribution], days: int) -> None:
    worst = worst_log_ratio(found)
    assert worst <= claimed(s, days), "the claimed ε does not hold"
    assert worst > claimed(s, days) - 1e-9, "the claimed ε is not tight on these values"


# --- choices and booleans: the whole survey, two days -----------------------------------------

COLOUR = """
[questions.colour]
kind = "choice"
options = ["red", "blue"]
p = 0.25
q = 0.75
f = 0.5
"""
DARK = """
[questions.dark]
kind = "boolean"
p = 0.5
q = 0.75
f = 0.5
"""
BASIC = survey(COLOUR + DARK)


def check_survey(s: Survey, values: list[dict[str, Any]], days: int) -> None:
    found = [distribution(s, value, days=days) for value in values]
    for value, d in zip(values, found, strict=True):
        check_formula(s, value, d, Fraction(1))
    check_bound(s, found, days)


@pytest.mark.slow
def test_whole_survey_of_choice_and_boolean() -> None:
    colours = ("red", "blue", "mauve", None)
    check_survey(BASIC, [{"colour": c, "dark": d} for c in colours for d in (True, False)], days=1)


@pytest.mark.slow
def test_choice_two_days_running() -> None:
    check_survey(survey(COLOUR), [{"colour": c} for c in ("red", "blue", "mauve", None)], days=2)


def test_boolean_four_days_running() -> None:
    check_survey(survey(DARK), [{"dark": d} for d in (True, False, None)], days=4)


def test_p_above_q_is_legal_and_bounded() -> None:
    s = survey('[questions.c]\nkind = "choice"\noptions = ["a", "b"]\np = 0.75\nq = 0.5\n', "once")
    values = [{"c": v} for v in ("a", "b", None)]
    check_bound(s, [distribution(s, v) for v in values], days=1)


# --- one string, every cohort, two days --------------------------------------------------------

STRING = survey("""
[questions.word]
kind = "string"
bits = 2
p = 0.25
q = 0.75
f = 0.5
cohorts = 2
""")
COHORTS = {"cohort": [(0, HALF), (1, HALF)]}


@pytest.mark.slow
def test_string_in_every_cohort_two_days_running() -> None:
    mechanism = STRING.questions[0].protocol.mechanisms[0]
    by_bits = {tuple(mechanism.true_bits(b"%d" % i, c) for c in (0, 1)): str(i) for i in range(30)}
    assert len(by_bits) == 4, "one string for each pattern of bits over the cohorts"
    odd = ["", "a" * 300, "\ud800", None]
    values = [{"word": w} for w in [*by_bits.values(), *odd]]
    found = [distribution(STRING, v, days=2, draws=COHORTS) for v in values]
    for value, d in zip(values, found, strict=True):
        check_formula(STRING, value, d, HALF)
    check_bound(STRING, found, days=2)


# --- n-grams: full string and two grams, positions in the clear ---------------------------------


def ngrams(name: str, collect: str, noise: str) -> Survey:
    return survey(
        f"""
[questions.word]
kind = "string"
bits = 2
cohorts = 1
{noise}
[questions.word.dictionary]
protocol = "ngrams"
max_length = 3
gram = 1
alphabet = "ab"
""",
        collect,
        name,
    )


FRESH = ("once", "p = 0.25\nq = 0.75")
PERMANENT = ("repeatedly", "p = 0\nq = 1\nf = 0.5")  # what is left when fresh noise averages out
POSITIONS = {"cohort": [(0, Fraction(1))], "positions": [(i, Fraction(1, 3)) for i in range(3)]}
STRINGS = [{"word": w} for w in ("aaa", "bbb", "aab", "aba", "", "aaaa", "a?é", None)]


def grams_filters(s: Survey, word: str) -> tuple[int, ...]:
    """Return the bits of the full string and of the n-grams at positions 0 and 1."""
    protocol = s.questions[0].protocol
    return tuple(
        slot.mechanism.true_bits(token, 0)
        for slot, token in zip(protocol.slots((0, 1)), protocol.tokens(word, (0, 1)), strict=True)
    )


def coinciding(collect: str, noise: str) -> Survey:
    """A survey's name under which "aaa" and "bbb" differ in all slots, and the grams of "aaa" at 0
    and 1 set the same bits, so that only the slot's name keeps their noise apart."""
    for i in range(500):
        s = ngrams(f"tiny{i}", collect, noise)
        a, b = grams_filters(s, "aaa"), grams_filters(s, "bbb")
        if a[1] == a[2] and all(x != y for x, y in zip(a, b, strict=True)):
            return s
    raise AssertionError("no name found")


@pytest.mark.slow
@pytest.mark.parametrize(("noise", "days"), [(FRESH, 1), (PERMANENT, 2)])
def test_whole_ngram_report_with_its_clear_fields(noise: tuple[str, str], days: int) -> None:
    s = coinciding(*noise)
    found = [distribution(s, v, draws=POSITIONS, days=days) for v in STRINGS]
    for value, d in zip(STRINGS, found, strict=True):
        check_formula(s, value, d, Fraction(1, 3))
    check_bound(s, found, days)


# --- prefixes: each client has one prefix length ----------------------------------------------


def prefixes(noise: str) -> Survey:
    return survey(
        f"""
[questions.word]
kind = "string"
bits = 2
cohorts = 1
{noise}
[questions.word.dictionary]
protocol = "prefixes"
max_length = 2
alphabet = "ab"
levels = [1, 2]
""",
        name="tiny3",
    )


PREFIXES = prefixes("p = 0.25\nq = 0.75\nf = 0.5")
LEVELS = {"cohort": [(0, Fraction(1))], "level": [(0, HALF), (2**31, HALF)]}
WORDS = [{"word": w} for w in ("aa", "bb", "ab", "ba", "", None)]


@pytest.mark.slow
def test_prefixes_two_days_running() -> None:
    found = [distribution(PREFIXES, v, days=2, draws=LEVELS) for v in WORDS]
    for value, d in zip(WORDS, found, strict=True):
        check_formula(PREFIXES, value, d, HALF)
    check_bound(PREFIXES, found, days=2)


# --- broken clients: each must be detected ---------------------------------------------------


def fails(s: Survey, value: dict[str, Any], clear: Fraction = Fraction(1), **options: Any) -> bool:
    try:
        check_formula(s, value, distribution(s, value, **options), clear)
    except AssertionError:
        return True
    return False


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    return monkeypatch


def test_a_bit_that_is_never_flipped_is_caught(broken: pytest.MonkeyPatch) -> None:
    real = noise.randomise

    def mutant(bits: int, *rest: Any) -> int:
        return (real(bits, *rest) & ~1) | (bits & 1)

    broken.setattr(bit_mechanism, "randomise", mutant)
    found = [distribution(BASIC, {"dark": dark}) for dark in (True, False)]
    assert worst_log_ratio(found) > claimed(BASIC, 1)


def test_p_and_q_swapped_for_one_bit_is_caught(broken: pytest.MonkeyPatch) -> None:
    real = BitMechanism.fresh
    broken.setattr(BitMechanism, "fresh", lambda self, bits, *r: real(self, bits ^ 1, *r))
    assert fails(BASIC, {"colour": "red", "dark": True})


@pytest.mark.slow
def test_a_reused_random_byte_is_caught(broken: pytest.MonkeyPatch) -> None:
    real = BitMechanism.encode
    first: dict[int, bytes] = {}

    def mutant(self: BitMechanism, token: Any, *, rand: bytes, **rest: Any) -> bytes:
        if self.domain.slot == "full":
            first[0] = rand
        return real(self, token, rand=first[0], **rest)

    broken.setattr(BitMechanism, "encode", mutant)
    s = ngrams("tiny", *FRESH)
    assert fails(s, {"word": "aaa"}, Fraction(1, 3), draws=POSITIONS)
    found = [distribution(s, {"word": w}, draws=POSITIONS) for w in ("aaa", "bbb", "aab")]
    assert worst_log_ratio(found) > claimed(s, 1)


def test_noise_shared_between_two_slots_is_caught(broken: pytest.MonkeyPatch) -> None:
    real = BitMechanism.permanent_message

    def mutant(self: BitMechanism, bits: int, cohort: int) -> bytes:
        one = base.Domain(self.domain.survey, self.domain.question, "full")
        return real(self.within(one), bits, cohort)

    broken.setattr(BitMechanism, "permanent_message", mutant)
    s = coinciding(*PERMANENT)
    found = [distribution(s, {"word": w}, draws=POSITIONS) for w in ("aaa", "bbb", "aab")]
    assert worst_log_ratio(found) > claimed(s, 1)


def test_a_level_redrawn_each_day_is_caught() -> None:
    s = prefixes("p = 0\nq = 1\nf = 0.5")
    kept, redrawn = (
        [distribution(s, v, days=2, draws=LEVELS, redraw=redraw) for v in WORDS]
        for redraw in (False, True)
    )
    assert worst_log_ratio(kept) <= claimed(s, 2) < worst_log_ratio(redrawn) - 1e-9
