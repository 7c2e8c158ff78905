"""The browser client pays before it draws, never above the budget, in however many tabs."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

import pytest

from deniable.client import Client, Ledger
from deniable.errors import BudgetExceeded, DeniableError
from deniable.survey import Survey
from tests.browser.conftest import result_in_page, run_in_node, run_in_page, start_in_page
from tests.surveys import survey_toml

HEAD = survey_toml(name="{name}", version="{version}", collect=None)
REPEATED = """collect = "repeatedly"
budget = {budget}
[questions.page]
kind = "string"
epsilon = 2.0
bits = 64
[questions.dark]
kind = "boolean"
f = {f}
p = 0.25
q = 0.75
"""
ONCE = """collect = "once"
budget = {budget}
[questions.dark]
kind = "boolean"
epsilon = 1.0
"""


def published(survey: Survey) -> tuple[str, str]:
    return survey.canonical.decode(), survey.sha256.hex()


def test_the_ledger_is_the_same_as_in_python() -> None:
    """Values that repeat and change, two versions of one name with other noise, another survey."""
    surveys = [
        Survey.from_toml(HEAD.format(name="pages", version=1) + REPEATED.format(budget=20, f=0.5)),
        Survey.from_toml(HEAD.format(name="pages", version=2) + REPEATED.format(budget=15, f=0.25)),
        Survey.from_toml(HEAD.format(name="modes", version=1) + ONCE.format(budget=6)),
    ]
    rng = random.Random(7)
    answers: list[tuple[int, dict[str, Any]]] = []
    for _ in range(60):
        index = rng.randrange(3)
        values: dict[str, Any] = {"dark": rng.choice([True, False, None])}
        if index < 2:
            values["page"] = rng.choice(["a", "b", "c", "d", None])
        answers.append((index, values))
    secret, ledger = bytes(range(32)), Ledger()
    clients = [Client(survey, secret=secret, ledger=ledger) for survey in surveys]
    ended = []
    for index, values in answers:
        try:
            clients[index].answer(values)
            ended.append("answered")
        except BudgetExceeded:
            ended.append("BudgetExceeded")
    found = run_in_node(
        "ledger.js",
        {"published": [published(s) for s in surveys], "secret": secret.hex(), "answers": answers},
    )
    assert found["ended"] == ended
    assert {"answered", "BudgetExceeded"} == set(ended)
    assert found["pages"] == {
        name: [[noise, entry.charged, entry.limit] for noise, entry in page.entries.items()]
        for name, page in ledger._memory.items()
    }


DEVICE = {"deviceBudget": 7, "perDays": {"30": 6}}


def test_the_budget_of_the_device_is_the_same_as_in_python() -> None:
    """Three surveys reserve their whole budgets; another owner of a name needs consent."""
    texts = [
        HEAD.format(name=name, version=version) + ONCE.format(budget=budget)
        for name, version, budget in (("a", 1, 4), ("b", 1, 2), ("c", 1, 1), ("a", 2, 4.5))
    ]
    texts.append(texts[1].replace('owner = "tests"', 'owner = "others"'))
    surveys = list(map(Survey.from_toml, texts))
    answers: list[tuple[int, dict[str, Any]]] = [(i, {"dark": True}) for i in (0, 1, 2, 3, 4, 0)]
    secret = bytes(range(32))
    ledger = Ledger(device_budget=7, per_days={30: 6})
    ended = []
    for index, values in answers:
        try:
            Client(surveys[index], secret=secret, ledger=ledger).answer(values)
            ended.append("answered")
        except DeniableError as error:
            ended.append(type(error).__name__)
    given = [[*published(s), DEVICE] for s in surveys]
    found = run_in_node(
        "ledger.js", {"published": given, "secret": secret.hex(), "answers": answers}
    )
    expected = ["answered", "answered", "DeviceBudgetExceeded", "DeviceBudgetExceeded"]
    assert found["ended"] == ended == [*expected, "SurveyRefused", "answered"]
    assert found["reserved"] == {
        name: [[day.isoformat(), amount] for day, amount in account.reserved]
        for name, account in ledger._memory.items()
    }
    assert found["owners"] == {"a": "tests", "b": "tests"}
    assert [(row["survey"], row["spent"], row["reserved"]) for row in found["shown"]] == [
        (each.survey, each.spent, each.reserved) for each in ledger.spending()
    ]


def test_what_the_device_reserves_does_not_depend_on_the_answers() -> None:
    """A second version raises the budget; its answer is refused for a changed value only."""
    survey = HEAD + REPEATED
    surveys = [
        Survey.from_toml(survey.format(name="pages", version=v, budget=b, f=0.5))
        for v, b in ((1, 7.2), (2, 7.3))
    ]
    pages = ["a"] * 30 + ["b"] * 30 + ["c"] * 30
    reserved = []
    for last in ("a", "d"):
        answers = [(0, {"page": page, "dark": True}) for page in pages]
        answers.append((1, {"page": last, "dark": last == "a"}))
        arguments = {"secret": bytes(32).hex(), "answers": answers}
        found = run_in_node("ledger.js", {"published": list(map(published, surveys)), **arguments})
        reserved.append((found["reserved"]["pages"][-1][1], found["ended"][-1]))
    assert [amount for amount, _ in reserved] == [
        99_999_999
    ] * 2  # from budgets that were rounded down
    assert [end for _, end in reserved] == ["answered", "BudgetExceeded"]


def test_a_ledger_of_an_older_release_is_read() -> None:
    """Old records have no reservations; they count from the day they are read."""
    survey = Survey.from_toml(HEAD.format(name="a", version=1) + ONCE.format(budget=4))
    arguments = {"published": [[*published(survey), {"deviceBudget": 5}]], "secret": "00" * 32}
    old = {"other": [["x", 2_000_000_000, None]]}
    found = run_in_node("ledger.js", {**arguments, "answers": [(0, {})], "old": old})
    assert found["ended"] == ["DeviceBudgetExceeded"]
    found = run_in_node("ledger.js", {**arguments, "answers": [(0, {})], "old": {}})
    assert found["ended"] == ["answered"]


ANSWERS, BUDGET = 40, 25
TABS = """collect = "once"
budget = {budget}
[questions.page]
kind = "string"
epsilon = 1.0
cohorts = 65536
"""


def answered_in_two_tabs(new_page: Callable[[], Any], broken: bool) -> int:
    survey = Survey.from_toml(HEAD.format(name="tabs", version=1) + TABS.format(budget=BUDGET))
    canonical, sha256 = published(survey)
    pages = [new_page(), new_page()]
    arguments = {
        "canonical": canonical, "sha256": sha256, "values": {"page": "a"}, "answers": ANSWERS,
        "start": 1000 * time.time() + 700, "broken": broken,
    }  # fmt: skip
    for page in pages:
        start_in_page(page, "tabs.js", arguments)
    found = [result_in_page(page) for page in pages]
    assert len({tab["cohort"] for tab in found}) == 1  # one person, one secret
    assert {name for tab in found for name in tab["refused"]} <= {"BudgetExceeded"}
    return sum(tab["answered"] for tab in found)


def test_two_tabs_at_once_spend_exactly_the_budget(new_page: Callable[[], Any]) -> None:
    assert answered_in_two_tabs(new_page, broken=False) == BUDGET


def test_broken_twin_without_one_transaction_spends_more(new_page: Callable[[], Any]) -> None:
    assert answered_in_two_tabs(new_page, broken=True) > BUDGET


def test_paid_on_disk_before_noise_is_drawn(new_page: Callable[[], Any]) -> None:
    survey = Survey.from_toml(HEAD.format(name="order", version=1) + ONCE.format(budget=9))
    canonical, sha256 = published(survey)
    arguments = {"canonical": canonical, "sha256": sha256, "values": {"dark": True}}
    happened = run_in_page(new_page(), "order.js", arguments)
    assert happened[:3] == ["readwrite, strict", "complete", "noise"]
    after = happened[happened.index("cleared") + 1 :]
    assert "noise" not in after and after[-1] == "StoreError"


@pytest.mark.parametrize("spent", ["not a map", {}, None])
def test_a_damaged_ledger_sends_nothing(new_page: Callable[[], Any], spent: Any) -> None:
    survey = Survey.from_toml(HEAD.format(name="damaged", version=1) + ONCE.format(budget=9))
    canonical, sha256 = published(survey)
    ended = new_page().evaluate(
        """async ([canonical, sha256, spent]) => {
          const { readSurvey, openClient, browserStore } = await import("/clients/js/deniable.js");
          const survey = await readSurvey(new TextEncoder().encode(canonical), sha256);
          const client = await openClient(survey);
          await browserStore().update("client", (kept) => ({ ...kept, spent }));
          return client.answer({ dark: true }).then(() => "answered", () => "refused");
        }""",
        [canonical, sha256, spent],
    )
    assert ended == "refused"
