"""Local hashing: exact probabilities of all outputs; simulated crowds agree with the client."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from deniable.columns import ReportBatch
from deniable.errors import FieldOutOfRange, InputError, SurveyError
from deniable.mechanisms import Domain, LocalHash, Noise, from_canonical
from deniable.mechanisms.noise import ONE
from deniable.privacy import log_sum_rounding_up
from deniable.simulation import simulate
from deniable.simulation.number_parts import noise_numbers, true_numbers
from deniable.survey import Survey, from_batch, to_batch
from tests.replayed import replayed_client
from tests.single_reports import batch_of, single_reports
from tests.surveys import survey_toml

TOML = survey_toml(
    """
[questions.page]
kind = "string"
mechanism = "localhash"
epsilon = {epsilon}
{more}
[questions.page.dictionary]
protocol = "prefixes"
max_length = 6
alphabet = "a-z"
levels = [2, 4, 6, 6]
""",
    name="pages",
)


def survey(epsilon: float = 4.394, more: str = "") -> Survey:
    return Survey.from_toml(TOML.format(epsilon=epsilon, more=more))


def distribution(mechanism: LocalHash, true: int | None) -> dict[int, Fraction]:
    """P(number) exactly: the answer is constant between neighbouring break points of U, which the
    ends of every stretch confirm."""
    g, p, q = mechanism.values, mechanism.noise.p, mechanism.noise.q
    if true is None:
        breaks = sorted({-(-ONE * i // g) for i in range(g + 1)})
    else:
        breaks = [0, *range(q, ONE + 1, p)]
    assert breaks[-1] == ONE
    found: dict[int, Fraction] = {}
    for low, high in pairwise(breaks):
        first, last = (mechanism.randomise(true, uniform) for uniform in (low, high - 1))
        assert first == last
        found[first] = found.get(first, Fraction(0)) + Fraction(high - low, ONE)
    return found


def worst_ratio(m: LocalHash) -> Fraction:
    """Return the largest P(y | first)/P(y | second); 0 if some y is impossible for one value."""
    rows = [distribution(m, true) for true in (*range(m.values), None)]
    assert all(sum(row.values()) == 1 for row in rows)
    shares = [[row.get(y, Fraction(0)) for row in rows] for y in range(m.values)]
    if any(min(column) == 0 for column in shares):
        return Fraction(0)
    return max(max(column) / min(column) for column in shares)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.394, 6.0])
def test_every_output_keeps_the_promise_and_one_pair_spends_it_all(epsilon: float) -> None:
    m = LocalHash.spending(epsilon)
    assert log_sum_rounding_up([(worst_ratio(m), 1)]) == m.loss.per_report <= epsilon
    assert epsilon - m.loss.per_report < 1e-5


class NeverTheNext(LocalHash):
    """A broken variant counts the other numbers from the true number instead of the next one."""

    def randomise(self, number: int | None, uniform: int) -> int:
        if number is None or uniform < self.noise.q:
            return super().randomise(number, uniform)
        return (number + (uniform - self.noise.q) // self.noise.p) % self.values


def test_the_enumeration_sees_a_twin_that_breaks_its_promise() -> None:
    m = LocalHash.spending(1.0)
    twin = NeverTheNext(noise=m.noise, values=m.values, digits=m.digits, families=m.families)
    assert log_sum_rounding_up([(worst_ratio(twin), 1)]) > m.loss.per_report


def test_two_strings_agree_on_about_one_line_in_g() -> None:
    m = LocalHash.spending(1.0, values=5, digits=3)
    for first in range(0, m.cells, 7):
        for second in range(first + 1, m.cells, 11):
            same = sum(m.on_line(first, a) == m.on_line(second, a) for a in range(m.lines))
            assert same in (0, m.lines // m.values)


def test_noise_must_sum_to_one_and_values_be_prime() -> None:
    with pytest.raises(InputError, match="prime"):
        LocalHash(noise=Noise(0, 1 << 20, 1 << 31), values=82)
    with pytest.raises(InputError, match="0 < p < q"):
        LocalHash(noise=Noise(0, 1 << 20, 1 << 31), values=83)


@pytest.mark.parametrize("values", [None, 3, 257])
def test_the_crowd_does_what_each_client_does(values: int | None) -> None:
    m = LocalHash.spending(2.0, values=values).within(Domain("s", "q", "slot"))
    rng = np.random.default_rng(1)
    cohort = rng.integers(0, m.cohorts, 500).astype(np.uint16)
    uniform = rng.integers(0, ONE, 500, dtype=np.uint32)
    tokens = [None if i % 9 == 0 else b"token %d" % i for i in range(500)]
    cell = np.array(
        [
            -1 if t is None else m.scheme.positions(t, int(f), m.cells, 1, m.header)[0]
            for t, f in zip(tokens, cohort // m.lines, strict=True)
        ],
        np.int32,
    )
    crowd = noise_numbers(m, true_numbers(m, cell, cohort), uniform)
    one_by_one = [
        int.from_bytes(
            m.encode(t, cohort=int(c), secret=bytes(32), rand=int(u).to_bytes(4, "little")),
            "little",
        )
        for t, c, u in zip(tokens, cohort, uniform, strict=True)
    ]
    assert crowd.tolist() == one_by_one


def test_simulated_reports_of_secrets_have_the_clients_true_numbers() -> None:
    s = survey()
    secrets = np.random.default_rng(3).integers(0, 256, (40, 32), dtype=np.uint8)
    values = ["abc", None, "zebra", "q"] * 10
    batch = simulate(s, values, rng=np.random.default_rng(4), secrets=secrets)
    m = s.questions[0].protocol.mechanisms[0]
    kept = 0
    for i, report in enumerate(single_reports(batch)):
        client = replayed_client(s, secret=secrets[i].tobytes(), entropy=bytes)
        own = client.answer({"page": values[i]})
        assert (own.cohort, own.answers[0].clear) == (report.cohort, report.answers[0].clear)
        kept += own.answers[0].slots == report.answers[0].slots and values[i] is not None
    assert kept > 8  # 30 answers, each kept with probability ½: false alarm 1 %
    assert m.size == 1 and s.body_size == 2 + 1 + 1


def test_numbers_out_of_range_are_refused_on_the_wire() -> None:
    s = survey()
    batch = simulate(s, ["abc", "abd"], rng=np.random.default_rng(1))
    data = bytearray(to_batch(single_reports(batch)))
    assert batch_of(single_reports(batch)) == batch
    data[-1] = 83
    with pytest.raises(FieldOutOfRange, match="below 83"):
        from_batch(bytes(data), s)
    bits = batch.bits[0][0].copy()
    bits[1] = 83
    with pytest.raises(FieldOutOfRange, match="below 83"):
        ReportBatch(s, batch.cohort, batch.clear, ((bits,),))


def test_published_form_and_mistakes() -> None:
    s = survey()
    assert Survey.from_json(s.canonical) == s
    m = s.questions[0].protocol.mechanisms[0]
    assert from_canonical(m.canonical()) == m.within(Domain())
    with pytest.raises(SurveyError, match="set epsilon only"):
        survey(more="p = 0.25")
    with pytest.raises(SurveyError, match="prime"):
        survey(more="values = 82")
