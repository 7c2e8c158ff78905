"""All surveys of a folder share a ledger, and a program may limit what they spend together."""

from __future__ import annotations

import datetime as dt
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from deniable.client import Client, Ledger
from deniable.client.ledger import Charge
from deniable.errors import (
    BudgetExceeded,
    DeviceBudgetExceeded,
    InputError,
    LedgerError,
    SurveyRefused,
)
from deniable.privacy import NANO
from deniable.survey import Survey
from tests.surveys import make_survey

DAY = dt.date(2027, 1, 1)
DARK = '[questions.dark]\nkind = "boolean"\nepsilon = 1\n'
WORD = '[questions.word]\nkind = "string"\nepsilon = 2\nbits = 32\n'


def dark(name: str, **header: object) -> Survey:
    return make_survey(DARK, name=name, **header)


def test_all_surveys_of_a_folder_share_a_budget(tmp_path: Path) -> None:
    def answer(name: str, **given: Any) -> None:
        survey = dark(name, budget=2)
        Client.open(survey, tmp_path, device_budget=5, **given).answer({"dark": True})

    answer("a")
    answer("b")
    with pytest.raises(DeviceBudgetExceeded, match=r"would reserve ε = 2, .* reserved 4 of the 5"):
        answer("c")
    answer("a")  # its budget was reserved before
    with pytest.raises(BudgetExceeded, match="already answered") as refused:
        answer("a")
    assert not isinstance(refused.value, DeviceBudgetExceeded)
    ledger = Ledger(tmp_path / "ledger.json")
    assert [(row.survey, row.spent, row.reserved) for row in ledger.spending()] == [
        ("a", pytest.approx(2), 2.0),
        ("b", pytest.approx(1), 2.0),
    ]
    Client.open(dark("c"), tmp_path).answer({})  # another program sets no limit


def test_a_lower_limit_holds_for_surveys_that_were_answered_before(tmp_path: Path) -> None:
    Client.open(dark("a", budget=4), tmp_path).answer({})
    with pytest.raises(DeviceBudgetExceeded):
        Client.open(dark("a", budget=4), tmp_path, device_budget=3).answer({})


def test_a_limit_per_period_applies_besides_the_total() -> None:
    ledger = Ledger(device_budget=5, per_days={30: 2, 7: 1})
    nano = [Charge("x", 1, None)]
    ledger.charge("a", NANO, nano, today=DAY)
    with pytest.raises(DeviceBudgetExceeded, match="allows within 7 days"):
        ledger.charge("b", NANO, nano, today=DAY + dt.timedelta(6))
    ledger.charge("b", NANO, nano, today=DAY + dt.timedelta(7))
    with pytest.raises(DeviceBudgetExceeded, match="allows within 30 days"):
        ledger.charge("c", NANO, nano, today=DAY + dt.timedelta(20))
    with pytest.raises(DeviceBudgetExceeded, match="within"):  # the clock was set back
        ledger.charge("c", NANO, nano, today=DAY - dt.timedelta(900))
    for i, name in enumerate("cde"):
        ledger.charge(name, NANO, nano, today=DAY + dt.timedelta(100 * (i + 1)))
    with pytest.raises(DeviceBudgetExceeded, match="allows in total"):
        ledger.charge("f", NANO, nano, today=DAY + dt.timedelta(5000))
    ledger.charge("a", NANO, nano, today=DAY + dt.timedelta(5000))


def test_what_is_reserved_and_refused_never_depends_on_the_answers(tmp_path: Path) -> None:
    """A changed answer is charged anew, and may be refused; other surveys must not notice."""
    outcomes = []
    for words in (["a"] * 40, ["a"] * 20 + ["b"] * 20):
        folder = tmp_path / "".join(words)
        ends: list[str] = []
        for version, budget in ((1, 3.0), (2, 3.5)):
            survey = make_survey(
                WORD, name="words", collect="repeatedly", version=version, budget=budget
            )
            for word in words:
                try:
                    Client.open(survey, folder, device_budget=4.5).answer({"word": word})
                except BudgetExceeded as error:
                    assert not isinstance(error, DeviceBudgetExceeded)
                    ends.append(word)
        for name in ("x", "y"):
            try:
                Client.open(dark(name), folder, device_budget=4.5).answer({})
            except DeviceBudgetExceeded as error:
                ends.append(str(error))
        reserved = [row.reserved for row in Ledger(folder / "ledger.json").spending()]
        outcomes.append((reserved, [end for end in ends if len(end) > 1]))
    assert outcomes[0] == outcomes[1]
    assert len(outcomes[0][1]) == 1


def test_a_refused_answer_still_reserves_the_budget_of_its_version(tmp_path: Path) -> None:
    """Otherwise what other surveys may spend would tell that the answer had changed."""
    ledger = Ledger(tmp_path / "ledger.json")
    ledger.charge("s", 10, [Charge("a", 10, None)])
    with pytest.raises(BudgetExceeded):
        ledger.charge("s", 12, [Charge("b", 5, None)])
    (row,) = Ledger(tmp_path / "ledger.json").spending()
    assert (row.spent, row.reserved) == (10 / NANO, 12 / NANO)


@pytest.mark.parametrize(
    "given, says",
    [
        ({"device_budget": 0}, "device_budget must be a number of nats above 0"),
        ({"device_budget": "5"}, "device_budget must be a number"),
        ({"device_budget": float("nan")}, "device_budget must be a number of nats above 0"),
        ({"per_days": {30: 1}}, "per_days needs a device_budget"),
        ({"device_budget": 5, "per_days": 30}, "per_days must be a mapping"),
        ({"device_budget": 5, "per_days": {0: 1}}, "the days of per_days must be an integer"),
        ({"device_budget": 5, "per_days": {30: -1}}, r"per_days\[30\] must be a number of nats"),
    ],
)
def test_limits_that_cannot_be(tmp_path: Path, given: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        Client.open(dark("a"), tmp_path / "device", **given)
    assert not (tmp_path / "device").exists()


# --- owners -----------------------------------------------------------------------------------


def test_another_owner_of_a_known_name_needs_consent(tmp_path: Path) -> None:
    ours, theirs = dark("a", budget=3, owner="ours"), dark("a", budget=3, owner="theirs")
    Client.open(ours, tmp_path).answer({"dark": True})
    with pytest.raises(SurveyRefused, match=r"of 'ours' was answered .* comes from 'theirs'"):
        Client.open(theirs, tmp_path).answer({"dark": True})
    Client.open(theirs, tmp_path, accept_owner_change=True).answer({"dark": True})
    (row,) = Ledger(tmp_path / "ledger.json").spending()
    assert (row.owner, row.reserved) == ("theirs", 3.0)
    assert row.spent == pytest.approx(2), "what was spent carries over"
    Client.open(theirs, tmp_path).answer({})
    with pytest.raises(BudgetExceeded):
        Client.open(ours, tmp_path, accept_owner_change=True).answer({})


# --- ledgers of other releases ------------------------------------------------------------------

OLD = {"format": "deniable-ledger/1", "surveys": {"old": {"x": [5, None]}}}


@pytest.mark.parametrize(
    "history, reserved", [({}, 5), ({"history": {"old": [3 * NANO, 1]}}, 3 * NANO)]
)
def test_older_ledgers_open(tmp_path: Path, history: dict[str, Any], reserved: int) -> None:
    path = tmp_path / "ledger.json"
    path.write_text(json.dumps({**OLD, **history}))
    (row,) = Ledger(path).spending()
    assert (row.reserved, row.owner) == (reserved / NANO, None)
    Client.open(dark("old", budget=4, owner="new"), tmp_path).answer({})
    (row,) = Ledger(path).spending()
    assert (row.reserved, row.owner) == (4.0, "new")


def test_older_clients_read_what_this_one_writes(tmp_path: Path) -> None:
    """They take `format` and `surveys`, and drop keys that they do not know when they write."""
    Client.open(dark("a", budget=3), tmp_path).answer({})
    path = tmp_path / "ledger.json"
    data = json.loads(path.read_text())
    assert data["format"] == OLD["format"]
    assert all(len(entry) == 2 for entry in data["surveys"]["a"].values())
    assert len(data["history"]["a"]) == 2
    path.write_text(json.dumps({key: data[key] for key in ("format", "surveys", "history")}))
    assert Ledger(path).spending()[0].reserved == 3.0


# --- the file -----------------------------------------------------------------------------------


def test_a_symbolic_link_is_followed(tmp_path: Path) -> None:
    """Two folders with one ledger have one budget."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    (tmp_path / "two" / "ledger.json").symlink_to(tmp_path / "one" / "ledger.json")
    for folder in ("one", "two", "one", "two"):
        Ledger(tmp_path / folder / "ledger.json").charge("s", 20, [Charge("n", 5, None)])
    with pytest.raises(BudgetExceeded):
        Ledger(tmp_path / "one" / "ledger.json").charge("s", 20, [Charge("n", 5, None)])
    assert (tmp_path / "two" / "ledger.json").is_symlink()
    assert not (tmp_path / "two" / "ledger.json.lock").exists(), "one ledger has one lock"


def test_folders_are_private_whatever_the_umask(tmp_path: Path) -> None:
    code = (
        "import os, sys; os.umask(0); from deniable import Client;"
        "Client.open(sys.argv[1], sys.argv[2]).answer_and_queue({})"
    )
    dark("a").publish(tmp_path / "a.json")
    folder = tmp_path / "deep" / "device"
    arguments = [sys.executable, "-c", code, str(tmp_path / "a.json"), str(folder)]
    subprocess.run(arguments, check=True, timeout=60)
    for path in (folder, folder.parent, *folder.iterdir()):
        assert path.stat().st_mode & 0o077 == 0, path


def test_a_ledger_that_others_can_change_is_refused(tmp_path: Path) -> None:
    Client.open(dark("a", budget=9), tmp_path).answer({})
    path = tmp_path / "ledger.json"
    for target, mode, fine in (
        (path, 0o666, 0o600),
        (path, 0o620, 0o600),
        (tmp_path, 0o777, 0o700),
    ):
        target.chmod(mode)
        with pytest.raises(LedgerError, match=f"run chmod {fine:o}"):
            Client.open(dark("a", budget=9), tmp_path).answer({})
        target.chmod(fine)
    Client.open(dark("a", budget=9), tmp_path).answer({})


@pytest.mark.parametrize(
    "content",
    [
        b'{"format":"deniable-ledger/1","surveys":{"s":{"x":[9,null]},"s":{}}}',
        b'{"format":"deniable-ledger/1","surveys":{"s":{"x":[9,null]}},"surveys":{}}',
        '{"format":"deniable-ledger/1","surveys":{}}'.encode("utf-16"),
        b'\xef\xbb\xbf{"format":"deniable-ledger/1","surveys":{}}',
        b'{"format":"deniable-ledger/1","surveys":{"s":{}},"reserved":{"s":[["2027-01-01",-5]]}}',
        b'{"format":"deniable-ledger/1","surveys":{"s":{}},"reserved":{"s":[["someday",5]]}}',
        b'{"format":"deniable-ledger/1","surveys":{"s":{}},"owners":{"s":5}}',
    ],
)
def test_an_ambiguous_ledger_is_not_read(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "ledger.json").write_bytes(content)
    with pytest.raises(LedgerError, match="is not a ledger"):
        Client.open(dark("s"), tmp_path).answer({})
    assert (tmp_path / "ledger.json").read_bytes() == content


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_an_error_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        with open("/dev/full", "wb", buffering=0) as file:
            file.write(b"x")

    client = Client.open(dark("a"), tmp_path)
    monkeypatch.setattr("deniable.client.ledger.replace_private", full)
    with pytest.raises(LedgerError, match="No space left on device; no report was made"):
        client.answer({})
    assert not (tmp_path / "ledger.json").exists()
