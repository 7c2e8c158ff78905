"""What all commands share: help, documentation, exit codes, errors, completion."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result
from tools.command_reference import commands, page

from deniable.cli.app import MODULES, SECTIONS, app
from deniable.cli.exit_codes import EXIT_CODES
from deniable.errors import BudgetExceeded, InputError

ROOT = Path(__file__).parents[2]
HEAVY = ("numpy", "scipy", "numba", "pyarrow", "sklearn", "matplotlib", "rich", "sqlite3")
EVERY = [
    (path, command)
    for names in SECTIONS.values()
    for name in names
    for path, command in commands(name, app.get_command(click.Context(app), name))  # type: ignore[arg-type]
]
NO_JSON = {"completion", "serve"}
"""Commands that print a script, or a log until they are stopped."""


def run(*args: str) -> Result:
    return CliRunner().invoke(app, args)


def in_process(
    *args: str, cwd: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "deniable", *args], capture_output=True, text=True, cwd=cwd,
        env={**os.environ, **environment}, timeout=120,
    )  # fmt: skip


# --- documentation -------------------------------------------------------------------------------


def test_the_page_of_commands_is_what_the_commands_say() -> None:
    written = (ROOT / "docs" / "reference" / "commands.md").read_text(encoding="utf-8")
    assert written == page(), "run: make reference"


@pytest.mark.parametrize("path, command", EVERY, ids=[path for path, _ in EVERY])
def test_every_command_and_option_is_described(path: str, command: click.Command) -> None:
    assert command.help, path
    assert "deniable " in (command.epilog or ""), f"{path} has no example"
    for option in command.params:
        assert not isinstance(option, click.Option) or option.help, f"{path} {option.name}"
    names = {name for option in command.params for name in option.opts}
    if not isinstance(command, click.Group):
        assert path in NO_JSON or "--json" in names


@pytest.mark.parametrize("path, command", EVERY, ids=[path for path, _ in EVERY])
def test_examples_use_options_that_exist(path: str, command: click.Command) -> None:
    known = {name for _, each in commands("", command) for o in each.params for name in o.opts}
    lines = (command.epilog or "").replace("\\\n", " ").split("\n")
    ours = "\n".join(line.partition(" -- ")[0] for line in lines)  # beyond it is another's command
    for used in re.findall(r"(?<=\s)--?[a-z][a-z0-9-]*", ours):
        assert used in known, f"{path}: {used}"


def test_every_command_is_in_a_section() -> None:
    """A command that is in no section would be neither listed nor documented."""
    folder = ROOT / "src" / "deniable" / "cli"
    for module in {path.stem for path in folder.glob("*_command*.py")}:
        loaded = vars(import_module(f"deniable.cli.{module}"))
        made = {id(each): each for each in loaded.values() if isinstance(each, click.Command)}
        inner = [c for each in made.values() if isinstance(each, click.Group)
                 for c in each.commands.values()]  # fmt: skip
        names = {each.name for each in made.values() if each not in inner}
        assert names == {name for name, where in MODULES.items() if where == f"cli.{module}"}


# --- help ----------------------------------------------------------------------------------------


def test_help_imports_nothing_heavy() -> None:
    """What takes help from 0.1 s to seconds; a timed assertion would fail on a busy machine."""
    code = (
        "import sys\nfrom click.testing import CliRunner\nfrom deniable.cli.app import app\n"
        "for args in (['--help'], *[[name, '--help'] for name in app.list_commands(None)]):\n"
        "    assert CliRunner().invoke(app, args).exit_code == 0, args\n"
        f"print([name for name in {HEAVY} if name in sys.modules])"
    )
    got = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert got.stdout.strip() == "[]", got.stdout + got.stderr


def test_help_lists_every_command() -> None:
    shown = run("--help").output
    assert all(f"  {name} " in shown for names in SECTIONS.values() for name in names)


def test_a_slip_of_the_finger_is_understood() -> None:
    got = run("discovr")
    assert got.exit_code == 2
    assert 'Did you mean "discover"?' in got.output


# --- exit codes ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "error, code",
    [(InputError("no"), 1), (FileNotFoundError("x"), 1), (BudgetExceeded("spent"), 3),
     (KeyboardInterrupt(), 130), (ModuleNotFoundError("No module", name="numba"), 1)],
)  # fmt: skip
def test_errors_have_their_codes(
    error: BaseException, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    @click.command()
    def check() -> None:
        raise error

    monkeypatch.setattr(type(app), "get_command", lambda *_: check)
    got = run("check")
    assert got.exit_code == code in EXIT_CODES
    assert "Traceback" not in got.output
    if isinstance(error, ModuleNotFoundError):
        assert "pip install 'deniable[analysis]'" in got.output


def test_an_error_of_ours_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bug is not a user's mistake: it must be seen."""

    @click.command()
    def check() -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(type(app), "get_command", lambda *_: check)
    assert isinstance(run("check").exception, ZeroDivisionError)


def test_warnings_are_one_line(tmp_path: Path) -> None:
    code = (
        "import warnings, click\nfrom deniable.cli.app import App, app\n"
        "@click.command()\ndef check():\n    warnings.warn('mind the gap')\n"
        "App.get_command = lambda *_: check\napp(['check'])"
    )
    got = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert got.stderr == "warning: mind the gap\n"


@pytest.mark.slow
def test_a_closed_pipe_ends_quietly() -> None:
    command = f"{sys.executable} -m deniable plan --clients 1e6 --epsilon 2 | head -1"
    got = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, timeout=120, check=False
    )
    assert got.stderr == ""
    assert got.stdout.count("\n") == 1


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_interrupted_without_a_traceback(tmp_path: Path) -> None:
    survey = tmp_path / "s.toml"
    assert run("init", str(survey), "--unknown", "page").exit_code == 0
    output = tmp_path / "reports.dn"
    child = subprocess.Popen(
        [sys.executable, "-m", "deniable", "simulate", str(survey), "--population",
         "zipf:n=50", "--clients", "2000000000", "-o", str(output)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    partial = output.with_name("reports.dn.partial")
    for _ in range(600):
        if partial.exists() and partial.stat().st_size:
            break
        time.sleep(0.1)
    child.send_signal(signal.SIGINT)
    _, told = child.communicate(timeout=60)
    assert child.returncode == 130
    assert told == "interrupted\n"
    assert not output.exists() and not partial.exists()


# --- completion ----------------------------------------------------------------------------------


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(shell: str) -> None:
    got = run("completion", shell)
    assert got.exit_code == 0
    assert "_DENIABLE_COMPLETE" in got.output


def test_completion_of_commands_and_questions(tmp_path: Path) -> None:
    assert run("init", str(tmp_path / "s.toml"), "--boolean", "ads", "--boolean", "dark")

    def complete(words: str, at: int) -> str:
        return in_process(
            cwd=tmp_path, _DENIABLE_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=str(at)
        ).stdout

    assert "discover" in complete("deniable dis", 1)
    assert complete("deniable decode s.toml r.dn --question d", 5) == "plain,dark\n"


# --- what can fail early -------------------------------------------------------------------------


def test_a_file_that_cannot_be_written_is_refused_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Analyses take minutes, `init` a conversation; root may write anywhere, so ask for it."""
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != tmp_path)
    output = str(tmp_path / "plan.csv")
    for args in (("plan", "--clients", "10", "--epsilon", "1", "-o", output),
                 ("init", str(tmp_path / "s.toml"), "--ask")):  # fmt: skip
        got = run(*args)
        assert got.exit_code in (1, 2)
        assert "you are not allowed to write" in got.output
    assert not list(tmp_path.iterdir())
