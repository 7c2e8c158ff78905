"""Numbers in the documentation: each page shows what its data files and the code say."""

from __future__ import annotations

import json
import re
from dataclasses import fields

import pytest
from experiments.paper import PAPER
from tools import facts

from deniable.collector.settings import MIB, Settings
from deniable.errors import InputError


def test_no_page_is_stale() -> None:
    stale = [str(page.relative_to(facts.ROOT)) for page in facts.stale_pages()]
    assert not stale, "run: make facts"


def test_a_changed_figure_is_noticed() -> None:
    page = "It finds <!-- generated: accuracy::words::names::found -->17<!-- end --> strings."
    assert facts.filled(page) == page.replace("17", "90.2")


@pytest.mark.parametrize(
    "name", ["paper::urls::no such quantity", "accuracy::no-table", "code::nothing", "elsewhere::x"]
)
def test_an_unknown_fact_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="no fact"):
        facts.filled(f"a <!-- generated: {name} --><!-- end -->")


def test_a_figure_at_the_start_of_a_line_is_refused() -> None:
    """Markdown takes such a line for HTML."""
    with pytest.raises(InputError, match="start of a line"):
        facts.filled("text\n<!-- generated: code::bits.least --><!-- end --> bits")


def test_every_table_of_results_is_complete() -> None:
    for path in sorted((facts.RESULTS / "data").glob("*.json")):
        data = json.loads(path.read_text())
        for name, table in data["tables"].items():
            named = "command" in table or "no_command" in table
            assert "command" in table["columns"] or (named and table["conditions"]), name
            assert all(len(row) == len(table["columns"]) for row in table["rows"].values()), name


def test_the_paper_is_shown_from_full_runs() -> None:
    page = (facts.RESULTS / "paper.md").read_text()
    for name in PAPER:
        assert f"<!-- generated: paper::{name}" in page and f"paper/{name}.png" in page
        data = json.loads((facts.RESULTS / "paper" / f"{name}.json").read_text())
        assert not data["parameters"].get("quick"), "not from a full run"


def test_the_collector_page_shows_the_default_of_every_setting() -> None:
    page = (facts.ROOT / "docs" / "how-to" / "collector.md").read_text()
    for setting in fields(Settings):
        assert f"| `{setting.name}` | {default_of(setting.default)}" in page, setting.name


def default_of(value: object) -> str:
    if value in ("", ()):
        return "|"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) and value and value % MIB == 0:
        return f"{value // MIB} MiB"
    return f"{value:g}" if isinstance(value, float) else str(value)


def test_every_command_of_the_data_exists() -> None:
    """A module, an experiment of the paper, a target of make, or tests."""
    targets = re.findall(r"^(\w+):", (facts.ROOT / "Makefile").read_text(), re.MULTILINE)
    for path in sorted((facts.RESULTS / "data").glob("*.json")):
        for command in re.findall(r'^ {3}"command": "(.*?)"', path.read_text(), re.MULTILINE):
            kind, _, name = command.removeprefix("OPENBLAS_NUM_THREADS=1 ").rpartition("-m ")
            words = (name if kind else command).split()
            if words[0] == "pytest":
                assert all((facts.ROOT / file).exists() for file in words[1:]), command
            elif kind:
                module = facts.ROOT / words[0].replace(".", "/")
                program = module / "__main__.py" if module.is_dir() else module.with_suffix(".py")
                assert program.exists(), command
                if words[0] == "experiments.paper":
                    assert set(words[1:]) <= set(PAPER), command
            else:
                assert words[0] == "make" and words[1] in targets, command
