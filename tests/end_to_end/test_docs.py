"""Every block of the README and the documentation runs, from an empty folder."""

from __future__ import annotations

import json
import os
import re
import shutil
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import matplotlib.pyplot
import pytest
from tools.run_docs import ROOT, BlockFailed, blocks_of, pages, run_page, same_output

import deniable
from deniable.survey import Survey
from tests import postgres

Replacements = dict[str, str]


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def runs(page: Path) -> bool:
    """Return whether a page has blocks to run; `test_gallery` runs those of the gallery."""
    return page.parent.name != "gallery" and any(
        b.language in ("python", "sh") and not b.not_run for b in blocks_of(page.read_text())
    )


def dask() -> Replacements | None:
    return {} if find_spec("distributed") else None


def checkout() -> Replacements:
    return {"CHECKOUT": str(ROOT)}


def curl() -> Replacements | None:
    return {} if shutil.which("curl") and shutil.which("openssl") else None


def empty_database(request: pytest.FixtureRequest) -> Replacements:
    """Make postgresql:///reports an empty database, as the page says it."""
    server = request.getfixturevalue("postgres_server")
    environment = request.getfixturevalue("monkeypatch")
    environment.setenv("PGHOST", str(server.folder))
    environment.setenv("PGUSER", "postgres")
    server.make_database("reports")
    return {}


def available(page: Path, request: pytest.FixtureRequest) -> dict[str, Replacements]:
    """What the page's blocks need besides Python and is there; in CI all must be."""
    found: dict[str, Replacements] = {}
    for need in {need for block in blocks_of(page.read_text()) for need in block.needs}:
        if need == "postgres":
            met = empty_database(request) if postgres.programs() is not None else None
        else:
            met = {"dask": dask, "curl": curl, "checkout": checkout}[need]()
        if met is not None:
            found[need] = met
        elif os.environ.get("CI"):
            pytest.fail(f"{page.name} needs {need}, which is not installed")
    return found


@pytest.mark.filterwarnings("ignore::deniable.errors.NotPrivateWarning")
@pytest.mark.parametrize("page", [p for p in pages() if runs(p)], ids=name_of)
def test_every_block_runs(page: Path, request: pytest.FixtureRequest) -> None:
    """In order, from an empty folder; outputs are those that the page shows, up to numbers."""
    run_page(page, available(page, request))
    matplotlib.pyplot.close("all")


@pytest.mark.parametrize(
    "page",
    [
        "```python\nraise ValueError\n```\n",
        "```sh\nsleep 60 &\nfalse\n```\n",
        "```sh\ndeniable check missing.toml\n```\n",
        '```python\nprint("3 cats")\n```\n\n```text title="Output"\n3 dogs\n```\n',
    ],
    ids=["python", "shell", "command", "output"],
)
def test_a_block_that_fails_is_noticed(page: str, tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text(page)
    with pytest.raises((ValueError, BlockFailed)):
        run_page(tmp_path / "page.md")


def test_outputs_are_compared_except_for_numbers() -> None:
    assert same_output("3 cats\n…\n", "4 cats\n5 dogs\n6 birds\n")
    assert same_output("3 cats\n…\n7 birds", "4 cats\n5 dogs\n6 birds\n")
    assert not same_output("3 cats\n", "4 cats\n5 dogs\n")
    assert not same_output("…\n5 dogs\n", "4 cats\n5 dogs\n6 birds\n")


def test_every_block_says_what_it_is() -> None:
    """A fence names its language; commands stand in fences, where they are run."""
    for page in pages():
        text = page.read_text()
        assert all(block.language for block in blocks_of(text)), f"{page}: ``` without a language"
        outside = re.sub(r"^ *```.*?^ *```", "", text, flags=re.DOTALL | re.MULTILINE)
        stray = re.search(r"^ {4,}(deniable|pip|curl|make|python) .*", outside, re.MULTILINE)
        assert not stray, f"{name_of(page)}: put {stray and stray[0]} into a block of sh"


def test_toml_blocks_are_surveys() -> None:
    found = [b for page in pages() for b in blocks_of(page.read_text()) if b.language == "toml"]
    assert found
    for block in found:
        if block.title.startswith("survey") or not block.title:
            Survey.from_toml(block.code)


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
    pictures = tables = 0
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
        tables += sum("text/html" in o.get("data", {}) for o in cell["outputs"])
    assert (pictures, tables) == (2, 2)
    matplotlib.pyplot.close("all")
