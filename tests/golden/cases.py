"""All cases: importing this module registers the cases of every kind."""

from __future__ import annotations

from pathlib import Path

from tests.golden import (  # noqa: F401
    analysis_cases,
    collector_cases,
    command_cases,
    discovery_cases,
    interface_cases,
    learning_cases,
    rappor_cases,
    survey_cases,
    written_cases,
)
from tests.golden.registry import CASES

__all__ = ["CASES", "golden_path"]

DATA = Path(__file__).parent / "data"


def golden_path(name: str) -> Path:
    """Return the golden file of a case."""
    return DATA / f"{name}.json"
