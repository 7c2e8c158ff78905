"""The files of deploy/, parsed, and what a collector accepts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from deniable.collector.api.routes import ROUTES
from deniable.collector.app import MAX_STOP_SECONDS
from deniable.collector.server import STOP_MARGIN_SECONDS
from deniable.collector.settings import ENVIRONMENT_PREFIX, Settings
from deniable.store.postgres import RETRY_SECONDS

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
SLOWEST_STOP_SECONDS = sum(
    (Settings().stop_time, STOP_MARGIN_SECONDS, RETRY_SECONDS, MAX_STOP_SECONDS)
)
"""Longest time between SIGTERM and the end: uploads, connections, a lost database, maintenance."""


@dataclass(frozen=True)
class Instruction:
    """One instruction of a Containerfile, on one line."""

    name: str
    text: str


def stages() -> list[list[Instruction]]:
    """Return the instructions of each stage of the Containerfile."""
    lines = [
        line
        for line in (DEPLOY / "Containerfile").read_text().splitlines()
        if line.strip() and not line.startswith("#")
    ]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    found: list[list[Instruction]] = []
    for line in joined.splitlines():
        name, _, text = line.partition(" ")
        if name == "FROM":
            found.append([])
        if found:
            found[-1].append(Instruction(name, text))
    return found


def only(stage: list[Instruction], name: str) -> str:
    """Return the text of the only instruction of this name."""
    (text,) = [instruction.text for instruction in stage if instruction.name == name]
    return text


def image_variables() -> dict[str, str]:
    """Return the environment variables that the image sets."""
    return dict(pair.split("=", 1) for pair in only(stages()[-1], "ENV").split())


def documents(name: str) -> list[Any]:
    """Return the documents of a YAML file."""
    return list(yaml.safe_load_all((DEPLOY / name).read_text()))


def settings_of(variables: dict[str, str]) -> Settings:
    """Return the settings that these variables make, all of which must be settings."""
    ours = {name: text for name, text in variables.items() if name.startswith(ENVIRONMENT_PREFIX)}
    known = {ENVIRONMENT_PREFIX + name.upper() for name in Settings.__dataclass_fields__}
    assert ours.keys() <= known, "variables that are not settings"
    return Settings.load({}, ours)


def has_route(path: str) -> bool:
    """Return whether the collector answers GET requests at this path."""
    return any(route.path == path and "GET" in (route.methods or ()) for route in ROUTES)
