"""The bill of materials: complete, consistent and the same each time."""

from __future__ import annotations

import tomllib
from importlib.metadata import version

import pytest
from packaging.requirements import Requirement
from tools.sbom import ROOT, bill

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_it_has_the_keys_that_the_format_requires() -> None:
    made = bill(["collector", "postgres"])
    assert (made["bomFormat"], made["specVersion"], made["version"]) == ("CycloneDX", "1.6", 1)
    assert made["serialNumber"].startswith("urn:uuid:")
    for component in (made["metadata"]["component"], *made["components"]):
        assert component["type"] in ("application", "library")
        name, release = component["name"], component["version"]
        assert component["purl"] == component["bom-ref"] == f"pkg:pypi/{name}@{release}"
        (license,) = component["licenses"]
        assert license.get("expression") or license["license"]["name"]


def test_it_lists_what_the_extras_install_with_all_that_follows() -> None:
    made = bill(["collector"])
    there = {component["name"]: component["version"] for component in made["components"]}
    wanted = PROJECT["optional-dependencies"]["collector"]
    direct = {Requirement(text).name for text in wanted} - {"deniable"}
    assert direct | {"click", "anyio"} <= there.keys()  # of the extra cli, and of starlette
    assert not {"scipy", "psycopg", "pytest"} & there.keys()
    assert all(version(name) == release for name, release in there.items())


def test_references_lead_to_components() -> None:
    made = bill(["all"])
    known = {made["metadata"]["component"]["bom-ref"]}
    known |= {component["bom-ref"] for component in made["components"]}
    assert {entry["ref"] for entry in made["dependencies"]} == known
    assert all(set(entry["dependsOn"]) <= known for entry in made["dependencies"])


def test_the_client_alone_needs_nothing() -> None:
    assert bill([])["components"] == []


def test_the_same_input_gives_the_same_bill(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    one = bill(["cli"])
    assert one == bill(["cli"])
    assert one["metadata"]["timestamp"] == "2023-11-14T22:13:20Z"
    assert one["serialNumber"] != bill([])["serialNumber"]
