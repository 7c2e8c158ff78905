"""The list of cases: each is a function that gives JSON data, and says how exactly it repeats."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.golden.compare import CLOSE, Tolerance

Make = Callable[[], Any]
DATA = Path(__file__).parent / "data"


@dataclass(frozen=True)
class Case:
    """One golden file, and what makes its data."""

    name: str
    make: Make
    tolerance: Tolerance

    @property
    def path(self) -> Path:
        """The golden file."""
        return DATA / f"{self.name}.json"


CASES: dict[str, Case] = {}


def case(make: Make | None = None, *, tolerance: Tolerance = CLOSE) -> Any:
    """Register a function as the case of its name."""

    def register(function: Make) -> Make:
        name = function.__name__
        assert name not in CASES
        CASES[name] = Case(name, function, tolerance)
        return function

    return register if make is None else register(make)
