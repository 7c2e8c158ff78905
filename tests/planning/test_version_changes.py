"""What `deniable check NEW --against OLD` says about people agrees with what clients charge."""

from __future__ import annotations

import pytest

from deniable.client import Client, Ledger
from deniable.planning.version_changes import version_changes
from deniable.survey import Survey
from tests.surveys import make_survey

WORD = '[questions.word]\nkind = "string"\nepsilon = {}\nbits = {}\n'
BROWSER = '[questions.browser]\nkind = "choice"\noptions = [{}]\nepsilon = 1\n'
PREFIX = (
    '[questions.word]\nkind = "string"\nepsilon = 2\n[questions.word.dictionary]\n'
    'protocol = "prefixes"\nmax_length = 4\nalphabet = "a-z"\nlevels = [2, 4]\nshares = {}\n'
)


def survey(questions: str, version: int = 1, **header: object) -> Survey:
    return make_survey(questions, version=version, **{"collect": "repeatedly", **header})


def changes(old: Survey, new: Survey) -> dict[str, tuple[str, bool]]:
    return {change.what: (change.now, change.worse) for change in version_changes(old, new)}


OLD = survey(WORD.format(2, 64))


def test_nothing_changes() -> None:
    assert changes(OLD, OLD) == {}
    assert changes(OLD, survey(WORD.format(2, 64), 2)) == {}


@pytest.mark.parametrize(
    "new, what, worse",
    [
        (survey(WORD.format(3, 64), 2), "ε per report", True),
        (survey(WORD.format(1, 64), 2), "ε per report", False),
        (survey(WORD.format(2, 64), 2, budget=3), "budget per client", True),
        (survey(WORD.format(2, 64), 2, owner="others"), "owner", True),
        (survey(WORD.format(2, 64), 2, name="other"), "name", True),
        (survey(WORD.format(2, 64), 2, description="why"), "description", False),
        (survey(WORD.format(2, 64), 1, description="why"), "version", True),
        (survey(WORD.format(2, 64), 2, expires="3000-01-01"), "last day", True),
        (survey(WORD.format(2, 64) + BROWSER.format('"a", "b"'), 2), "question browser", True),
        (survey(WORD.format(2, 64) + "cohorts = 128\n", 2), "cohorts", True),
        (survey(WORD.format(2, 64) + "cohorts = 32\n", 2), "groups by clear fields", False),
        (survey(WORD.format(2, 64), 2, collect="once"), "collected", False),
        (survey(WORD.format(2, 128), 2), "question word: permanent noise", True),
    ],
)
def test_each_change_is_named(new: Survey, what: str, worse: bool) -> None:
    assert changes(OLD, new)[what][1] == worse


def test_options_are_listed() -> None:
    old, new = (survey(BROWSER.format(x), v) for v, x in ((1, '"a", "b"'), (2, '"b", "c"')))
    found = changes(old, new)
    assert found["question browser: options"] == ("+ c, − a", False)
    assert found["question browser: permanent noise"][1]


@pytest.mark.parametrize(
    "old, new, redrawn",
    [
        (OLD, survey(WORD.format(2, 64), 2, budget=9), False),
        (OLD, survey(WORD.format(2, 64) + BROWSER.format('"a", "b"'), 2, budget=9), False),
        (OLD, survey(WORD.format(2, 65), 2, budget=9), True),
        (OLD, survey(WORD.format(1.9, 64), 2, budget=9), True),
        (OLD, survey(WORD.format(2, 64) + "cohorts = 128\n", 2, budget=9), True),
        (survey(PREFIX.format([1, 1])), survey(PREFIX.format([1, 9]), 2, budget=9), True),
        (survey(PREFIX.format([1, 1])), survey(PREFIX.format([1, 1]), 2, budget=9), False),
    ],
)
def test_noise_is_said_to_be_redrawn_if_clients_are_charged_anew(
    old: Survey, new: Survey, redrawn: bool
) -> None:
    assert ("question word: permanent noise" in changes(old, new)) == redrawn
    charged = []
    for i in range(40):
        ledger, secret = Ledger(), i.to_bytes(32, "big")
        for each in (old, new):
            client = Client(each, secret=secret, ledger=ledger)
            for _ in range(40):
                client.answer({"word": "abcd"})
        own = [e for e in ledger._memory[old.name].entries.values() if e.spent > 1.5 * 10**9]
        charged.append(len(own))
    assert (max(charged) > 1) == redrawn


def test_clients_that_answer_both_versions_are_charged_for_both() -> None:
    old, new = (
        make_survey(WORD.format(2, 64), version=v, budget=budget) for v, budget in ((1, 2), (2, 4))
    )
    key = "ε of clients that answer both versions"
    assert changes(old, new)[key] == ("4", True)
    assert key not in changes(old, make_survey(WORD.format(2, 64), version=2, budget=3))
    ledger = Ledger()
    for each in (old, new):
        Client(each, secret=bytes(32), ledger=ledger).answer({"word": "a"})
    assert ledger.spent(old.name) == pytest.approx(4)
