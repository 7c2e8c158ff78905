"""The ledger's file: who may change it, when it is written, and what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from deniable.client import Client, Ledger
from deniable.client.ledger import Charge
from deniable.errors import BudgetExceeded, LedgerError
from deniable.privacy import NANO
from tests.surveys import make_survey

SURVEY = make_survey('[questions.dark]\nkind = "boolean"\nepsilon = 1\n', name="file")


@pytest.mark.parametrize(
    "folder, file, accepted",
    [
        (0o700, 0o600, True),
        (0o755, 0o755, True),
        (0o770, 0o644, True),
        (0o1777, 0o600, True),  # as /tmp: nobody can replace files of others
        (0o777, 0o600, False),
        (0o702, 0o600, False),
        (0o700, 0o620, False),
        (0o700, 0o602, False),
        (0o700, 0o1622, False),  # this bit protects folders only
    ],
)
def test_who_may_change_it(folder: int, file: int, accepted: bool, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.json")
    ledger.charge("s", 9, [Charge("n", 1, None)])
    (tmp_path / "ledger.json").chmod(file)
    tmp_path.chmod(folder)
    try:
        if accepted:
            ledger.charge("s", 9, [Charge("n", 1, None)])
        else:
            with pytest.raises(LedgerError, match="other users can change"):
                ledger.charge("s", 9, [Charge("n", 1, None)])
    finally:
        tmp_path.chmod(0o700)


def test_a_refused_answer_does_not_write_it(tmp_path: Path) -> None:
    client, path = Client.open(SURVEY, tmp_path), tmp_path / "ledger.json"
    client.answer({"dark": True})
    before = path.stat()
    with pytest.raises(BudgetExceeded):
        client.answer({"dark": True})
    assert path.stat() == before


def test_it_says_what_was_spent_of_which_budget(tmp_path: Path) -> None:
    Ledger(tmp_path / "x").charge("s", 5 * NANO, [Charge("n", 2 * NANO, None)], owner="me")
    (row,) = Ledger(tmp_path / "x").spending()
    assert (row.survey, row.spent, row.budget, row.reports, row.reserved, row.owner) == (
        "s", 2.0, 5.0, 1, 5.0, "me",
    )  # fmt: skip
