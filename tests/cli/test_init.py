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
from deniable.survey.draft import Draft, DraftQuestion

ROOT = Path(__file__).parents[2]
TYPED = ["Home Pages", "home-pages", "Ada, ada@example.com",
         "Home page and dark mode, to plan the next page", "2099-12-31", "", "homepage", "unknown",
         "20", "", "dark_mode", "boolean", "", "50000", "5", "3", ""]  # fmt: skip
"""A conversation: a name is corrected, and ε is changed at the end."""


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
     (("--boolean", "a", "--boolean", "a"), 1, "another question is called 'a'"),
     (("--choice", "browser"), 2, "--choice NAME=A,B,C"),
     (("--choice", "b=A,A"), 1, "error: questions.b: options repeats 'A'"),
     (("--number", "n=5"), 1, "such as 0,500"), (("--number", "n=0,1,2,3"), 1, "such as 0,500"),
     (("--number", "n=0,inf"), 2, "expected a number"), (("--number", "n=2,1"), 1, "below high"),
     (("--epsilon", "-1"), 2, "epsilon"), (("--owner", " "), 2, "at least one word"),
     (("--expires", "soon"), 2, "soon"), (("--expires", "2020-01-01"), 2, "has passed"),
     (("--name", "Ü"), 2, 'Did you mean "u"?'), (("--name", "7"), 2, "not '7'."),
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
    following = got.output.rpartition("Next: deniable ")[2].split()
    assert run(*following).exit_code == 0
    assert Survey.load("survey.json") == survey


def _stripped(text: str) -> list[str]:
    """Return the lines without blanks at their ends, and without the proposed day."""
    proposed = re.sub(r"Expires \[[\d-]+\]", "Expires [a year from now]", text)
    return [line.rstrip() for line in proposed.strip().splitlines()]


def test_every_answer_is_checked_at_once() -> None:
    """Each mistake is explained in one sentence below it, and asked for again."""
    mistakes = {
        "My Survey": 'Did you mean "my-survey"?', "   ": "write at least one word",
        "31.12.2099": "expected a day as YYYY-MM-DD", "2020-01-01": "2020-01-01 has passed",
        "onec": "'onec' is not one of 'once'", "Dark Mode": 'Did you mean "dark_mode"?',
        "chioce": "'chioce' is not one of", "A": "options must be 2 to", "A, B, A": "repeats 'A'",
        "dark_mode": "another question is called 'dark_mode'", "5": "such as 0,500",
        "5,5": "low must be below high", "1,2,1": "an integer from 2 to 256",
        "0": "range 1<=x<=255", "z-a": "runs backwards", "many": "such as 1000000 or 1e6",
        "-1": "range x>0", "800": "would hide nothing", "1e-12": "is too small",
    }  # fmt: skip
    typed = ["My Survey", "my-survey", "   ", "me", "why", "31.12.2099", "2020-01-01", "2099-12-31",
             "onec", "", "Dark Mode", "dark_mode", "chioce", "choice", "A", "A, B, A", "A,, B",
             "dark_mode", "size", "number", "5", "5,5", "1,2,1", "1, 2.5", "kB", "word", "unknown",
             "0", "12", "z-a", "a-z", "", "many", "1e5", "-1", "800", "1e-12", "2", ""]  # fmt: skip
    got = run("init", "--ask", typed=typed)
    assert got.exit_code == 0, got.output
    errors = [line for line in got.output.splitlines() if line.startswith("Error: ")]
    assert len(errors) == len(mistakes)
    for error, words in zip(errors, mistakes.values(), strict=True):
        assert words in error and "line" not in error
    survey = Survey.load("survey.toml")
    assert [q.kind for q in survey.questions] == ["choice", "number", "string"]
    text = Path("survey.toml").read_text()
    for line in ('options = ["A", "B"]', "low = 1\n", "high = 2.5  ", "bins = 16", 'unit = "kB"',
                 "max_length = 12", 'alphabet = "a-z"'):  # fmt: skip
        assert line in text


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


@pytest.mark.parametrize("answered", range(len(TYPED)))
def test_an_unfinished_conversation_writes_nothing(answered: int, tmp_path: Path) -> None:
    cut = run("init", "--ask", typed=TYPED[:answered])
    assert cut.exit_code == 1
    assert cut.stderr.endswith("error: the input ended before the question was answered\n")
    assert not list(tmp_path.iterdir())


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
    assert code == 130 and said.endswith("interrupted\r\n")
    assert not list(tmp_path.iterdir())
    terminal = Terminal()
    terminal.answer(*TYPED)
    code, said = terminal.end()
    assert code == 0 and "Next: deniable check survey.toml" in said
    assert [q.name for q in Survey.load("survey.toml").questions] == ["homepage", "dark_mode"]


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_a_terminal_is_not_asked_if_the_options_say_enough() -> None:
    """A pasted command with all options must not take the next line for an answer."""
    terminal = Terminal("--owner", "me", "--description", "why", "--boolean", "ads")
    assert terminal.end()[0] == 0
    assert Survey.load("survey.toml").name == "survey"
