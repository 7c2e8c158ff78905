"""init: from nothing to a survey file, by a conversation or by options."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from deniable import Survey
from deniable.cli.app import app
from deniable.cli.interview import answers
from deniable.errors import InputError
from deniable.survey.draft import Draft, DraftQuestion

ROOT = Path(__file__).parents[2]
TYPED = ["Home Pages", "", "Ada, ada@example.com", "Home page and dark mode, to plan the next page",
         "2099-12-31", "", "homepage", "unknown", "20", "", "Dark Mode", "", "boolean", "",
         "50000", "", "3", ""]  # fmt: skip
"""A conversation: two names are corrected, and ε is changed at the end."""
DRAFT = Path("survey.toml.draft")


def run(*args: str, typed: list[str] | None = None) -> Result:
    text = None if typed is None else "".join(f"{line}\n" for line in typed)
    return CliRunner().invoke(app, args, input=text)


@pytest.fixture(autouse=True)
def _there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


# --- from options --------------------------------------------------------------------------------


def test_from_options_then_check_and_publish() -> None:
    got = run("init", "Home Pages.toml", "--owner", 'Ada "A", ada@example.com', "--description",
              "which\npages", "--unknown", "page", "--choice", "browser=Firefox, Safari",
              "--boolean", "ads", "--string", "word", "--epsilon", "5",
              "--expires", "2999-12-31")  # fmt: skip
    assert got.exit_code == 0, got.output
    assert "Next: deniable check 'Home Pages.toml'" in got.output, "can be pasted"
    survey = Survey.load("Home Pages.toml")
    assert survey.name == "home-pages" and survey.owner == 'Ada "A", ada@example.com'
    assert survey.description == "which\npages"
    assert [q.kind for q in survey.questions] == ["string", "string", "choice", "boolean"]
    assert 4.99 < survey.loss.per_report <= 5.0
    published = run("check", "Home Pages.toml", "-o", "s.json", "--clients", "5e5")
    assert published.exit_code == 0, published.output
    assert "500,000" in published.output and "Note" not in published.output
    assert Survey.load("s.json") == survey


def test_nobody_publishes_without_a_name() -> None:
    assert run("init", "--boolean", "ads").exit_code == 0
    assert "Note: the owner is a placeholder" in run("check", "survey.toml").output
    got = run("check", "survey.toml", "-o", "s.json")
    assert got.exit_code == 1
    assert "the owner is" in got.output and "the description is" in got.output
    assert not Path("s.json").exists()


def test_check_tells_of_the_end(tmp_path: Path) -> None:
    today = dt.datetime.now(dt.UTC).date()
    for days, words in ((-3, "the survey ended 3 days ago"), (1, "the survey ends in 1 day")):
        draft = Draft("s", (DraftQuestion("ads", "boolean", 1.0),), "me", "why",
                      today + dt.timedelta(days=days))  # fmt: skip
        Path("s.toml").write_text(draft.toml())
        assert words in run("check", "s.toml").output
        assert words in json.loads(run("check", "s.toml", "--json").output)["notes"][0]


@pytest.mark.parametrize(
    "args, code, words",
    [(("--boolean", "Two words"), 1, 'Did you mean "two_words"?'),
     (("--boolean", "a", "--boolean", "a"), 1, "two questions are called 'a'"),
     (("--choice", "browser"), 2, "--choice NAME=A,B,C"),
     (("--choice", "b=A,A"), 1, "options"), (("--epsilon", "-1"), 2, "epsilon"),
     (("--expires", "soon"), 2, "soon"), (("--expires", "2020-01-01"), 1, "has passed"),
     (("--name", "Ü"), 1, 'Did you mean "u"?'), (("--name", "7"), 1, "not '7'."),
     (("--boolean", "a", "--epsilon", "1e-12"), 1, "is too small"),
     (("--boolean", "a", "--epsilon", "800"), 1, "would hide nothing about the answers"),
     (("no/such/folder.toml",), 1, "the folder no/such does not exist"),
     (("--ask", "--json"), 2, "cannot be combined")],
)  # fmt: skip
def test_wrong_options_are_explained(args: tuple[str, ...], code: int, words: str) -> None:
    """And before anything is asked or written."""
    for ask in [()] if "--ask" in args else [(), ("--ask",)]:
        got = run("init", *args, *ask, typed=[])
        if ask and "--epsilon" in args and code == 1:
            continue  # ε is divided among questions that are not known yet
        assert got.exit_code == code, got.output
        assert words in got.output
        assert not list(Path().glob("survey*"))


def test_a_file_is_never_overwritten_unasked() -> None:
    Path("survey.toml").write_text("mine")
    assert run("init", "--boolean", "ads").exit_code == 1
    got = run("init", "--ask", typed=["n"])
    assert got.exit_code == 1 and "choose another name, or overwrite with --force" in got.output
    assert Path("survey.toml").read_text() == "mine"
    assert run("init", "--ask", typed=["y", *TYPED]).exit_code == 0
    assert Survey.load("survey.toml").name == "home-pages"
    assert run("init", "--force", "--boolean", "ads").exit_code == 0


@pytest.mark.parametrize("options", [(), ("--no-ask",), ("--json",), ("--epsilon", "2")])
def test_without_a_conversation_a_question_is_needed(options: tuple[str, ...]) -> None:
    got = run("init", *options)
    assert got.exit_code == 2
    assert "a survey needs a question: add one, such as --boolean dark_mode" in got.output
    assert not Path("survey.toml").exists()


# --- the conversation ----------------------------------------------------------------------------


def test_the_conversation_in_the_documentation() -> None:
    """The page shows what a terminal shows, to the letter."""
    got = run("init", "--ask", typed=TYPED)
    assert got.exit_code == 0, got.output
    page = (ROOT / "docs" / "how-to" / "write-survey.md").read_text(encoding="utf-8")
    shown = re.search(r'```text title="A conversation"\n(.*?)```', page, re.DOTALL)
    assert shown is not None
    assert _stripped(shown[1]) == _stripped(got.output)
    survey = Survey.load("survey.toml")
    assert (survey.name, survey.collect) == ("home-pages", "once")
    assert survey.expires == dt.date(2099, 12, 31)
    assert [q.name for q in survey.questions] == ["homepage", "dark_mode"]
    assert survey.question("homepage").protocol.name == "prefixes"
    assert 2.99 < survey.loss.per_report <= 3.0
    assert not DRAFT.exists()
    following = got.output.rpartition("Next: deniable ")[2].split()
    assert run(*following).exit_code == 0
    assert Survey.load("survey.json") == survey


def _stripped(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip().splitlines()]


def test_every_answer_is_checked_at_once() -> None:
    """Each mistake is explained below the line where it was made, and asked for again."""
    mistakes = {
        "My Survey": 'Did you mean "my-survey"?', "   ": "write at least one word",
        "31.12.2099": "expected a day as YYYY-MM-DD", "2020-01-01": "2020-01-01 has passed",
        "onec": 'Did you mean "once"?', "Dark Mode": 'Did you mean "dark_mode"?',
        "chioce": 'Did you mean "choice"?', "A": "at least 2 options", "A, B, A": "repeats 'A'",
        "dark_mode": "another question is called 'dark_mode'", "0": "an integer from 1 to 255",
        "z-a": "runs backwards", "many": "such as 1000000 or 1e6", "-1": "ε must be a number above",
        "800": "would hide nothing",
    }  # fmt: skip
    typed = ["My Survey", "my-survey", "   ", "me", "why", "31.12.2099", "2020-01-01", "2 weeks",
             "onec", "", "Dark Mode", "", "chioce", "", "A", "A, B, A", "A, B", "dark_mode",
             "word", "unknown", "0", "12", "z-a", "a-z", "", "many", "1e5", "-1", "800", "2",
             ""]  # fmt: skip
    got = run("init", "--ask", typed=typed)
    assert got.exit_code == 0, got.output
    told = " ".join(got.output.split())
    for wrong, words in mistakes.items():
        assert words in told, wrong
    assert got.output.count("  ! ") == len(mistakes)
    survey = Survey.load("survey.toml")
    assert [q.kind for q in survey.questions] == ["choice", "string"]
    assert survey.expires == answers.day("2 weeks")


def test_options_are_not_asked_for_again() -> None:
    got = run("init", "--ask", "--owner", "me", "--collect", "repeatedly", "--boolean", "ads",
              "--epsilon", "1", typed=["", "why", "", "1000", ""])  # fmt: skip
    assert got.exit_code == 0, got.output
    survey = Survey.load("survey.toml")
    assert (survey.owner, survey.collect, survey.description) == ("me", "repeatedly", "why")
    assert survey.loss.in_total == pytest.approx(1.0)


def test_a_large_epsilon_warns_before_the_file_is_written() -> None:
    got = run("init", "--ask", typed=["", "me", "why", "", "", "ads", "", "", "10", "9", "0.01",
                                      ""])  # fmt: skip
    assert got.exit_code == 0, got.output
    told = " ".join(got.output.split())
    assert "! Warning: ε = 9 per report is practically no protection" in told
    assert "nothing: the noise is larger than any share" in told, "10 clients, ε = 0.01"


# --- interruptions -------------------------------------------------------------------------------


@pytest.mark.parametrize("answered", range(1, len(TYPED)))
def test_nothing_typed_is_lost(answered: int) -> None:
    """Cut short after any answer, the next run continues with the one that follows."""
    cut = run("init", "--ask", typed=TYPED[:answered])
    assert cut.exit_code == 1
    assert cut.stderr.endswith("error: the input ended before the question was answered\n")
    assert not Path("survey.toml").exists()
    if answered > 1:  # the first one is wrong
        assert "To continue: deniable init survey.toml" in cut.stderr
        assert DRAFT.exists()
    wrong = answered in (1, 11)  # a name that was not yet corrected is typed again
    rest = TYPED[answered - wrong :]
    again = run("init", "--ask", typed=["", *rest] if DRAFT.exists() else rest)
    assert again.exit_code == 0, again.output
    at_once = Survey.load("survey.toml")
    assert not DRAFT.exists()
    run("init", "--ask", "--force", typed=TYPED)
    assert Survey.load("survey.toml") == at_once


def test_a_draft_may_be_given_up_or_damaged() -> None:
    run("init", "--ask", typed=TYPED[:6])
    fresh = run("init", "--ask", typed=["n", *TYPED])
    assert fresh.exit_code == 0, fresh.output
    assert "Continue with the 5 answers in survey.toml.draft?" in fresh.output
    for damaged in (b"", b"[[", b'{"name": 1}', b"[1]", b"\xff"):
        DRAFT.write_bytes(damaged)
        assert run("init", "--ask", "--force", typed=TYPED).exit_code == 0
        assert not DRAFT.exists()


def test_a_kept_answer_is_checked_again() -> None:
    """A draft of last year has an end that has passed: it is asked for again, the rest is kept."""
    run("init", "--ask", typed=TYPED[:6])
    DRAFT.write_text(DRAFT.read_text().replace("2099-12-31", "2020-01-01"))
    got = run("init", "--ask", typed=["", "2099-12-31", *TYPED[6:]])
    assert got.exit_code == 0, got.output
    assert "2020-01-01 has passed" in got.output
    assert Survey.load("survey.toml").expires == dt.date(2099, 12, 31)


def test_a_draft_fits_other_options() -> None:
    """What an option gives now is skipped in the draft."""
    run("init", "--ask", typed=TYPED[:6])
    got = run("init", "--ask", "--owner", "Bob", typed=["", *TYPED[6:]])
    assert got.exit_code == 0, got.output
    survey = Survey.load("survey.toml")
    assert survey.owner == "Bob" and survey.description == TYPED[3]


class Terminal:
    """A `deniable init` at a pseudo-terminal."""

    def __init__(self, *args: str) -> None:
        self.side, child_side = os.openpty()
        self.child = subprocess.Popen(
            [sys.executable, "-m", "deniable", "init", *args],
            stdin=child_side, stdout=child_side, stderr=child_side,
        )  # fmt: skip
        os.close(child_side)

    def heard(self) -> Iterator[bytes]:
        """Yield what the command writes, until it ends."""
        while True:
            assert select.select([self.side], [], [], 60)[0], "it neither asks nor ends"
            try:
                yield os.read(self.side, 4096)
            except OSError:  # how Linux says that nobody writes to a terminal any more
                return

    def answer(self, *lines: str) -> None:
        """Type each line once the command asks for something."""
        for line in lines:
            self.prompt()
            os.write(self.side, line.encode() + b"\n")

    def prompt(self) -> None:
        said = b""
        for part in self.heard():
            said += part
            if said.rstrip().endswith(b":"):
                return
        raise AssertionError(said.decode())

    def interrupt(self) -> tuple[int, str]:
        """Press Ctrl-C until the command ends: just before Python waits for a line, it is deaf."""
        for _ in range(6):
            self.child.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.child.wait(10)
                break
        return self.end()

    def end(self) -> tuple[int, str]:
        """Return the exit code, and what the command wrote at the end."""
        said = b"".join(self.heard()).decode()
        os.close(self.side)
        return self.child.wait(60), said


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_at_a_terminal_with_an_interruption(tmp_path: Path) -> None:
    terminal = Terminal()
    terminal.answer(*TYPED[:8])
    terminal.prompt()
    code, said = terminal.interrupt()
    assert code == 130 and said.endswith("interrupted\r\n") and "Kept 7 answers" in said
    terminal = Terminal()
    terminal.answer("", TYPED[8])
    terminal.prompt()
    terminal.child.kill()  # as a closed terminal or a power failure would
    terminal.end()
    terminal = Terminal()
    terminal.answer("", *TYPED[9:])
    code, said = terminal.end()
    assert code == 0 and "Next: deniable check survey.toml" in said
    assert [q.name for q in Survey.load("survey.toml").questions] == ["homepage", "dark_mode"]


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_a_terminal_is_not_asked_if_the_options_say_enough() -> None:
    """A pasted command with all options must not take the next line for an answer."""
    terminal = Terminal("--owner", "me", "--description", "why", "--boolean", "ads")
    assert terminal.end()[0] == 0
    assert Survey.load("survey.toml").name == "survey"


# --- answers -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "written, day",
    [("2027-03-01", "2027-03-01"), ("2027-02-28", "2027-02-28"), ("1 day", "2027-03-01"),
     ("in 2 weeks", "2027-03-14"), ("a month", "2027-03-28"), ("12 months", "2028-02-28"),
     ("1 Year", "2028-02-28"), ("3years", "2030-02-28")],
)  # fmt: skip
def test_days(written: str, day: str) -> None:
    assert answers.day(written, dt.date(2027, 2, 28)).isoformat() == day


@pytest.mark.parametrize("written", ["", "soon", "28.2.2027", "2027-02-29", "9999 years", "-1 day",
                                     "99999 months", "2027-02-27"])  # fmt: skip
def test_wrong_days(written: str) -> None:
    with pytest.raises(InputError, match=r"such as 6 months|has passed"):
        answers.day(written, dt.date(2027, 2, 28))


def test_words_may_be_abbreviated() -> None:
    assert [answers.kind(word) for word in ("b", "Yes/No", "ch", "unkn", "text")] == [
        *("boolean", "boolean", "choice", "unknown", "string")
    ]
    assert answers.closest_to("once", "repeatedly")("repeatly") == "repeatedly"
    for wrong in ("", "x", "bool ean"):
        with pytest.raises(InputError, match="expected string, unknown, choice, number or boolean"):
            answers.kind(wrong)


def test_alphabets_say_what_they_contain() -> None:
    assert answers.describe_alphabet("a-z") == (
        "26 characters. All others are reported as one unknown symbol."
    )
    assert "'.-_' is a range of 50 characters" in answers.describe_alphabet("a-z.-_")
    assert "literal hyphen" not in answers.describe_alphabet("a-z0-9._-")
