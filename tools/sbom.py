"""Write a software bill of materials: every package that an installation contains.

    python -m tools.sbom collector postgres > deniable-collector.cdx.json

It is CycloneDX 1.6 in JSON, made from pyproject.toml and from the metadata of the packages in this
environment: their versions are those that the tests ran with. The same input gives the same bytes.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tomllib
import uuid
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from deniable.version import __version__

ROOT = Path(__file__).parents[1]
MAX_LICENSE_NAME = 80
"""Longest text that is the name of a license, and not its whole text."""


def bill(extras: Iterable[str]) -> dict[str, Any]:
    """Return the bill of materials of deniable with some extras.

    Parameters
    ----------
    extras : names of extras of pyproject.toml

    Raises
    ------
    KeyError
        If there is no such extra.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    graph = _closure(_own_requirements(project, extras))
    main = _component("deniable", __version__, {"expression": project["license"]}) | {
        "type": "application"
    }
    components = [
        _component(name, found.version, _license(found))
        for name in sorted(graph)
        if name != "deniable" and (found := distribution(name))
    ]
    references = {component["name"]: component["bom-ref"] for component in (main, *components)}
    content: dict[str, Any] = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": main},
        "components": components,
        "dependencies": [
            {"ref": references[name], "dependsOn": [references[needed] for needed in sorted(needs)]}
            for name, needs in sorted(graph.items())
        ],
    }
    digest = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(content, sort_keys=True))
    content["serialNumber"] = digest.urn
    if epoch := os.environ.get("SOURCE_DATE_EPOCH"):
        when = datetime.fromtimestamp(int(epoch), UTC)
        content["metadata"]["timestamp"] = when.isoformat().replace("+00:00", "Z")
    return content


def _own_requirements(project: dict[str, Any], extras: Iterable[str]) -> list[Requirement]:
    """Return what deniable needs with some extras; extras of its own are expanded."""
    texts = list(project["dependencies"])
    waiting, seen = list(extras), set[str]()
    while waiting:
        extra = waiting.pop()
        if extra in seen:
            continue
        seen.add(extra)
        for text in project["optional-dependencies"][extra]:
            requirement = Requirement(text)
            if requirement.name == project["name"]:
                waiting += requirement.extras
            else:
                texts.append(text)
    return [Requirement(text) for text in texts]


def _closure(own: list[Requirement]) -> dict[str, set[str]]:
    """Return the names of the packages that each package needs, for all that are needed."""
    graph: dict[str, set[str]] = {"deniable": set()}
    waiting = [("deniable", requirement) for requirement in own]
    seen = set[tuple[str, frozenset[str]]]()
    while waiting:
        parent, requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        graph[parent].add(name)
        graph.setdefault(name, set())
        if (name, frozenset(requirement.extras)) not in seen:
            seen.add((name, frozenset(requirement.extras)))
            waiting += [(name, needed) for needed in _needed(name, requirement.extras)]
    return graph


def _needed(name: str, extras: set[str]) -> Iterator[Requirement]:
    """Yield what an installed package needs on this machine, with some of its extras."""
    for text in distribution(name).requires or ():
        requirement = Requirement(text)
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            yield requirement


def _component(name: str, version: str, license: dict[str, Any]) -> dict[str, Any]:
    """Return the entry of one package."""
    purl = f"pkg:pypi/{canonicalize_name(name)}@{version}"
    entry: dict[str, Any] = {
        "type": "library",
        "bom-ref": purl,
        "name": canonicalize_name(name),
        "version": version,
        "purl": purl,
    }
    if license:
        entry["licenses"] = [license]
    return entry


def _license(package: Distribution) -> dict[str, Any]:
    """Return the license as the package names it, or nothing if it does not."""

    def values(field: str) -> list[str]:
        return package.metadata.get_all(field) or []

    for expression in values("License-Expression"):
        return {"expression": expression}
    names = [
        classifier.rpartition(" :: ")[2]
        for classifier in values("Classifier")
        if classifier.startswith("License ::")
    ]
    short = (name for name in (*values("License"), *names) if name and "\n" not in name)
    name = next((name for name in short if len(name) <= MAX_LICENSE_NAME), None)
    return {"license": {"name": name}} if name else {}


def main() -> None:
    """Print the bill of materials of the extras that the command line names."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("extras", nargs="*", default=["all"], help="extras of pyproject.toml")
    options = parser.parse_args()
    json.dump(bill(options.extras), sys.stdout, indent=1, ensure_ascii=False)
    print()


if __name__ == "__main__":
    main()
