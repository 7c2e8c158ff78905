"""A damaged file of any kind gives an error of deniable that names it, or is still readable."""

from __future__ import annotations

from pathlib import Path

import pytest

from deniable.errors import InputError
from tests.faults.spoilt_files import KINDS, Kind, damage


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_damage_is_explained(kind: Kind, tmp_path: Path) -> None:
    outcomes = damage(kind, tmp_path, 150)
    assert 0 < outcomes["read"] < 150, "some damage can be read, and some cannot"


def _unnamed(path: Path) -> None:
    if path.read_text() != "good":
        raise InputError("it is damaged")


@pytest.mark.parametrize("read", [lambda path: path.read_text().index("good"), _unnamed])
def test_other_errors_are_noticed(read: object, tmp_path: Path) -> None:
    """Broken twins: readers that raise a plain ValueError, or do not name the file."""
    kind = Kind("x.txt", lambda path: path.write_text("good"), read)  # type: ignore[arg-type]
    with pytest.raises(ExceptionGroup, match=r"x\.txt: .* wrong errors"):
        damage(kind, tmp_path, 20)
