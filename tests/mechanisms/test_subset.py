"""Subset selection: exact probabilities of all outputs; simulated crowds agree with the client."""

from __future__ import annotations

import math
import secrets
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import combinations

import numpy as np
import pytest
from experiments.paper.audit import audit
from scipy import stats

from deniable.client import encode_report
from deniable.client.encoder import Encoder
from deniable.columns import ReportBatch
from deniable.errors import FieldOutOfRange, InputError, SurveyError
from deniable.mechanisms import Domain, Noise, Subset, from_canonical
from deniable.mechanisms.noise import ONE
from deniable.mechanisms.subset import members_for, nth_subset
from deniable.privacy import log_sum_rounding_up
from deniable.protocols import Single
from deniable.simulation import simulate
from deniable.survey import Question, Survey, from_batch, to_batch
from tests.single_reports import single_reports
from tests.surveys import make_survey

LETTERS = tuple("abcdefghij")
CHOICE = '[questions.letter]\nkind = "choice"\nepsilon = {}\noptions = {}\n{}\n'


def survey(epsilon: float = 2.0, options: Sequence[str] = LETTERS[:4], more: str = "") -> Survey:
    return make_survey(CHOICE.format(epsilon, list(options), more), defaults=2)


def small(options: int, members: int, own: float, random_bytes: int = 1) -> Subset:
    """A mechanism whose random numbers can all be tried."""
    step = max(1, ONE >> 8 * random_bytes)
    q = round(own * ONE / step) * step
    p = round(Fraction(q * (members - 1) + (ONE - q) * members, options))
    noise = Noise(0, p, q)
    return Subset(
        noise=noise, options=LETTERS[:options], members=members, random_bytes=random_bytes
    )


def asked(mechanism: Subset) -> Survey:
    """A survey whose one question has this mechanism."""
    protocol = Single(mechanism).within("letters", "letter")
    question = Question("letter", "choice", "", protocol)
    return replace(survey(), budget=10**12, questions=(question,))


def by_client(mechanism: Subset) -> list[Counter[bytes]]:
    """How many of all random strings make each report, per category, by the real client code."""
    encoder = Encoder(asked(mechanism), bytes(32))
    strings = [u.to_bytes(2, "little") for u in range(1 << 16)]
    tokens = [encoder.tokens({"letter": value}) for value in (*mechanism.options, None)]
    return [
        Counter(encoder.report(own, rand).answers[0].slots[0] for rand in strings) for own in tokens
    ]


def by_mechanism(mechanism: Subset) -> list[Counter[int]]:
    """The same, by `randomise`."""
    every = range(1 << 8 * mechanism.random_bytes)
    return [Counter(mechanism.randomise(own, u) for u in every) for own in range(mechanism.width)]


def worst_ratio(rows: Sequence[Counter[int]] | Sequence[Counter[bytes]]) -> Fraction:
    """The largest P(S | first)/P(S | second); 0 if some S is impossible for one value."""
    reports = {report for row in rows for report in row}
    columns = [[row[report] for row in rows] for report in reports]  # type: ignore[index]
    if any(min(column) == 0 for column in columns):
        return Fraction(0)
    return max(Fraction(max(column), min(column)) for column in columns)


FEW = [(2, 1, 0.6), (3, 2, 0.7), (4, 2, 0.6)]
SMALL = [(2, 1, 0.6), (3, 1, 0.7), (4, 2, 0.75), (5, 2, 0.6), (4, 4, 0.9), (6, 3, 0.55)]


@pytest.mark.parametrize(
    ("options", "members", "own", "size"),
    [
        *((*setting, 1) for setting in FEW),
        *(pytest.param(*setting, 2, marks=pytest.mark.slow) for setting in SMALL),
    ],
)
def test_every_output_keeps_the_promise(options: int, members: int, own: float, size: int) -> None:
    mechanism = small(options, members, own, size)
    rows = by_mechanism(mechanism)
    ratio = log_sum_rounding_up([(worst_ratio(rows), 1)])
    loss = mechanism.loss.per_report
    # Not every subset has the fewest values of U for one category and the most for another.
    assert ratio <= loss < ratio + 20 / mechanism.units**0.5
    sets = {sum(1 << i for i in s) for s in combinations(range(options + 1), members)}
    for category, row in enumerate(rows):
        assert set(row) == sets
        assert sum(n for s, n in row.items() if s >> category & 1) == mechanism.own_units
        for other in {0, options} - {category}:
            held = sum(n for s, n in row.items() if s >> other & 1)
            # Each subset's share is rounded by less than 1 of 65,536.
            assert held == pytest.approx(mechanism.support[0] * mechanism.units, abs=len(sets))
        for contains, (fewest, most) in enumerate(mechanism.weights):
            found = {n for s, n in row.items() if s >> category & 1 == contains}
            assert found <= {fewest, most}


@pytest.mark.slow
def test_the_client_makes_what_is_enumerated() -> None:
    mechanism = small(3, 2, 0.7, 2)
    rows = by_client(mechanism)
    assert [{bytes([s]): n for s, n in row.items()} for row in by_mechanism(mechanism)] == rows


class OwnFirst(Subset):
    """A broken twin draws the others from all categories, so that the own one may be drawn."""

    def randomise(self, own: int, uniform: int) -> int:
        if uniform < self.own_units:
            return super().randomise(own, uniform)
        all_sets = math.comb(self.width, self.members)
        number = (uniform - self.own_units) * all_sets // (self.units - self.own_units)
        return nth_subset(number, self.width, self.members)


class ByModulo(Subset):
    """A broken twin takes the remainder of too short a random number."""

    def randomise(self, own: int, uniform: int) -> int:
        if uniform < self.own_units:
            return super().randomise(own, uniform)
        others, without = self.units - self.own_units, self.subsets[1]
        number = uniform % 16 % without
        return super().randomise(own, self.own_units - (-number * others // without))


class Shifted(Subset):
    """A broken twin inserts the own category at the wrong place."""

    def randomise(self, own: int, uniform: int) -> int:
        return super().randomise(min(own, self.width - 2), uniform)


class Certain(Subset):
    """A broken twin always contains the own category."""

    def randomise(self, own: int, uniform: int) -> int:
        return super().randomise(own, uniform * self.own_units // self.units)


@pytest.mark.slow
@pytest.mark.parametrize("twin", [OwnFirst, ByModulo, Certain])
def test_the_enumeration_sees_twins_that_break_their_promise(twin: type[Subset]) -> None:
    mechanism = small(5, 2, 0.6)
    broken = twin(noise=mechanism.noise, options=mechanism.options, members=2, random_bytes=2)
    worst = worst_ratio(by_mechanism(broken))
    # OwnFirst reveals less than it should, and is wrong in its probabilities.
    exact = log_sum_rounding_up([(worst, 1)])
    assert not mechanism.loss.per_report - 0.01 < exact <= mechanism.loss.per_report


def test_the_enumeration_sees_a_twin_that_mixes_categories_up() -> None:
    mechanism = small(3, 1, 0.6)
    broken = Shifted(noise=mechanism.noise, options=mechanism.options, members=1, random_bytes=1)
    rows = by_mechanism(broken)
    assert rows[-1] == rows[-2] and by_mechanism(mechanism)[-1] != rows[-1]


@pytest.mark.parametrize("options", [2, 4, 10, 300])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.0, 6.0])
def test_the_loss_is_close_to_epsilon(options: int, epsilon: float) -> None:
    made = Subset.spending(epsilon, tuple(map(str, range(options))))
    assert epsilon - 1e-6 < made.loss.per_report <= epsilon
    assert made.loss.in_total == math.inf
    assert made.loss_after(3) == pytest.approx(3 * made.loss.per_report)
    ideal = made.members * math.exp(epsilon)
    assert made.support[1] == pytest.approx(ideal / (ideal + made.width - made.members), rel=1e-6)


def test_subsets_are_numbered_in_lexicographic_order() -> None:
    for size, members in ((1, 0), (1, 1), (5, 2), (7, 4), (6, 6)):
        numbered = [nth_subset(i, size, members) for i in range(math.comb(size, members))]
        assert numbered == [sum(1 << i for i in s) for s in combinations(range(size), members)]


def test_the_number_of_members_has_the_smallest_error() -> None:
    for options, epsilon in ((2, 0.5), (4, 0.5), (4, 2.0), (10, 1.0), (20, 2.0), (30, 0.3)):
        names = tuple(map(str, range(options)))
        errors = {
            w: Subset.spending(epsilon, names, members=w).variance(1 / options)
            for w in range(1, options + 1)
        }
        assert members_for(epsilon, options) == min(errors, key=lambda w: errors[w])


def test_pairs_of_members_have_the_probabilities_of_the_enumeration() -> None:
    mechanism = small(5, 3, 0.7)
    rows = by_mechanism(mechanism)
    neither = sum(n for s, n in rows[0].items() if s >> 2 & 1 and s >> 4 & 1)
    one = sum(n for s, n in rows[2].items() if s >> 2 & 1 and s >> 4 & 1)
    found = neither / mechanism.units, one / mechanism.units
    assert found == pytest.approx(mechanism.pair_support, abs=len(rows[0]) / mechanism.units)


@pytest.mark.parametrize("options", [2, 7, 8, 9])
def test_a_report_has_the_same_length_for_every_value(options: int) -> None:
    made = survey(options=LETTERS[:options])
    mechanism = made.questions[0].protocol.mechanisms[0]
    assert mechanism.size == options // 8 + 1
    for value in (*LETTERS[:options], None, "", "unknown", "a" * 1000):
        rand = bytes(range(mechanism.rand_size))
        report = bytes(encode_report(made, {"letter": value}, secret=bytes(32), rand=rand))
        assert len(report) == 20 + mechanism.size
        assert int.from_bytes(report[20:], "little").bit_count() == mechanism.ones


def test_what_is_no_option_is_reported_as_no_answer() -> None:
    mechanism = survey().questions[0].protocol.mechanisms[0]
    for first in range(0, 256, 7):
        rand = bytes([first]) * mechanism.rand_size
        made = [
            mechanism.encode(token, cohort=0, secret=b"", rand=rand) for token in (None, "?", "")
        ]
        assert len(set(made)) == 1


# --- published surveys ----------------------------------------------------------------------


def test_published_form() -> None:
    made = survey()
    assert Survey.from_json(made.canonical) == made
    mechanism = made.questions[0].protocol.mechanisms[0]
    assert from_canonical(mechanism.canonical()) == mechanism.within(Domain())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"members": 0}, "members must be an integer from 1 to 4"),
        ({"members": 5}, "members must be an integer from 1 to 4"),
        ({"members": 2}, "p must be"),
        ({"p": 1}, "p must be"),
        ({"flip": 1}, "no permanent noise"),
        ({"random_bytes": 3}, "q must be a multiple of"),
        ({"q": 1 << 31, "p": 1 << 29, "random_bytes": 0}, "random_bytes must be"),
        ({"options": ["a"] * 5}, "repeats"),
        ({"options": [str(i) for i in range(1025)]}, "at most 1024 options"),
    ],
)
def test_published_mechanisms_are_checked(changes: dict[str, object], message: str) -> None:
    data = survey().questions[0].protocol.mechanisms[0].canonical()
    with pytest.raises(InputError, match=message):
        from_canonical({**data, **changes})


def test_too_few_random_bytes_would_prove_a_value() -> None:
    with pytest.raises(InputError, match="too few: some subsets would prove a value"):
        small(9, 4, 0.75, random_bytes=1)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ('mechanism = "subset"\np = 0.25', "p .*not used with subset selection: set epsilon only"),
        ('mechanism = "bits"\nmembers = 2', 'only used with mechanism = "subset"'),
        ("members = 5", "members must be an integer from 1 to 4, not 5"),
        ("members = 0", "must be an integer from 1 to 1024"),
        ('mechanism = "sets"', 'must be "subset" or "bits", not "sets"'),
    ],
)
def test_mistakes_in_the_survey_file(more: str, message: str) -> None:
    with pytest.raises(SurveyError, match=message):
        survey(more=more)


def test_which_mechanism_is_the_default() -> None:
    def kind(more: str = "", options: int = 4, **header: object) -> str:
        names = [str(i) for i in range(options)]
        made = make_survey(CHOICE.format(1, names, more), **header)
        return made.questions[0].protocol.mechanisms[0].kind

    assert kind() == "choice"
    assert kind(defaults=2) == "subset"
    assert kind(defaults=2, collect="repeatedly") == "choice-asymmetric"
    assert kind("q = 0.5", defaults=2) == "choice"
    assert kind(defaults=2, options=1024) == "subset"
    assert kind(defaults=2, options=1025) == "choice"
    assert kind('mechanism = "bits"', defaults=2) == "choice"
    assert kind('mechanism = "subset"') == "subset"
    with pytest.raises(SurveyError, match='set collect = "once", or mechanism = "bits"'):
        kind('mechanism = "subset"', collect="repeatedly")


# --- reports --------------------------------------------------------------------------------


def test_reports_with_another_number_of_members_are_refused() -> None:
    made = survey()
    batch = simulate(made, ["a", "b", None], rng=1)
    data = bytearray(to_batch(single_reports(batch)))
    data[-1] = 0b11
    with pytest.raises(FieldOutOfRange, match="exactly 1 bits must be 1, not 2"):
        from_batch(bytes(data), made)
    bits = batch.bits[0][0].copy()
    bits[1] = 0
    with pytest.raises(FieldOutOfRange, match="expected 1 bits that are 1, got 0"):
        ReportBatch(made, batch.cohort, batch.clear, ((bits,),))


@pytest.mark.parametrize(("options", "members"), [(2, 1), (4, 2), (5, 1), (9, 3), (4, 4)])
def test_the_crowd_has_the_clients_distribution(options: int, members: int) -> None:
    """False alarm: 1e-6 per category."""
    made = survey(1.5, LETTERS[:options], f"members = {members}")
    mechanism = made.questions[0].protocol.mechanisms[0]
    assert isinstance(mechanism, Subset)
    sets = [sum(1 << i for i in s) for s in combinations(range(options + 1), members)]
    n, (with_own, without) = 20_000, mechanism.subsets
    for category, value in enumerate((*LETTERS[:options], None)):
        bits = simulate(made, [value] * n, rng=category).bits[0][0].astype(np.int64)
        drawn = Counter((bits @ 256 ** np.arange(bits.shape[1])).tolist())
        own = mechanism.support[1]
        chance = [own / with_own if s >> category & 1 else (1 - own) / without for s in sets]
        assert set(drawn) <= set(sets)
        seen = [drawn[s] for s in sets]
        assert stats.chisquare(seen, np.array(chance) * n).pvalue > 1e-6


class Leaky(Subset):
    """A broken twin forgets that subsets without the own category are drawn from fewer."""

    def randomise(self, own: int, uniform: int) -> int:
        return super().randomise(own, uniform % self.own_units if uniform & 1 else uniform)


@pytest.mark.slow
@pytest.mark.parametrize(("options", "members"), [(2, 1), (3, 2)])
def test_audits_come_close_to_epsilon_and_never_exceed_it(options: int, members: int) -> None:
    """False alarm: 1e-6, the level of each audit."""
    made = Subset.spending(1.0, LETTERS[:options], members=members)

    def run(mechanism: Subset, value: str | None) -> bytes:
        rand = secrets.token_bytes(mechanism.rand_size)
        return mechanism.encode(value, cohort=0, secret=b"", rand=rand)

    def audited(mechanism: Subset, *values: str | None) -> float:
        first, second = (partial(run, mechanism, value) for value in values)
        return audit(first, second, runs=25_000, alpha=1e-6).epsilon

    for values in (("a", "b"), ("b", None)):
        assert 0.85 < audited(made, *values) <= made.loss.per_report
    settings = {"members": members, "random_bytes": made.random_bytes}
    broken = Leaky(noise=made.noise, options=made.options, **settings)
    assert audited(broken, "a", "b") > made.loss.per_report


def test_random_bytes_are_limited() -> None:
    """Otherwise a published survey could make its readers compute for minutes."""
    made = Subset.spending(1.0, ("a", "b"))
    with pytest.raises(InputError, match="random_bytes must be"):
        replace(made, random_bytes=257)
