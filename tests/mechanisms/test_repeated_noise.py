"""Asymmetric permanent noise, and local hashing with permanent noise: exact ε of the real client.

Every output of whole reports, over several days, is enumerated with its exact probability.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import pytest

from deniable.client import Client, Ledger
from deniable.errors import InputError, SurveyError
from deniable.mechanisms import (
    AsymmetricBloom,
    AsymmetricChoice,
    Bloom,
    Choice,
    Mechanism,
    Noise,
    PermanentLocalHash,
    from_canonical,
    prf,
)
from deniable.mechanisms.noise import ONE
from deniable.survey import Survey
from tests.enumeration import SECRET, Distribution, distribution, expected, worst_log_ratio
from tests.surveys import ANY_SURVEY, make_survey

HALF = ONE // 2
CHOICE = """[questions.q]
kind = "choice"
options = ["a", "b"]
epsilon = 2
epsilon_per_report = 1.2
"""
HASH = """[questions.q]
kind = "string"
mechanism = "localhash"
values = 3
epsilon = 2
epsilon_per_report = 1.2
"""


def survey(question: str, **header: object) -> Survey:
    return make_survey(question, collect="repeatedly", **{"budget": 100, **header})


def mechanism(s: Survey) -> Any:
    return s.questions[0].protocol.parts[0].slots[0].mechanism


def distributions(s: Survey, values: list[Any], days: int) -> list[Distribution]:
    return [distribution(s, {"q": value}, days=days) for value in values]


# --- asymmetric bits ----------------------------------------------------------------------------


@pytest.mark.parametrize("days", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_asymmetric_choice_has_exactly_its_loss(days: int) -> None:
    s = survey(CHOICE)
    m = mechanism(s)
    values = ["a", "b", "neither", None]
    found = distributions(s, values, days)
    claim = m.loss_after(days)
    assert claim - 1e-9 < worst_log_ratio(found) <= claim
    for value, outcomes in zip(values, found, strict=True):
        for outcome, probability in outcomes.items():
            sent = [int.from_bytes(body, "little") for body in outcome]
            assert probability == expected(m.true_bits(value, 0), sent, m.width, m.noise)


def test_a_twin_that_ignores_keep_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that knows only symmetric noise would keep set bits more often."""
    s = survey(CHOICE)
    claim = mechanism(s).loss_after(1)
    monkeypatch.setattr(Noise, "kept", property(lambda self: ONE - self.flip))
    assert worst_log_ratio(distributions(s, ["a", "b"], 1)) > claim + 0.1


GRID = [
    Noise(flip, HALF - step, HALF + step, keep)
    for flip in (ONE // 1000, ONE // 50, ONE // 8, ONE // 3)
    for keep in (HALF, ONE * 5 // 8, ONE - 1000)
    for step in (ONE // 1000, ONE // 8, ONE // 4, HALF - 1000)
]


@pytest.mark.parametrize("noise", GRID)
def test_the_sum_of_charges_bounds_any_number_of_reports(noise: Noise) -> None:
    m = AsymmetricBloom(noise=noise, bits=8, hashes=2)
    for reports in (2, 3, 5, 10, 30, 100):
        assert m.loss_after(reports) <= min(reports * m.loss.per_report, m.loss.in_total) + 1e-12


def test_the_charges_would_not_bound_what_is_refused() -> None:
    """Keeping set bits with less than ½, or values that set more bits than others can clear."""
    low = Noise(ONE // 100, HALF - ONE // 50, HALF + ONE // 50, ONE // 4)
    assert low.loss_after(5, 1, 1) > 5 * low.loss_after(1, 1, 1) * 1.001
    with pytest.raises(InputError, match="keep of at least 2\\^31"):
        AsymmetricChoice(noise=low, options=("a", "b"))
    uneven = replace(low, keep=HALF)
    assert uneven.loss_after(5, 2, 0) > 5 * uneven.loss_after(1, 2, 0) * 1.001
    with pytest.raises(InputError, match="twice as many bits"):
        AsymmetricBloom(noise=uneven, bits=3, hashes=2)
    with pytest.raises(InputError, match="p \\+ q"):
        AsymmetricChoice(noise=replace(uneven, p=1000), options=("a", "b"))


def test_reports_with_different_fresh_noise_share_a_limit_soundly() -> None:
    """Versions may differ in fresh noise only. The log-likelihood ratios of reports add up."""
    flip, keep = Fraction(1, 20), Fraction(1, 2)

    def told(x: float) -> float:
        """ε about two values, if reports have the log-likelihood ratio ±x about permanent bits."""
        sides = [
            math.log((keep * math.exp(s) + 1 - keep) / (flip * math.exp(s) + 1 - flip))
            for s in (x, -x)
        ]
        return sides[0] - sides[1]

    for x, y in product((0.01, 0.1, 0.5, 1.0, 3.0), repeat=2):
        assert told(x + y) <= told(x) + told(y)


def test_older_kinds_and_new_ones_are_not_mixed_up() -> None:
    noise = Noise(ONE // 8, ONE // 4, 3 * ONE // 4, HALF)
    symmetric = Noise(ONE // 8, ONE // 4, 3 * ONE // 4)
    with pytest.raises(InputError, match="choice needs no keep"):
        Choice(noise=noise, options=("a", "b"))
    with pytest.raises(InputError, match="needs keep"):
        AsymmetricBloom(noise=symmetric, bits=8)
    with pytest.raises(InputError, match="rappor-java has no asymmetric"):
        AsymmetricBloom(noise=noise, bits=8, scheme_name="rappor-java")
    for m in (
        AsymmetricBloom(noise=noise, bits=8),
        AsymmetricChoice(noise=noise, options=("a", "b")),
    ):
        published = m.canonical()
        assert published["keep"] == HALF and from_canonical(published) == m
        del published["keep"]
        with pytest.raises(InputError, match="needs keep"):
            from_canonical(published)


def test_permanent_noise_depends_on_both_probabilities() -> None:
    noise = Noise(ONE // 8, ONE // 4, 3 * ONE // 4)
    prefixes = {
        Bloom(noise=noise, bits=8).permanent_prefix,
        *(
            AsymmetricBloom(noise=replace(noise, flip=flip, keep=keep), bits=8).permanent_prefix
            for flip in (ONE // 8, ONE // 9)
            for keep in (HALF, ONE - ONE // 8)
        ),
    }
    assert len(prefixes) == 5


# --- local hashing with permanent noise ---------------------------------------------------------


def strings_by_number(m: PermanentLocalHash, cohort: int = 0) -> list[str]:
    """One string for each number."""
    found = {m.number(b"%d" % i, cohort): str(i) for i in range(60)}
    return [found[number] for number in range(m.values)]


@pytest.mark.parametrize("days", [1, 2, pytest.param(3, marks=pytest.mark.slow)])
def test_numbers_have_exactly_their_loss(days: int) -> None:
    s = survey(HASH)
    m = mechanism(s)
    found = distributions(s, [*strings_by_number(m), None], days)
    claim = m.loss_after(days)
    assert claim - 1e-9 < worst_log_ratio(found) <= claim <= m.loss.in_total
    one = found[0]
    if days == 1:
        assert sorted(one.values())[-1] == m.noise.q_star
        assert set(one.values()) == {m.noise.q_star, m.noise.p_star}


def test_a_twin_without_permanent_noise_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    s = survey(HASH)
    m = mechanism(s)
    monkeypatch.setattr(PermanentLocalHash, "permanent", lambda self, number, *_: number)
    assert worst_log_ratio(distributions(s, strings_by_number(m), 1)) > m.loss_after(1) + 0.1


def test_two_reports_may_tell_more_than_twice_as_much_as_one() -> None:
    """So the ledger charges the whole loss of a number at its first report."""
    m = PermanentLocalHash.spending_both(3.0, 0.1, values=11)
    assert m.loss_after(2) > 2 * m.loss_after(1)
    assert m.charge.per_report == m.charge.in_total == m.loss.in_total


@pytest.mark.slow
def test_sequences_with_the_same_changes_tell_at_most_the_loss_of_each_number() -> None:
    """Three days; the analyst knows on which days the number is the same."""
    s = survey(HASH.replace("values = 3", "values = 2"))
    m = mechanism(s)
    words = strings_by_number(m)
    for pattern in ((0, 0, 0), (0, 1, 0), (0, 0, 1)):
        found = [
            distribution(s, [{"q": order[i]} for i in pattern]) for order in (words, words[::-1])
        ]
        bound = len(set(pattern)) * m.loss.in_total
        worst = worst_log_ratio(found)
        assert worst <= bound
        assert worst > len(set(pattern)) * m.loss_after(1)


def test_that_a_number_changes_is_not_hidden() -> None:
    """The limit of what the ledger promises, as the documentation says."""
    weak = HASH.replace("epsilon = 2", "epsilon = 0.02").replace("= 1.2", "= 0.019")
    s = survey(weak.replace("values = 3", "values = 2"))
    m = mechanism(s)
    words = strings_by_number(m)
    found = [distribution(s, [{"q": word} for word in days]) for days in (words[:1] * 2, words)]
    assert worst_log_ratio(found) > m.values * m.loss.in_total


def test_which_reports_share_a_number_is_not_hidden() -> None:
    """Both sequences change at the same times, and yet differ by more than the loss of all three.

    Permanent noise maps each of three numbers independently; all maps and reports are enumerated.
    """
    keep, flip, sent, other = 0.4, 0.3, 0.95, 0.025

    def distribution_of(numbers: tuple[int, ...]) -> list[float]:
        found = []
        for reports in product(range(3), repeat=len(numbers)):
            total = 0.0
            for kept in product(range(3), repeat=3):
                chance = math.prod(keep if k == n else flip for n, k in enumerate(kept))
                for number, report in zip(numbers, reports, strict=True):
                    chance *= sent if report == kept[number] else other
                total += chance
            found.append(total)
        return found

    first, second = map(distribution_of, ((0, 1, 0, 1), (0, 1, 2, 1)))
    worst = max(abs(math.log(a / b)) for a, b in zip(first, second, strict=True))
    assert worst > 3 * math.log(keep / flip)


def test_the_ledger_never_exceeds_the_loss_of_all_numbers() -> None:
    s = survey(HASH, budget=7)
    m = mechanism(s)
    ledger = Ledger()
    client = Client(s, secret=SECRET, ledger=ledger)
    cohort = m.own_cohort(client.cohort)
    seen = set()
    for i in range(40):
        value = None if i % 7 == 3 else f"word {i}"
        client.answer({"q": value})
        seen.add(m.own_number(None if value is None else value.encode(), cohort, SECRET))
        assert ledger.spent(s.name) == pytest.approx(len(seen) * m.loss.in_total, abs=1e-8)
    assert len(seen) == m.values
    assert ledger.spent(s.name) <= m.values * 2


def test_a_ledger_by_strings_would_exceed_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def by_string(self: Any, token: bytes | None, cohort: int, secret: bytes) -> str:
        return prf.prf(secret, token or b"").hex()

    monkeypatch.setattr(PermanentLocalHash, "noise_id", by_string)
    s = survey(HASH, budget=1000)
    client = Client(s, secret=SECRET, limits=ANY_SURVEY)
    for i in range(10):
        client.answer({"q": f"word {i}"})
    assert client.ledger.spent(s.name) > 3 * 2


@pytest.mark.parametrize("per_report", [0.1, 0.5, 1.0, 2.0, 3.5])
def test_the_number_of_values_is_the_best_for_one_report(per_report: float) -> None:
    m = PermanentLocalHash.spending_both(4.0, per_report)
    primes = [n for n in range(2, 60) if all(n % k for k in range(2, n))]
    rivals = [PermanentLocalHash.spending_both(4.0, per_report, values=g) for g in primes]
    assert m.variance() <= 1.03 * min(rival.variance() for rival in rivals)
    assert per_report - 1e-6 < m.loss.per_report <= per_report
    assert 4.0 - 1e-6 < m.loss.in_total <= 4.0


# --- survey files -------------------------------------------------------------------------------


def lasting_variance(m: Mechanism) -> float:
    """Return the smallest variance that permanent noise alone leaves in an estimate."""
    p, q = m.permanent_support
    return min(p * (1 - p), q * (1 - q)) / (q - p) ** 2


@pytest.mark.parametrize("in_total", [1.0, 2.0, 4.0])
@pytest.mark.parametrize("part", [0.3, 0.6, 0.9])
def test_no_other_noise_with_these_losses_is_more_accurate(in_total: float, part: float) -> None:
    """Neither for one report, nor for any number of them: a grid of permanent and fresh noise."""
    text = CHOICE.replace("= 2", f"= {in_total}").replace("= 1.2", f"= {part * in_total}")
    m = mechanism(survey(text))
    best, lasting = m.variance(), lasting_variance(m)
    for i, j, k in product(range(1, 40), range(1, 40), range(1, 20)):
        keep, flip, p, q = i / 40, j / 80, k / 40, 1 - k / 40
        if flip >= keep:
            continue
        p_star, q_star = flip * q + (1 - flip) * p, keep * q + (1 - keep) * p
        logit = lambda x: math.log(x / (1 - x))  # noqa: E731
        if logit(keep) - logit(flip) <= in_total:
            assert flip * (1 - flip) / (keep - flip) ** 2 >= lasting - 1e-6
            if logit(q_star) - logit(p_star) <= part * in_total:
                assert p_star * (1 - p_star) / (q_star - p_star) ** 2 >= best - 1e-6


def test_the_loss_per_report_stays_unless_it_is_written() -> None:
    plain = CHOICE.replace("epsilon_per_report = 1.2\n", "")
    old, new = (mechanism(survey(plain, defaults=n)) for n in (1, 2))
    assert (old.kind, new.kind) == ("choice", "choice-asymmetric")
    assert old.loss.per_report - 1e-8 < new.loss.per_report <= old.loss.per_report
    assert new.variance() < 0.95 * old.variance()
    # The paper's noise stays available, and so does symmetric noise for one bit.
    paper = mechanism(survey(plain + "p = 0.25\nq = 0.75\n", defaults=2))
    assert paper == mechanism(survey(plain + "p = 0.25\nq = 0.75\n"))
    assert paper.noise == old.noise
    yes = '[questions.q]\nkind = "boolean"\nepsilon = 2\n'
    assert mechanism(survey(yes, defaults=2)) == mechanism(survey(yes))
    more = mechanism(survey(yes + "epsilon_per_report = 1.5\n"))
    assert (more.kind, more.noise.p + more.noise.q) == ("boolean", ONE)
    assert 1.5 - 1e-8 < more.loss.per_report <= 1.5


PREFIXES = """[questions.q]
kind = "string"
epsilon = 2
{}
[questions.q.dictionary]
protocol = "prefixes"
max_length = 4
alphabet = "a-z"
"""


@pytest.mark.parametrize(
    ("collect", "more", "kind"),
    [
        ("once", "", "localhash"),
        ("repeatedly", "", "localhash-permanent"),
        ("repeatedly", 'mechanism = "bloom"', "bloom-asymmetric"),
        ("repeatedly", "bits = 64", "bloom-asymmetric"),
        ("repeatedly", "f = 0.6", "bloom"),
    ],
)
def test_prefixes_mean_local_hashing_in_version_2(collect: str, more: str, kind: str) -> None:
    s = make_survey(PREFIXES.format(more), collect=collect, defaults=2, budget=50)
    assert mechanism(s).kind == kind
    assert Survey.from_json(s.canonical) == s


MISTAKES = {
    'collect = "repeatedly"': ("once", CHOICE),
    "needs epsilon": ("repeatedly", CHOICE.replace("epsilon = 2\n", "")),
    "not together with p, q or f": ("repeatedly", CHOICE + "p = 0.25\nq = 0.75\n"),
    "must be below epsilon = 2": ("repeatedly", CHOICE.replace("1.2", "2")),
    'only for scheme = "deniable-1"': (
        "repeatedly",
        '[questions.q]\nkind = "string"\nscheme = "rappor-java"\nepsilon = 2\n'
        "epsilon_per_report = 1\n",
    ),
}


@pytest.mark.parametrize("message", MISTAKES)
def test_mistakes_of_the_loss_per_report(message: str) -> None:
    collect, question = MISTAKES[message]
    with pytest.raises(SurveyError) as caught:
        make_survey(question, collect=collect)
    assert "questions.q.epsilon_per_report (line" in str(caught.value)
    assert message in str(caught.value)
