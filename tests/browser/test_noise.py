"""The browser client's noise: bits come out 1 at p* and q*, numbers at p and q, for any value.

Reports are read back by the Python library, which also says which bits were true. Each comparison
allows 5 standard deviations: a false alarm in 1.7 million.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from deniable.survey import Report, Survey, from_bytes
from tests.browser import tools
from tests.browser.conftest import run_in_node, run_in_page
from tests.surveys import survey_toml

HEAD = survey_toml(name="noise", collect=None)
BITS, PEOPLE = 1024, 1000  # a million draws
BLOOM = """collect = "repeatedly"
budget = 1e5
[questions.w]
kind = "string"
bits = 1024
hashes = 512
cohorts = 4
"""
NOISE = {
    "quarters": "p = 0.25\nq = 0.75\nf = 0.5",
    "any digits": "p = 0.123\nq = 0.6789\nf = 0.3125",
}
NUMBERS = """collect = "once"
[questions.w]
kind = "string"
mechanism = "localhash"
epsilon = 2.0
[questions.w.dictionary]
protocol = "prefixes"
max_length = 4
alphabet = "a-z"
levels = [2, 4]
"""


def crowd(
    run: Any, survey: Survey, values: dict[str, Any], people: int, **rest: Any
) -> list[Report]:
    arguments = {
        "canonical": survey.canonical.decode(), "sha256": survey.sha256.hex(),
        "values": values, "people": people,
    }  # fmt: skip
    reports = run("crowd.js", arguments, **rest)
    return [from_bytes(bytes.fromhex(report), survey) for report in reports]


def deviation(ones: int, draws: int, probability: float) -> float:
    """In standard deviations."""
    variance = probability * (1 - probability) / draws
    return float(abs(ones / draws - probability) / variance**0.5)


def worst_deviation(run: Any, noise: str, people: int = PEOPLE, **rest: Any) -> float:
    """The larger of those of all set bits and of all clear ones."""
    survey = Survey.from_toml(HEAD + BLOOM + noise)
    mechanism = survey.questions[0].protocol.mechanisms[0]
    ones, draws = [0, 0], [0, 0]
    for report in crowd(run, survey, {"w": "value"}, people, **rest):
        sent = int.from_bytes(report.answers[0].slots[0], "little")
        true = mechanism.true_bits(b"value", report.cohort)
        for is_set, mask in ((1, true), (0, true ^ ((1 << BITS) - 1))):
            ones[is_set] += (sent & mask).bit_count()
            draws[is_set] += mask.bit_count()
    assert sum(draws) == BITS * people
    p, q = float(mechanism.noise.p_star), float(mechanism.noise.q_star)
    return max(deviation(ones[0], draws[0], p), deviation(ones[1], draws[1], q))


def test_bits_come_out_at_p_star_and_q_star_in_node() -> None:
    assert worst_deviation(run_in_node, NOISE["quarters"]) < 5


def test_bits_come_out_at_p_star_and_q_star_in_chromium(new_page: Any) -> None:
    assert worst_deviation(partial(run_in_page, new_page()), NOISE["any digits"]) < 5


def test_numbers_come_out_at_p_and_q(run: Any) -> None:
    survey = Survey.from_toml(HEAD + NUMBERS)
    question = survey.questions[0]
    draws, own = 3000, 0
    for report in crowd(run, survey, {"w": "value"}, draws):
        answer = report.answers[0]
        (slot,) = question.protocol.slots(answer.clear)
        (token,) = question.protocol.tokens("value", answer.clear)
        number = slot.mechanism.number(token, slot.mechanism.own_cohort(report.cohort))
        own += int.from_bytes(answer.slots[0], "little") == number
    assert deviation(own, draws, question.protocol.mechanisms[0].noise.q / 2**32) < 5


SUBSETS = """collect = "once"
[questions.w]
kind = "choice"
options = ["a", "b", "c", "d", "e", "f", "g", "h"]
mechanism = "subset"
members = 3
epsilon = 1.0
"""


def worst_member(run: Any, value: str | None, own: int, **rest: Any) -> float:
    """The largest deviation of a category's share of subsets, in standard deviations."""
    survey = Survey.from_toml(HEAD + SUBSETS)
    mechanism = survey.questions[0].protocol.mechanisms[0]
    draws, held = 3000, [0] * mechanism.width
    for report in crowd(run, survey, {"w": value}, draws, **rest):
        sent = int.from_bytes(report.answers[0].slots[0], "little")
        held = [n + (sent >> i & 1) for i, n in enumerate(held)]
    p, q = mechanism.support
    return max(deviation(n, draws, q if i == own else p) for i, n in enumerate(held))


@pytest.mark.parametrize(("value", "own"), [("a", 0), ("e", 4), ("none of these", 8), (None, 8)])
def test_subsets_contain_the_own_category_at_q_and_others_at_p(
    run: Any, value: str | None, own: int
) -> None:
    assert worst_member(run, value, own) < 5


@pytest.mark.parametrize(
    "broken",
    [("BigInt(q) * all", "BigInt(q >> 1) * all"), ("(u * ways) / limit", "0n")],
    ids=["the own category too seldom", "always the same others"],
)
def test_broken_subsets_are_caught(broken: tuple[str, str], tmp_path: Path) -> None:
    source = tools.MODULE.read_text()
    assert source.count(broken[0]) == 1
    twin = tmp_path / "deniable.mjs"
    twin.write_text(source.replace(*broken))
    assert worst_member(run_in_node, "c", 2, module=twin) > 5


def test_numbers_with_permanent_noise_come_out_at_q_star() -> None:
    head = 'collect = "repeatedly"\nbudget = 1e5\n'
    question = '[questions.w]\nkind = "string"\nmechanism = "localhash"\nvalues = 5\n'
    survey = Survey.from_toml(HEAD + head + question + "epsilon = 3\nepsilon_per_report = 1.5\n")
    (slot,) = survey.questions[0].protocol.slots(())
    m, draws = slot.mechanism, 3000
    for value in ("value", None):
        own = 0
        for report in crowd(run_in_node, survey, {"w": value}, draws):
            number = m.number(b"value", m.own_cohort(report.cohort))
            own += int.from_bytes(report.answers[0].slots[0], "little") == number
        chance = float(m.noise.q_star) if value else 1 / m.values
        assert deviation(own, draws, chance) < 5


BROKEN = {
    "a set bit is never cleared": ("return result;", "return result | byte;"),
    "no permanent noise": ("m.flip ? await", "false ? await"),
    "one random word for all levels": ("words[level * size + i]", "words[i]"),
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN.keys())
def test_broken_twins_are_caught(broken: tuple[str, str], tmp_path: Path) -> None:
    source = tools.MODULE.read_text()
    assert source.count(broken[0]) == 1
    twin = tmp_path / "deniable.mjs"
    twin.write_text(source.replace(*broken))
    assert worst_deviation(run_in_node, NOISE["quarters"], people=200, module=twin) > 5


# --- a report tells nothing by its size ---------------------------------------------------------

VALUES = [None, "", "a", "abc", "ab" * 50_000, "Ünïcødé ☃ 🐈", "\ud800", "🐈" * 1000, "\ufeffbom"]
SURVEYS = {
    "bloom": BLOOM + NOISE["quarters"],
    "localhash": NUMBERS,
    "ngrams": 'collect = "once"\n[questions.w]\nkind = "string"\nepsilon = 3.0\n'
    '[questions.w.dictionary]\nprotocol = "ngrams"\nmax_length = 6\nalphabet = "bytes"\n',
    "choice": 'collect = "once"\n[questions.w]\nkind = "choice"\noptions = ["a", "abc"]\n'
    "epsilon = 1.0",
    "subset": SUBSETS,
}


@pytest.mark.parametrize("toml", SURVEYS.values(), ids=SURVEYS.keys())
def test_neither_report_nor_randomness_depends_on_the_value(run: Any, toml: str) -> None:
    survey = Survey.from_toml(HEAD + toml)
    arguments = {
        "canonical": survey.canonical.decode(), "sha256": survey.sha256.hex(),
        "question": "w", "values": VALUES,
    }  # fmt: skip
    rand = sum(m.rand_size for m in survey.questions[0].protocol.mechanisms)
    assert run("lengths.js", arguments) == [[20 + survey.body_size, rand]] * len(VALUES)
