"""One version in all files, and a changelog that fits."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tools import release

from deniable.version import __version__


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The files that name the version, to be changed."""
    for name in (*release.REPEATED, "CHANGELOG.md"):
        target = tmp_path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(release.ROOT / name, target)
    return tmp_path


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))


def release_day(root: Path, day: str) -> None:
    """Write the day of the release where it belongs."""
    newest = release.sections((root / "CHANGELOG.md").read_text())[0]
    edit(root / "CHANGELOG.md", f"({newest.date})", f"({day})")
    citation = root / "CITATION.cff"
    lines = [line for line in citation.read_text().splitlines() if "date-released" not in line]
    citation.write_text("\n".join([*lines, f"date-released: {day}", ""]))


def test_all_files_name_the_version() -> None:
    assert release.problems() == []


@pytest.mark.parametrize("name", release.REPEATED)
def test_a_file_with_another_version_is_found(copy: Path, name: str) -> None:
    edit(copy / name, __version__, "9.9.9")
    (found,) = release.problems(copy)
    assert name in found and "9.9.9" in found


def test_a_changelog_of_another_version_is_found(copy: Path) -> None:
    edit(copy / "CHANGELOG.md", f"## {__version__}", "## 9.9.9")
    assert "CHANGELOG.md starts with 9.9.9" in release.problems(copy)[0]


def test_sections_in_the_wrong_order_are_found(copy: Path) -> None:
    with (copy / "CHANGELOG.md").open("a") as file:
        file.write("\n## 9.9.9 (2026-01-01)\n")
    assert "newest version to the oldest" in " ".join(release.problems(copy))


def test_only_a_dated_version_may_be_released(copy: Path) -> None:
    release_day(copy, "2027-01-31")
    tag = f"v{__version__}"
    assert release.problems(copy, tag=tag) == []
    assert "is not v" in release.problems(copy, tag="v9.9.9")[0]
    edit(copy / "CITATION.cff", "2027-01-31", "2027-02-01")
    assert "date-released" in release.problems(copy, tag=tag)[0]
    edit(copy / "CHANGELOG.md", "(2027-01-31)", "(unreleased)")
    assert "write the day" in " ".join(release.problems(copy, tag=tag))
