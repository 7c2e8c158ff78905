"""Links between pages, and mentions of pages in the code, lead to files and headings that exist."""

from __future__ import annotations

import re
import subprocess
import unicodedata
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
AT_THE_ROOT = ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "CHANGELOG.md", "SECURITY.md"]
PAGES = [
    *(ROOT / name for name in AT_THE_ROOT),
    *sorted((ROOT / "docs").rglob("*.md")),
    ROOT / "benchmarks" / "README.md",
    ROOT / "clients" / "js" / "README.md",
]
CODE = re.compile(r"^ *```.*?^ *```|`[^`\n]*`", re.DOTALL | re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """Return headings as MkDocs and GitHub name them, explicit {#anchors}, and API objects."""
    text = re.sub(r"^ *```.*?^ *```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    names = set(re.findall(r"(?:\{ ?#|^::: )([\w.-]+)", text, re.MULTILINE))
    for heading in re.findall(r"^#{1,6} +(.*?)(?: *\{[^}]*\})?$", text, re.MULTILINE):
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)|[`*]", r"\1", heading)
        ascii_only = unicodedata.normalize("NFKD", plain).encode("ascii", "ignore").decode()
        mkdocs = re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", ascii_only).strip().lower())
        github = re.sub(r"[^\w\s-]", "", plain.strip().lower()).replace(" ", "-")
        names |= {mkdocs, github}
    return names


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_to_files_and_headings(page: Path) -> None:
    text = CODE.sub("", page.read_text())
    for target, anchor in re.findall(r"\]\(([^)#\s:]*)#?([^)\s:]*)\)", text):
        file = page if not target else page.parent / target
        assert file.exists(), f"{page.name} links to {target}, which does not exist"
        if anchor and file.suffix == ".md":
            known = {anchor, anchor.rpartition(".")[0]} & anchors(file)  # a member: its class
            assert known, f"{page.name}: {target} has no heading #{anchor}"


def test_pages_that_code_mentions_exist() -> None:
    listed = subprocess.run(
        ["git", "grep", "-nIoE", r"docs/[a-z/-]+\.md", "--", ":!tests/golden"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if listed.returncode > 1:
        pytest.skip("not a git checkout")
    for line in listed.stdout.splitlines():
        where, _, mentioned = line.rpartition(":")
        assert (ROOT / mentioned).exists(), f"{where} mentions {mentioned}"


def test_a_missing_heading_would_be_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# One heading\n\n```sh\n# not a heading\n```\n## What `f(x)` does\n")
    assert anchors(page) == {"one-heading", "what-fx-does"}
