"""Check and build a release; CONTRIBUTING.md, "Make a release", says when to call it.

    python -m tools.release check                  do all files name the same version?
    python -m tools.release check --tag v0.1.0     may this tag be released?
    python -m tools.release build                  write everything that is published to dist/
    python -m tools.release notes                  print the newest section of CHANGELOG.md

The version is written in src/deniable/version.py; package.json and the other files repeat it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from deniable.version import __version__
from tools.sbom import bill

ROOT = Path(__file__).parents[1]
REPEATED = {
    "clients/js/package.json": r'"version": "([^"]+)"',
    "CITATION.cff": r"^version: (\S+)$",
    "deploy/kubernetes.yaml": r"image: deniable:(\S+)$",
}
"""Files that repeat the version, and how it is found there."""
BILLS = {"deniable": ["all"], "deniable-collector": ["collector", "postgres"]}
"""Bills of materials: file names, and the extras that they cover."""


@dataclass(frozen=True)
class Section:
    """A section of CHANGELOG.md; `date` is "unreleased" before its release."""

    version: str
    date: str
    text: str


def sections(changelog: str) -> list[Section]:
    r"""Return the sections of a changelog, newest first.

    >>> [s.date for s in sections("# Changelog\n\n## 1.1 (unreleased)\n\n## 1.0 (2026-01-31)")]
    ['unreleased', '2026-01-31']
    """
    parts = re.split(r"^## (.*)$", changelog, flags=re.MULTILINE)
    found = []
    for heading, text in zip(parts[1::2], parts[2::2], strict=True):
        match = re.fullmatch(r"(\d+\.\d+(?:\.\d+)?) \((unreleased|\d{4}-\d\d-\d\d)\)", heading)
        if match is None:
            raise SystemExit(
                f"CHANGELOG.md: expected ## VERSION (DAY or unreleased), got {heading}"
            )
        found.append(Section(match[1], match[2], text.strip()))
    return found


def problems(root: Path = ROOT, version: str = __version__, tag: str = "") -> list[str]:
    """Return what contradicts the version, or with a tag, what prevents its release.

    Parameters
    ----------
    root : folder of the repository
    version : version of the package
    tag : tag that shall be released, or "" for none
    """
    found = []
    for name, pattern in REPEATED.items():
        for other in re.findall(pattern, (root / name).read_text(), re.MULTILINE) or ["none"]:
            if other != version:
                found.append(f"{name} names version {other}, but the version is {version}")
    newest, *older = sections((root / "CHANGELOG.md").read_text())
    if newest.version != version:
        found.append(f"CHANGELOG.md starts with {newest.version}, but the version is {version}")
    numbers = [tuple(map(int, section.version.split("."))) for section in (newest, *older)]
    if numbers != sorted(set(numbers), reverse=True):
        found.append("CHANGELOG.md: the sections do not go from the newest version to the oldest")
    if any(section.date == "unreleased" for section in older):
        found.append("CHANGELOG.md: only the newest section may be unreleased")
    day = re.search(r"^date-released: (\S+)$", (root / "CITATION.cff").read_text(), re.MULTILINE)
    if (day[1] if day else "unreleased") != newest.date:
        found.append("CITATION.cff: date-released must be the day of the newest CHANGELOG section")
    if tag and tag != f"v{version}":
        found.append(f"the tag {tag} is not v{version}")
    if tag and newest.date == "unreleased":
        found.append(f"CHANGELOG.md: write the day of the release instead of ({newest.date})")
    return found


def build(folder: Path) -> list[Path]:
    """Write wheel, source archive, npm package, bills of materials and checksums to a folder.

    Two builds of one commit write the same bytes: times are that of the commit.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    os.environ.setdefault("SOURCE_DATE_EPOCH", _commit_time())
    _run([sys.executable, "-m", "hatchling", "build", "-d", str(folder)], ROOT)
    if npm := shutil.which("npm"):
        quiet = ["--silent", "--no-update-notifier", "--pack-destination", str(folder)]
        _run([npm, "pack", *quiet], ROOT / "clients" / "js")
    else:
        print("npm is not installed: the package of the browser client is not built")
    for name, extras in BILLS.items():
        text = json.dumps(bill(extras), indent=1, ensure_ascii=False) + "\n"
        (folder / f"{name}.cdx.json").write_text(text)
    files = sorted(folder.iterdir())
    lines = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files]
    (folder / "SHA256SUMS").write_text("".join(lines))
    return files


def _commit_time() -> str:
    """Return the time of the last commit in seconds; outside a repository, a fixed one."""
    command = ["git", "log", "-1", "--format=%ct"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "1577836800"


def _run(command: list[str], folder: Path) -> None:
    """Run a program and show what it printed if it fails."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")


def main() -> None:
    """Run one of the commands."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("command", choices=["check", "build", "notes"])
    parser.add_argument("--tag", default="", help="tag to release, such as v0.1.0")
    parser.add_argument("--folder", type=Path, default=ROOT / "dist", help="where to build")
    options = parser.parse_args()
    if options.command == "notes":
        print(sections((ROOT / "CHANGELOG.md").read_text())[0].text)
        return
    if found := problems(tag=options.tag):
        raise SystemExit("\n".join(found))
    if options.command == "build":
        for file in build(options.folder):
            print(file)
    else:
        print(f"all files name version {__version__}")


if __name__ == "__main__":
    main()
