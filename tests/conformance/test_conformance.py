"""`deniable conformance`: correct programs pass, and each kind of failure has its own message."""

from __future__ import annotations

import json
import os
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from deniable.cli.app import app
from deniable.conformance import FILES, Case, cases, replay
from deniable.conformance.driver import MAX_STARTS
from tests.vectors import make

ROOT = Path(__file__).parents[2]
ADAPTER = str(ROOT / "examples" / "conformance" / "python_client.py")
ASKED = [Case("hashing", n, {"n": n}, {"twice": 2 * n}) for n in range(12)]
ANSWER = 'print(json.dumps({"id": m["id"], "output": {"twice": 2 * m["input"]["n"]}}), flush=True)'


def run(*args: str) -> Result:
    return CliRunner().invoke(app, ["conformance", *args])


def program(body: str) -> list[str]:
    """Return a program that runs these lines for each message m."""
    loop = "import json, os, sys, time\nfor line in sys.stdin:\n    m = json.loads(line)\n"
    return [sys.executable, "-c", loop + textwrap.indent(textwrap.dedent(body), "    ")]


def verdicts(command: list[str], timeout: float = 30.0) -> dict[int, tuple[str, str]]:
    found = list(replay(command, ASKED, timeout=timeout))
    assert len(found) == len(ASKED), "one finding for each"
    return {f.case.number: (f.verdict, f.detail) for f in found}


def failed(found: dict[int, tuple[str, str]]) -> dict[int, str]:
    return {n: detail for n, (verdict, detail) in found.items() if verdict == "failed"}


# --- correct programs ---------------------------------------------------------------------------


@pytest.mark.slow
def test_our_client_conforms() -> None:
    got = run("--json", "--", sys.executable, ADAPTER)
    assert got.exit_code == 0, got.output
    found = json.loads(got.output)
    assert found["conforms"]
    expected = {
        file: len(json.loads((make.VECTORS / f"{file}.json").read_text())) for file in FILES
    }
    assert found["summary"] == {file: {"passed": count} for file, count in expected.items()}
    assert len(found["vectors"]) == sum(expected.values())


PAGE_CLIENT = """
from tests import page_encoder as page
canonical = m["input"].get("canonical", "").encode()
if m["vector"] == "reports":
    args = m["input"]["values"], bytes.fromhex(m["input"]["rand"])
    out = {"report": page.report(canonical, bytes.fromhex(m["input"]["secret"]), *args).hex()}
elif m["vector"] == "ledger":
    book, out = {}, {"accepted": [], "spent": []}
    for a in m["input"]["answers"]:
        survey = m["input"]["surveys"][a["survey"]].encode()
        paid = page.pay(book, survey, bytes.fromhex(a["secret"]), a["values"])
        out["accepted"].append(paid)
        out["spent"].append(page.spent(book[json.loads(survey)["name"]]))
else:
    print(json.dumps({"id": m["id"], "unsupported": "hidden"}))
    continue
print(json.dumps({"id": m["id"], "output": out}))
"""


def test_a_client_made_from_the_page_conforms_without_showing_its_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(ROOT)
    got = run("--", *program(PAGE_CLIENT))
    assert got.exit_code == 0, got.output
    assert "conforms" in got.output
    assert "slots" in got.output


def test_answers_may_come_at_the_end_and_in_any_order() -> None:
    late = """
    import json, sys
    for m in reversed([json.loads(line) for line in sys.stdin]):
        print(json.dumps({"id": m["id"], "output": {"twice": 2 * m["input"]["n"]}}))
    """
    found = verdicts([sys.executable, "-c", textwrap.dedent(late)])
    assert {verdict for verdict, _ in found.values()} == {"passed"}


# --- incorrect programs -------------------------------------------------------------------------


def test_a_wrong_reply_shows_the_expected_value() -> None:
    found = verdicts(program('if m["input"]["n"] == 5: m["input"]["n"] = 6\n' + ANSWER))
    assert failed(found) == {5: "twice must be 10, not 12"}


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        ('{"id": m["id"]}', "output must be a JSON object, not None"),
        ('{"id": m["id"], "output": {"thrice": 9}}', "the output has no twice"),
        ('{"id": m["id"], "output": {"twice": 6.0}}', "must be 6, not 6.0"),
        ('{"id": m["id"], "error": "cannot"}', "the program reports: cannot"),
    ],
)
def test_a_wrong_reply(reply: str, says: str) -> None:
    body = f'if m["input"]["n"] == 3: print(json.dumps({reply}), flush=True)\nelse: {ANSWER}'
    (detail,) = failed(verdicts(program(body))).values()
    assert says in detail


def test_a_crash_is_blamed_on_its_vector_and_the_rest_is_asked() -> None:
    crash = 'if m["input"]["n"] in (3, 7): sys.exit("cannot do this one")\n' + ANSWER
    found = failed(verdicts(program(crash)))
    assert found.keys() == {3, 7}
    assert found[3] == "the program ended with status 1; it wrote: cannot do this one"
    (killed,) = failed(
        verdicts(program('if m["input"]["n"] == 3: os.kill(os.getpid(), 11)\n' + ANSWER))
    ).values()
    assert killed == "the program was killed by signal 11"


@pytest.mark.slow
def test_after_a_timeout_the_other_vectors_are_tried() -> None:
    found = failed(
        verdicts(program('if m["input"]["n"] == 3: time.sleep(60)\n' + ANSWER), timeout=4)
    )
    assert found == {3: "no reply within 4 s"}


def test_invalid_replies_are_shown() -> None:
    noisy = 'if m["input"]["n"] == 4: print("debug: here")\n' + ANSWER
    found = failed(verdicts(program(noisy)))
    assert found == {4: "a reply must be a JSON object with an id, not b'debug: here\\n'"}


@pytest.mark.parametrize("line", ["[]", '{"id": "1"}', '{"id": true}', "\\xff", "[" * 99_999, ""])
def test_nothing_but_garbage_ends(line: str) -> None:
    found = verdicts(program(f"print({line!r}.encode().decode('unicode_escape'), flush=True)"))
    assert len(failed(found)) == 12


def test_a_flood_ends() -> None:
    assert len(failed(verdicts(program("while True: print('x' * 1000)")))) == 12


def test_a_program_that_always_fails_is_abandoned() -> None:
    found = failed(verdicts([sys.executable, "-c", "raise SystemExit(3)"]))
    assert list(found.values())[:3] == ["the program ended with status 3"] * 3
    assert set(list(found.values())[3:]) == {
        "not tried: the program was started 3 times and failed each time"
    }


@pytest.mark.slow
def test_a_program_that_hangs_again_and_again_is_given_up() -> None:
    asked = [Case("hashing", n, {"n": n}, {"twice": 2 * n}) for n in range(100)]
    every_other = ANSWER + '\nif m["input"]["n"] % 2: sys.exit(0)'
    found = list(replay(program(every_other), asked, timeout=30))
    assert len(found) == 100
    assert sum("not tried" in f.detail for f in found) >= 100 - 4 * MAX_STARTS


@pytest.mark.slow
def test_children_of_a_hanging_program_end_with_it(tmp_path: Path) -> None:
    note = tmp_path / "child"
    script = f"sleep 600 & echo $! > {note}; wait"
    list(replay(["/bin/sh", "-c", script], ASKED[:1], timeout=1))
    child = int(note.read_text())
    for _ in range(100):
        try:
            os.kill(child, 0)
            state = Path(f"/proc/{child}/stat").read_text().split()[2]
        except (ProcessLookupError, FileNotFoundError):
            return
        if state == "Z":
            return
        time.sleep(0.05)
    pytest.fail("a child was left running")


# --- the command --------------------------------------------------------------------------------


def test_failures_are_listed_and_exit_with_1() -> None:
    got = run("--vectors", "hashing", "--", *program('print(json.dumps({"id": m["id"]}))'))
    assert got.exit_code == 1
    assert got.output.count("failed hashing[") == 10, "the first ten"
    assert "does not conform" in got.output
    assert "reports" not in got.output


def test_leaving_out_whole_reports_does_not_conform() -> None:
    silent = program('print(json.dumps({"id": m["id"], "unsupported": "no"}), flush=True)')
    assert run("--vectors", "hashing", "--", *silent).exit_code == 0
    assert run("--vectors", "reports", "--", *silent).exit_code == 1
    assert run("--vectors", "ledger", "--", *silent).exit_code == 1


def test_every_vector_is_named_when_asked() -> None:
    got = run("--vectors", "batches", "-v", "--", sys.executable, ADAPTER)
    assert [f"passed batches[{n}]" in got.output for n in range(4)] == [True] * 4


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        (["--", "/no/such/program"], 1, "cannot run '/no/such/program'"),
        ([], 2, "Missing argument"),
        (["--vectors", "hashes", "--", "true"], 2, 'Did you mean "hashing"'),
    ],
)
def test_wrong_calls(args: list[str], code: int, says: str) -> None:
    got = run(*args)
    assert got.exit_code == code
    assert says in got.output


# --- the vectors --------------------------------------------------------------------------------


def test_nothing_expected_is_given() -> None:
    for case in cases():
        assert not case.given.keys() & case.expected.keys(), case.name
        assert case.file in ("hashing", "permanent", "instantaneous", "ledger") or isinstance(
            case.given["canonical"], str
        )


def test_well_formed_leaves_out_lone_surrogates_only() -> None:
    def texts(value: Any) -> list[str]:
        if isinstance(value, dict):
            return [text for each in value.values() for text in texts(each)]
        if isinstance(value, list):
            return [text for each in value for text in texts(each)]
        return [value] if isinstance(value, str) else []

    odd = [case for case in cases() if not case.well_formed]
    assert {case.file for case in odd} == {"slots", "reports"}
    for case in cases():
        lone = any("\ud800" <= c <= "\udfff" for text in texts(case.given) for c in text)
        assert lone == (not case.well_formed)
