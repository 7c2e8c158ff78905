"""The same analysis of one period after another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from deniable.errors import InputError
from deniable.results.base import Result


@dataclass(frozen=True, eq=False)
class Series(Result):
    """Results of one kind, a period each, earliest first.

    by : "day" or "week"; periods : the first day of each, such as "2027-01-04" (weeks begin on
    Monday); parts : each period's result. Tests count the candidates of their own period only: over
    many periods some false detections are to be expected. skipped : periods that could not be
    analysed, and why.
    """

    by: str
    periods: tuple[str, ...]
    parts: tuple[Result, ...]
    skipped: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if len(self.periods) != len(self.parts):
            raise InputError(
                f"expected a result for each of {len(self.periods)} periods, got {len(self.parts)}"
            )
        if len({type(part) for part in self.parts}) > 1:
            raise InputError("expected results of one kind")

    def columns(self) -> dict[str, Sequence[Any]]:
        """Every period's rows, one period after another."""
        named: dict[str, list[Any]] = {"period": []}
        for period, part in zip(self.periods, self.parts, strict=True):
            columns = part.columns()
            named["period"] += [period] * len(next(iter(columns.values()), ()))
            for name, column in columns.items():
                named.setdefault(name, []).extend(column)
        return dict(named)

    def heading(self) -> str:
        text = f"{len(self.periods)} {self.by}s"
        if self.periods:
            text += f", {self.periods[0]} to {self.periods[-1]}"
        return f"{text}; {len(self.skipped)} could not be analysed" if self.skipped else text
