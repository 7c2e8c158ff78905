"""`deniable answer` and `deniable send`, as a person types them."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from deniable.cli.app import app
from deniable.client import Outbox
from deniable.survey import from_bytes
from tests.faults.cutting_server import ACCEPT, Act, Server, refuse
from tests.surveys import make_survey

SURVEY = make_survey(
    """
[questions.word]
kind = "string"
bits = 64
cohorts = 1
epsilon = 9
[questions.dark]
kind = "boolean"
epsilon = 1
""",
    name="shell",
    budget=20,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    SURVEY.publish(tmp_path / "survey.json")
    return tmp_path


def run(folder: Path, *args: str, text: str | None = None) -> Result:
    environment = {"DENIABLE_FOLDER": str(folder / "mine")}
    return CliRunner().invoke(app, args, input=text, env=environment)


def test_answer_and_send(folder: Path) -> None:
    survey = str(folder / "survey.json")
    got = run(folder, "answer", survey, "word=abc", "dark=yes", "--json")
    assert got.exit_code == 0, got.output
    told = json.loads(got.output)
    assert (told["waiting"], told["survey"], told["digest"]) == (1, "shell", SURVEY.digest.hex())
    assert told["spent"] == pytest.approx(10)
    assert told["budget"] == 20
    got = run(folder, "answer", survey, "--values", "-", text='{"word": "abc", "dark": null}')
    assert got.exit_code == 0, got.output
    assert "ε spent: 20 of 20. Reports that wait to be sent: 2" in got.output
    with Server() as server:
        got = run(folder, "send", server.url)
        assert (got.exit_code, got.output) == (0, "shell: 2 accepted, 0 waiting\n")
        assert bytes.fromhex(told["report"]) in server.stored.values()
        assert all(from_bytes(body, SURVEY) for body in server.stored.values())
        assert json.loads(run(folder, "send", server.url, "--json").output) == {
            "shell": {"accepted": 0, "refused": 0, "waiting": 0, "dropped": 0, "wait": 0.0,
                      "problem": None, "refusals": {}}
        }  # fmt: skip


def test_answering_past_the_budget_exits_with_3(folder: Path) -> None:
    survey = str(folder / "survey.json")
    assert [run(folder, "answer", survey).exit_code for _ in range(3)] == [0, 0, 3]
    assert "has already answered survey" in run(folder, "answer", survey).output


def test_answer_a_published_survey_with_its_digest(folder: Path) -> None:
    published = Act(keep=False, answer=b"HTTP/1.1 200 OK\r\n\r\n" + SURVEY.canonical)
    with Server(choose=lambda n: published) as server:
        address = server.url + "/v1/surveys/shell"
        assert run(folder, "answer", address, "--digest", SURVEY.digest.hex()).exit_code == 0
        got = run(folder, "answer", address, "--digest", "00" * 16)
    assert got.exit_code == 1
    assert "is not the reviewed one" in got.output
    survey = str(folder / "survey.json")
    assert run(folder, "answer", survey, "--digest", "00" * 16).exit_code == 1


@pytest.mark.parametrize(
    ("args", "text", "says"),
    [
        (["word"], None, "expected QUESTION=VALUE, got 'word'"),
        (["wrod=a"], None, "no question 'wrod'"),
        (["dark=maybe"], None, "dark: expected yes, no"),
        (["word=a", "word=b"], None, "question 'word' is answered twice"),
        (["--values", "-"], "[1]", "expected a JSON object"),
        (["--values", "-"], "{", "not JSON"),
        (["--values", "-"], '{"dark": 1}', "must be a boolean"),
    ],
)
def test_mistaken_answers_cost_nothing(
    folder: Path, args: list[str], text: str | None, says: str
) -> None:
    got = run(folder, "answer", str(folder / "survey.json"), *args, text=text)
    assert got.exit_code == 1
    assert says in got.output
    assert not (folder / "mine" / "ledger.json").exists()


def test_send_says_what_is_wrong_and_whether_to_try_again(folder: Path) -> None:
    assert "there is no outbox in" in run(folder, "send", "http://127.0.0.1:9").output
    run(folder, "answer", str(folder / "survey.json"))
    assert (
        "there is no outbox of x in"
        in run(folder, "send", "http://127.0.0.1:9", "--survey=x").output
    )
    acts = [refuse(401, "unknown token"), refuse(410, "it ended")]
    with Server(choose=lambda n: acts[n]) as server:
        got = run(folder, "send", server.url)
        assert got.exit_code == 4
        assert "1 waiting, next attempt in" in got.output
        assert "token: 401 Unauthorized: unknown token" in got.output
        got = run(folder, "send", server.url, "--now")
        assert got.exit_code == 1
        assert "1 refused and set aside: 410 Gone: it ended" in got.output
    with Server() as server:
        assert run(folder, "send", server.url).exit_code == 1
        assert run(folder, "send", server.url, "--again").output.startswith("shell: 1 accepted")


@pytest.mark.slow
def test_send_waits_as_long_as_it_is_told(folder: Path) -> None:
    run(folder, "answer", str(folder / "survey.json"))
    with Server(choose=lambda n: ACCEPT if n else refuse(503, Retry_After="0")) as server:
        got = run(folder, "send", server.url, "--wait", "60", "--json")
    assert got.exit_code == 0, got.output
    assert json.loads(got.output)["shell"]["accepted"] == 1


def test_token_comes_from_a_file_or_the_environment(folder: Path) -> None:
    (folder / "token").write_text("abc\n")
    for args, environment in ((["--token-file", str(folder / "token")], {}),
                              ([], {"DENIABLE_TOKEN": "abc"})):  # fmt: skip
        run(folder, "answer", str(folder / "survey.json"))
        with Server() as server:
            full = {"DENIABLE_FOLDER": str(folder / "mine"), **environment}
            CliRunner().invoke(app, ["send", server.url, *args], env=full)
        assert server.requests[0].headers["Authorization"] == "Bearer abc"


def test_batches_need_a_gateway_key_before_anything_changes(folder: Path) -> None:
    run(folder, "answer", str(folder / "survey.json"))
    with Server(choose=lambda n: refuse(400, "no")) as server:
        run(folder, "send", server.url, "--now")
    with Server() as server:
        got = run(folder, "send", server.url, "--batch", "9", "--again")
        assert got.exit_code == 1 and "batches need a gateway key" in got.output
        assert server.connections == 0
    assert Outbox(folder / "mine" / "outbox-shell.db").counts().refused == 1


def test_an_answer_that_is_lost_warns_after_the_report_was_made(folder: Path) -> None:
    """Warnings are errors in these tests, and the exit code still does not depend on the answer."""
    survey = make_survey(
        '[questions.browser]\nkind = "choice"\noptions = ["Firefox", "Chromium"]\nepsilon = 1\n',
        name="options",
        budget=9,
    )
    survey.publish(folder / "options.json")
    fine = run(folder, "answer", str(folder / "options.json"), "browser=Firefox")
    lost = run(folder, "answer", str(folder / "options.json"), "browser=Chrome", "--json")
    assert fine.exit_code == lost.exit_code == 0 and not fine.stderr
    assert json.loads(lost.stdout)["waiting"] == 2, "the report is queued all the same"
    assert "warning: question 'browser': answers that are not options" in lost.stderr
    assert "such as 'Chrome'). The options are Firefox, Chromium." in lost.stderr


def test_a_survey_for_testing_is_not_answered(folder: Path) -> None:
    SURVEY.for_testing().publish(folder / "testing.json")
    got = run(folder, "answer", str(folder / "testing.json"), "word=a")
    assert got.exit_code == 1 and "published for testing" in got.output
    assert not (folder / "mine").exists()


# --- deniable ledger --------------------------------------------------------------------------


def test_the_ledger_shows_what_was_spent_and_changes_nothing(folder: Path) -> None:
    got = run(folder, "ledger")
    assert got.exit_code == 1
    assert "there is no ledger" in got.output and not (folder / "mine").exists()
    for _ in range(2):
        run(folder, "answer", str(folder / "survey.json"), "word=abc")
    mine = folder / "mine"
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in mine.iterdir()}
    got = run(folder, "ledger")
    assert got.exit_code == 0
    (row,) = [line for line in got.output.splitlines() if "shell" in line]
    today = dt.date.today().isoformat()
    assert row.split()[1::2] == ["shell", "20", "20", "20", today, "2"]
    data = json.loads(run(folder, "ledger", str(mine), "--json").output)
    assert data["ledger"] == str(mine / "ledger.json")
    (survey,) = data["surveys"]
    known = {"budget": 20.0, "reserved": 20.0, "reports": 2, "since": today, "owner": "tests"}
    assert survey == {"survey": "shell", "spent": survey["spent"], **known}
    assert survey["spent"] == pytest.approx(20)
    assert (data["spent"], data["reserved"]) == (survey["spent"], 20.0)
    assert before == {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in mine.iterdir()}


def test_a_ledger_of_an_older_release_is_read_and_kept(folder: Path) -> None:
    """It knows neither the budget nor the number of reports, and an older release drops both."""
    mine = folder / "mine"
    mine.mkdir()
    old = {
        "format": "deniable-ledger/1",
        "surveys": {"shell": {"word/full": [5_000_000_000, None]}},
    }
    (mine / "ledger.json").write_text(json.dumps(old))
    today = dt.date.today().isoformat()
    row = ["shell", "5", "unknown", "5", today, "unknown"]
    for expected in (row, ["shell", "15", "20", "20", today, "unknown"]):
        got = run(folder, "ledger").output
        (line,) = [line for line in got.splitlines() if "shell" in line]
        assert line.split()[1::2] == expected
        assert run(folder, "answer", str(folder / "survey.json")).exit_code in (0, 3)


def test_limits_of_the_device_on_the_command_line(folder: Path) -> None:
    survey = str(folder / "survey.json")
    for args, says in (
        (["--device-budget", "10"], "would reserve ε = 20"),
        (["--device-budget", "30", "--per-days", "30=5"], "allows within 30 days"),
        (["--per-days", "30=5"], "per_days needs a device_budget"),
        (["--device-budget", "30", "--per-days", "month"], "expected DAYS=EPSILON"),
        (["--max-epsilon", "5"], "its budget ε = 20 exceeds ε = 5"),
        (["--digest", "00" * 16], "is not the reviewed one"),
    ):
        got = run(folder, "answer", survey, "word=a", *args)
        assert got.exit_code != 0 and says in got.output, got.output
    assert run(folder, "answer", survey, "--device-budget", "20").exit_code == 0
    replace(SURVEY, owner="others").publish(folder / "survey.json")
    assert "comes from 'others'" in run(folder, "answer", survey).output
    assert run(folder, "answer", survey, "--accept-owner-change").exit_code == 0


@pytest.mark.parametrize(
    "history", ['{"shell": [1.5, 1]}', '{"shell": [1, -1]}', '{"shell": 3}', "[]"]
)
def test_a_damaged_ledger_is_named(folder: Path, history: str) -> None:
    mine = folder / "mine"
    mine.mkdir()
    text = '{"format": "deniable-ledger/1", "surveys": {"shell": {}}, "history": ' + history + "}"
    (mine / "ledger.json").write_text(text)
    got = run(folder, "ledger")
    assert got.exit_code == 3 and "ledger.json is not a ledger" in got.output
