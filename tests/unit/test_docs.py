"""Every Python block of the README and the documentation runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from deniable.survey import Survey

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
SURVEY = """
name = "example"
version = 1
owner = "docs"
description = "what the examples ask"
expires = 2999-12-31
collect = "once"
[questions.homepage]
kind = "string"
epsilon = 3.0
[questions.dark_mode]
kind = "boolean"
epsilon = 1.0
"""


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.DOTALL)


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "python")], ids=lambda p: p.name)
def test_python_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    Survey.from_toml(SURVEY).publish("survey.json")
    namespace: dict[str, Any] = {}
    for block in blocks(page, "python"):
        exec(compile(block, page.name, "exec"), namespace)  # a block that raises fails the test
    assert len(namespace) > 1


def test_toml_blocks_are_surveys() -> None:
    found = [block for page in PAGES for block in blocks(page, "toml")]
    assert found
    for block in found:
        Survey.from_toml(block)


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
