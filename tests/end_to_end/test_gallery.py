"""The gallery: every script runs in an empty folder, and the page shows the scripts as they are."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import matplotlib as mpl
import pytest
from tools.gallery import ORDER, PAGE, SCRIPTS, page

ARGUMENTS = {"hundred_million": ["1000000"]}
"""Crowds that would take a minute are smaller here."""


@pytest.mark.parametrize("name", ORDER)
def test_every_script_draws_its_picture(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mpl.use("Agg")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [name, *ARGUMENTS.get(name, [])])
    runpy.run_path(str(SCRIPTS / f"{name}.py"), run_name="__main__")
    assert (tmp_path / f"{name}.png").stat().st_size > 10_000


def test_the_page_shows_every_script_as_it_is() -> None:
    assert {path.stem for path in SCRIPTS.glob("*.py")} == set(ORDER)
    assert PAGE.read_text() == page(), "run `make gallery`"
    assert {path.stem for path in PAGE.parent.glob("*.png")} == set(ORDER)
