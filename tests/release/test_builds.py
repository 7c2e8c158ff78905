"""What is published: built twice with the same bytes, complete, with a description that works."""

from __future__ import annotations

import email.message
import email.parser
import email.policy
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from tools.readme_hook import for_package

ROOT = Path(__file__).parents[2]
UNPACKED = {"PYTHONPATH": "", "SOURCE_DATE_EPOCH": "1700000000"}
TREE = [
    ".ci", ".dockerignore", ".github", ".gitignore", ".pre-commit-config.yaml", "ARCHITECTURE.md",
    "CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "LICENSE", "Makefile", "README.md",
    "SECURITY.md", "benchmarks", "clients", "deploy", "docs", "examples", "experiments",
    "mkdocs.yml", "pyproject.toml", "src", "tests", "tools",
]  # fmt: skip
"""What a checkout has; caches and environments are left behind."""


def copied(folder: Path) -> Path:
    """Copy the checkout, with new times."""
    ignored = shutil.ignore_patterns("__pycache__", "node_modules", ".*_cache", "golden", "results")
    folder.mkdir()
    for name in TREE:
        if (ROOT / name).is_dir():
            shutil.copytree(
                ROOT / name, folder / name, ignore=ignored, copy_function=shutil.copyfile
            )
        else:
            shutil.copyfile(ROOT / name, folder / name)
    return folder


def built(source: Path, out: Path, umask: int, zone: str) -> list[Path]:
    """Build wheel and source archive without a network."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-d", str(out)],
        cwd=source,
        env=os.environ | UNPACKED | {"TZ": zone},
        umask=umask,
        check=True,
        capture_output=True,
    )
    return sorted(out.iterdir())


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The source archive and the wheel."""
    folder = tmp_path_factory.mktemp("builds")
    return built(copied(folder / "one"), folder / "first", 0o022, "UTC")


@pytest.mark.slow
def test_two_builds_have_the_same_bytes(packages: list[Path], tmp_path: Path) -> None:
    """From other folders, with other times of files, rights and time zones."""
    again = built(copied(tmp_path / "elsewhere"), tmp_path / "second", 0o077, "Asia/Tokyo")
    assert [path.name for path in again] == [path.name for path in packages]
    for one, other in zip(packages, again, strict=True):
        assert one.read_bytes() == other.read_bytes(), f"{one.name} is not reproducible"


@pytest.mark.slow
def test_the_source_archive_holds_all_that_its_tests_need(packages: list[Path]) -> None:
    archive = next(path for path in packages if path.name.endswith(".tar.gz"))
    with tarfile.open(archive) as opened:
        there = {name.partition("/")[2].partition("/")[0] for name in opened.getnames()}
    assert set(TREE) <= there
    assert there <= {*TREE, "PKG-INFO"}


@pytest.mark.slow
def test_the_wheel_holds_the_package_alone(packages: list[Path]) -> None:
    names = zipfile.ZipFile(next(p for p in packages if p.suffix == ".whl")).namelist()
    assert {name.partition("/")[0] for name in names if ".dist-info/" not in name} == {"deniable"}
    assert "deniable/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)


@pytest.mark.slow
def test_the_description_shows_without_the_repository(packages: list[Path]) -> None:
    wheel = zipfile.ZipFile(next(path for path in packages if path.suffix == ".whl"))
    (name,) = (name for name in wheel.namelist() if name.endswith("/METADATA"))
    parser = email.parser.BytesParser(policy=email.policy.default)
    metadata: email.message.Message = parser.parsebytes(wheel.read(name))
    assert metadata["Description-Content-Type"] == "text/markdown"
    text = wheel.read(name).decode().partition("\n\n")[2]
    assert text.startswith("# deniable")
    assert_no_relative_links(text)
    assert metadata["Author"]


def assert_no_relative_links(text: str) -> None:
    """Check every link and picture of a page."""
    for token in MarkdownIt().parse(text):
        for part in token.children or ():
            target = str(part.attrGet("href") or part.attrGet("src") or "https:")
            assert target.startswith("https:"), f"{target} leads nowhere outside the repository"


def test_links_lead_to_the_repository_when_there_is_one() -> None:
    """Also those whose text is code; code that looks like a link stays as it is."""
    page = "![a](p.png)\n\n[`x`](x/page.md#y) and [w](https://example.org), `[a](b)`\n"
    assert for_package(page, "", "1.0") == "`x` and [w](https://example.org), `[a](b)`\n"
    shown = for_package(page, "https://example.org/us/it", "1.0")
    assert "![a](https://example.org/us/it/raw/v1.0/p.png)" in shown
    assert "[`x`](https://example.org/us/it/blob/v1.0/x/page.md#y)" in shown
    assert "`[a](b)`" in shown
    assert_no_relative_links(shown)
    with pytest.raises(AssertionError, match="leads nowhere"):
        assert_no_relative_links(page)
