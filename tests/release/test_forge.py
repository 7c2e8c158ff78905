"""Workflows, templates and hooks: linters accept them, and what they name exists."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PINNED = re.compile(r"uses: [\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$")
SCHEMAS = {
    "github-workflows": ".github/workflows/*.yml",
    "github-issue-forms": ".github/ISSUE_TEMPLATE/*_re*.yml",
    "github-issue-config": ".github/ISSUE_TEMPLATE/config.yml",
    "citation-file-format": "CITATION.cff",
    "compose-spec": "deploy/compose.yaml",
}
"""Published schemas, which check-jsonschema brings along, and the files that follow them."""
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def load(path: Path) -> dict[str, Any]:
    """Return a YAML file; YAML 1.1 reads the key `on` as true."""
    content: dict[Any, Any] = yaml.safe_load(path.read_text())
    return {"on" if key is True else key: value for key, value in content.items()}


def steps_of(workflow: dict[str, Any]) -> list[dict[str, Any]]:
    return [step for job in workflow["jobs"].values() for step in job.get("steps", ())]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_is_complete_and_pinned(path: Path) -> None:
    workflow = load(path)
    assert {"name", "on", "permissions", "jobs"} <= workflow.keys()
    assert workflow["permissions"] == {"contents": "read"}
    for name, job in workflow["jobs"].items():
        needed = job.get("needs", [])
        needed = [needed] if isinstance(needed, str) else needed
        assert set(needed) <= workflow["jobs"].keys(), name
        if "uses" in job:
            assert (ROOT / job["uses"]).exists()
        else:
            assert job["timeout-minutes"] and not job["runs-on"].endswith("latest")
    for step in steps_of(workflow):
        assert ("uses" in step) != ("run" in step)
        if "run" in step:
            assert "github.ref_name" not in step["run"], "a tag's name would be run as code"

    for line in path.read_text().splitlines():
        if re.search(r"uses: (?!\./)", line):
            assert PINNED.search(line), f"{line.strip()} is not pinned to a commit"


@pytest.mark.slow
@pytest.mark.parametrize("schema", SCHEMAS)
def test_files_follow_their_published_schemas(schema: str, tmp_path: Path) -> None:
    files = sorted(ROOT.glob(SCHEMAS[schema]))
    assert files
    assert passes("check-jsonschema", "--builtin-schema", f"vendor.{schema}", *files)
    spoilt = tmp_path / files[0].name
    spoilt.write_text(re.sub(r"^(jobs|body|blank_\w+|authors|services):", r"\1s:",
                             files[0].read_text(), flags=re.MULTILINE))  # fmt: skip
    assert not passes("check-jsonschema", "--builtin-schema", f"vendor.{schema}", spoilt)


@pytest.mark.slow
def test_a_linter_of_workflows_finds_nothing(tmp_path: Path) -> None:
    """Injected expressions, leaked credentials, unpinned actions, too many rights, and more."""
    strict = ("--offline", "--min-severity", "medium", "--min-confidence", "medium")
    assert passes("zizmor", *strict, *WORKFLOWS)
    spoilt = tmp_path / ".github" / "workflows" / "ci.yml"
    spoilt.parent.mkdir(parents=True)
    text = WORKFLOWS[0].read_text()
    spoilt.write_text(text.replace("make lint", "echo ${{ github.event.issue.title }}"))
    assert not passes("zizmor", *strict, spoilt)


def passes(program: str, *arguments: str | Path) -> bool:
    """Run a program of the development environment; return whether it found no mistake."""
    command = [Path(sys.executable).with_name(program), *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    print(done.stdout, done.stderr)
    return done.returncode == 0


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_calls_targets_and_files_that_exist(path: Path) -> None:
    commands = [shlex.split(step["run"]) for step in steps_of(load(path)) if "run" in step]
    made = {words[1] for words in commands if words[0] == "make"}
    assert made and made <= TARGETS
    scripts = {word for words in commands for word in words if word.startswith(".ci/")}
    assert all((ROOT / script).exists() for script in scripts)


def test_ci_covers_every_python_that_the_package_names() -> None:
    named = re.findall(r":: (3\.\d+)$", "\n".join(PROJECT["classifiers"]), re.MULTILINE)
    jobs = load(ROOT / ".github" / "workflows" / "ci.yml")["jobs"]
    for name in ("test", "wheels"):
        assert jobs[name]["strategy"]["matrix"]["python"] == named
    assert PROJECT["requires-python"] == f">={named[0]}"
    targets = {step["run"] for job in jobs.values() for step in job["steps"] if "run" in step}
    wanted = {"make lint", "make test", "make test-wheels", "make docs", "make test-deploy"}
    assert wanted <= targets


def test_a_release_is_tested_signed_and_has_no_passwords() -> None:
    workflow = load(ROOT / ".github" / "workflows" / "release.yml")
    assert workflow["on"] == {"push": {"tags": ["v*"]}}
    jobs = workflow["jobs"]
    build = jobs["build"]
    assert build["needs"] == "ci"
    assert build["permissions"]["attestations"] == build["permissions"]["id-token"] == "write"
    signed = [step for step in build["steps"] if "attest-build-provenance" in step.get("uses", "")]
    assert signed[0]["with"] == {"subject-path": "dist/*"}
    assert "secrets." not in (ROOT / ".github" / "workflows" / "release.yml").read_text()
    published = [job for name, job in jobs.items() if name.startswith("publish")]
    assert all(len(job["permissions"]) == 1 for job in published)


@pytest.mark.slow
def test_the_test_of_the_image_runs_when_it_is_called() -> None:
    """Its name keeps it out of other runs, so it must be named, and pytest must collect it."""
    recipe = (ROOT / "Makefile").read_text().partition("\ntest-deploy:")[2].partition("\n\n")[0]
    (line,) = (line for line in recipe.splitlines() if "with_engine.py" in line)
    command = [sys.executable, *line.split()[1:], "--collect-only", "-n", "0"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert "with_engine.py::test_the_image_serves" in done.stdout, "it would be left out silently"


@pytest.mark.parametrize("name", ["bug_report.yml", "feature_request.yml"])
def test_issue_forms(name: str) -> None:
    form = load(ROOT / ".github" / "ISSUE_TEMPLATE" / name)
    assert {"name", "description", "body"} <= form.keys()
    kinds = {"markdown", "textarea", "input", "dropdown", "checkboxes"}
    asked = [item for item in form["body"] if item["type"] != "markdown"]
    assert all(item["type"] in kinds and "attributes" in item for item in form["body"])
    assert all(item["attributes"]["label"] for item in asked)
    identifiers = [item["id"] for item in asked]
    assert len(set(identifiers)) == len(identifiers)


def test_hooks_run_programs_of_the_development_environment() -> None:
    programs = {"ruff": "ruff", "lint-imports": "import-linter", "python": None}
    names = {re.split(r"[\[>=<]", text)[0] for text in PROJECT["optional-dependencies"]["dev"]}
    for repository in load(ROOT / ".pre-commit-config.yaml")["repos"]:
        assert repository["repo"] == "local"
        for hook in repository["hooks"]:
            assert {"id", "name", "entry", "language"} <= hook.keys()
            package = programs[Path(hook["entry"].split()[0]).name]
            assert package is None or package in names


def test_the_citation_has_its_required_keys() -> None:
    citation = load(ROOT / "CITATION.cff")
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()
    assert citation["cff-version"] == "1.2.0"
    assert citation["license"] == PROJECT["license"]
    for entry in (citation, *citation["references"]):
        assert entry["title"] and entry["authors"]
        assert all("name" in a or {"family-names", "given-names"} <= a.keys()
                   for a in entry["authors"])  # fmt: skip
    assert all("type" in reference for reference in citation["references"])


def test_no_file_names_an_index_of_packages() -> None:
    """Neither a host of packages nor one of images: where they come from is the user's choice."""
    hosts = "|".join(
        name.replace(" ", r"\.")
        for name in ("pypi org", "pythonhosted org", "npmjs org", "npmjs com", "docker io",
                     "ghcr io", "quay io", "gcr io")
    )  # fmt: skip
    command = ["git", "grep", "-lIE", rf"\b({hosts})\b"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode > 1:
        pytest.skip("not a git checkout")
    assert done.stdout == ""
