"""No control character of a file, an argument or a decoded string reaches the terminal."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

import deniable
from deniable.cli import output
from deniable.cli.app import app
from tests.results.samples import marginal
from tests.surveys import make_survey

ESCAPE, CSI = "\x1b[31m", "\x9b31m"
"""Two ways to say "red": hostile text could as well hide a line or answer for the user."""
CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")
PACKAGE = Path(deniable.__file__).parent


def run(*arguments: str) -> str:
    """Return all that a command prints."""
    return CliRunner().invoke(app, arguments).output


def test_names_and_values_in_a_survey_file(tmp_path: Path) -> None:
    file = tmp_path / "survey.toml"
    survey = 'name = "x"\n"\\u001b[31mkey" = 1\nowner = "\\u009b31m"\n[questions."\\u001bq"]\n'
    file.write_text(survey)
    shown = run("check", str(file))
    assert "key" in shown and not CONTROL.search(shown)


def test_cells_of_a_spreadsheet(tmp_path: Path) -> None:
    file, survey = tmp_path / "people.csv", tmp_path / "survey.json"
    question = '[questions.q]\nkind = "choice"\noptions = ["a", "b"]\nepsilon = 1'
    make_survey(question).publish(survey)
    for text in (f"q\n{ESCAPE}a\n", f"{ESCAPE}q,{CSI}\na\n", f"{CSI}\n"):
        file.write_text(text)
        shown = run("simulate", str(survey), "--answers", str(file), "-o", str(tmp_path / "x.dn"))
        assert shown and not CONTROL.search(shown)


def test_strings_that_a_result_shows(capsys: pytest.CaptureFixture[str]) -> None:
    result = replace(marginal(0.5), labels=(f"{ESCAPE}red", CSI))
    output.print_result(result, as_json=False)
    shown = capsys.readouterr().out
    assert "red" in shown and not CONTROL.search(shown)
    output.print_result(result, as_json=True)
    shown = capsys.readouterr().out
    assert not CONTROL.search(shown)
    assert json.loads(shown)["labels"] == list(result.labels or ()), "JSON keeps what it says"


@pytest.mark.parametrize(
    "arguments",
    [
        ("check", f"{ESCAPE}.toml"),
        ("check", f"--{ESCAPE}"),
        (f"{ESCAPE}",),
        ("keys", "list", "--keys", f"/nowhere/{CSI}.json"),
        ("store", "status", f"{ESCAPE}.db"),
    ],
)
def test_errors_quote_arguments(arguments: tuple[str, ...]) -> None:
    shown = run(*arguments)
    assert shown and not CONTROL.search(shown)


def test_a_console_keeps_its_own_colours(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    output.console().print(f"{ESCAPE}x", style="bold", markup=False)
    assert capsys.readouterr().out == "\x1b[1m\N{REPLACEMENT CHARACTER}[31mx\x1b[0m\n"


def test_commands_print_in_one_place_only() -> None:
    """`output.py` makes text safe; `completion` prints a script of click for a file."""
    allowed = {"cli/output.py": None, "cli/app.py": 1, "cli/__init__.py": 1}
    for path in [*(PACKAGE / "cli").rglob("*.py"), *(PACKAGE / "rappor").rglob("*.py")]:
        name = str(path.relative_to(PACKAGE))
        printed = re.findall(r"\bclick\.s?echo\(|(?<![.\w])print\(", path.read_text())
        assert allowed.get(name, 0) in (None, len(printed)), f"{name} prints without output.echo"
