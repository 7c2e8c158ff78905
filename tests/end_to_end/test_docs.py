"""Every Python block of the README and the documentation runs."""

from __future__ import annotations

import json
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import matplotlib.pyplot
import pytest

import deniable
from deniable.survey import Survey
from tests.surveys import survey_toml

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SURVEY = survey_toml(
    """
[questions.homepage]
kind = "string"
epsilon = 3.0
[questions.dark_mode]
kind = "boolean"
epsilon = 1.0
""",
    name="example",
    owner="docs",
)


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


PACKAGES = (
    "results", "client", "survey", "columns", "store", "simulation", "planning", "analysis",
    "render.html", "render",
)  # fmt: skip


def test_everything_public_is_in_the_reference() -> None:
    shown = (ROOT / "docs" / "reference" / "python.md").read_text()
    top = [name for name in deniable.__all__ if name != "__version__"]
    public = [("deniable", name) for name in top]
    for package in PACKAGES:
        names = import_module(f"deniable.{package}").__all__
        public += [(f"deniable.{package}", name) for name in names if name not in top]
    for module, name in public:
        assert f"::: {module}.{name}\n" in shown, f"docs/reference/python.md lacks {module}.{name}"
        assert getattr(import_module(module), name).__doc__, f"{module}.{name} has no docstring"


def test_the_notebook_still_says_what_it_says(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its code runs, prints what was kept (numbers to 10%), and its pictures are kept too."""
    monkeypatch.setattr(matplotlib.pyplot, "show", lambda: None)
    notebook = json.loads((ROOT / "examples" / "tour.ipynb").read_text())
    namespace: dict[str, Any] = {}
    pictures = 0
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        exec(compile("".join(cell["source"]), "tour.ipynb", "exec"), namespace)
        printed = capsys.readouterr().out
        kept = "".join("".join(o["text"]) for o in cell["outputs"] if o["output_type"] == "stream")
        number = r"[\d,]*\.?\d+"
        assert re.sub(number, "#", printed) == re.sub(number, "#", kept)
        now, then = (
            [float(n.replace(",", "")) for n in re.findall(number, text)]
            for text in (printed, kept)
        )
        assert now == pytest.approx(then, rel=0.1, abs=0.011)
        pictures += sum("image/png" in o.get("data", {}) for o in cell["outputs"])
    assert pictures == 2
    matplotlib.pyplot.close("all")
