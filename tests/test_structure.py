"""The structure of the package: the limits of `tools/measure.py`, names, and the map of folders."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tools.measure import (
    LIMITS,
    PACKAGE,
    VERBS,
    above_ceilings,
    folders,
    measure,
    modules,
    repeated_classes,
)

MOST_MODULES = 17
FIGURES = measure()


@pytest.mark.parametrize("figure", LIMITS)
def test_the_package_is_within_its_limits(figure: str) -> None:
    assert FIGURES[figure] <= LIMITS[figure], "python tools/measure.py lists what is behind it"


def test_nothing_grows_above_its_ceiling() -> None:
    assert not above_ceilings(), "take something out; `python tools/measure.py` has all figures"


def test_a_class_name_has_one_meaning() -> None:
    assert not repeated_classes()


def test_no_module_is_named_like_a_public_verb() -> None:
    """`deniable.decode` is a function; a module of that name would hide it or be hidden."""
    assert not [str(path) for path, _, _ in modules() if path.stem in VERBS]


def test_folders_are_small() -> None:
    assert not {name: count for name, count in folders().items() if count > MOST_MODULES}


def test_every_folder_is_on_the_map() -> None:
    """ARCHITECTURE.md has a row for each folder; a sub-folder may stand in its parent's row."""
    text = (Path(__file__).parents[1] / "ARCHITECTURE.md").read_text()
    rows = dict(re.findall(r"^\| `([\w/]+)/` \|(.*)$", text, re.MULTILINE))
    there = {name for name in folders() if name != "."}
    there |= {str(parent) for name in there for parent in Path(name).parents if parent.name}
    there = {name for name in there if (PACKAGE / name / "__init__.py").exists()}
    missing = [
        name
        for name in sorted(there)
        if name not in rows and f"`{Path(name).name}/`" not in rows.get(str(Path(name).parent), "")
    ]
    assert not missing, "folders that ARCHITECTURE.md does not list"
    assert not rows.keys() - there, "rows of folders that are not there"
