"""What an experiment prints and keeps: tables of text, and JSON with seed, parameters and version.

A run writes data, a plot reads data, never both in one step.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from deniable.errors import InputError
from deniable.formatting import aligned
from deniable.version import __version__

Row = Mapping[str, Any]
COLUMNS = ("quantity", "paper", "ours", "over seeds", "agrees")


def rows_of(**columns: Iterable[object]) -> list[Row]:
    """Turn columns of equal length into rows.

    >>> rows_of(f=[0.5, 0.25], found=[12, 7])
    [{'f': 0.5, 'found': 12}, {'f': 0.25, 'found': 7}]
    """
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


@dataclass(frozen=True)
class Comparison:
    """One quantity, as the paper prints it and as it came out here.

    ours : the mean over trials; low, high : the least and the most, None where there was one value
    agrees : None where the paper prints no number to agree with
    """

    quantity: str
    paper: str
    ours: float
    low: float | None
    high: float | None
    agrees: bool | None

    @staticmethod
    def of(
        quantity: str,
        paper: float | str,
        seen: Sequence[float],
        *,
        agrees: bool | None = None,
        rounding: float = 0.0,
    ) -> Comparison:
        """Beside what was seen over trials: a printed number agrees if it lies among them, or
        within two of their standard deviations.

        rounding : half a unit of the last digit printed; agrees : said outright, of a statement
        """
        values = [float(v) for v in seen]
        low, high, mean = min(values), max(values), float(np.mean(values))
        if agrees is None and not isinstance(paper, str):
            near = 2 * float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
            among = low - rounding <= paper <= high + rounding
            agrees = among or abs(paper - mean) <= near
        several = len(values) > 1
        text = paper if isinstance(paper, str) else f"{paper:.6g}"
        return Comparison(
            quantity, text, mean, low if several else None, high if several else None, agrees
        )

    def row(self) -> Row:
        """As a line of a table."""
        spread = "" if self.low is None else f"{self.low:.4g} to {self.high:.4g}"
        agrees = {True: "yes", False: "no", None: ""}[self.agrees]
        values = (self.quantity, self.paper, f"{self.ours:.4g}", spread, agrees)
        return dict(zip(COLUMNS, values, strict=True))


@dataclass
class Record:
    """One experiment's run: parts by name, each rows of plain values."""

    experiment: str
    seed: int
    parameters: Mapping[str, Any]
    parts: dict[str, list[Row]] = field(default_factory=dict)
    comparisons: list[Comparison] = field(default_factory=list)
    _start: float = field(default_factory=time.perf_counter)

    def keep(self, part: str, rows: Sequence[Row]) -> None:
        """Keep rows under a name."""
        self.parts[part] = list(rows)

    def compare(self, quantity: str, paper: float | str, seen: Sequence[float], **how: Any) -> None:
        """Put a quantity beside the paper's; see `Comparison.of`."""
        self.comparisons.append(Comparison.of(quantity, paper, seen, **how))

    @property
    def seconds(self) -> float:
        """Since it began."""
        return time.perf_counter() - self._start

    def data(self) -> dict[str, Any]:
        """All of it, as JSON has it."""
        return {
            "experiment": self.experiment,
            "version": __version__,
            "seed": self.seed,
            "parameters": _finite(self.parameters),
            "seconds": round(self.seconds, 1),
            "comparisons": [_finite(asdict(c)) for c in self.comparisons],
            **_finite(self.parts),
        }

    def table(self) -> str:
        """Every quantity beside the paper's, as text."""
        rows = [COLUMNS, *(c.row().values() for c in self.comparisons)]
        return "\n".join(aligned([list(row) for row in rows], [False] * len(COLUMNS)))

    def write(self, folder: Path) -> Path:
        """Write everything to FOLDER/experiment.json."""
        data = self.data()
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.experiment}.json"
        path.write_text(json.dumps(data, indent=1, allow_nan=False) + "\n")
        return path


def _finite(value: object) -> Any:
    """The same as JSON has it: numpy's numbers as Python's, what is not a number as null."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not np.isfinite(value):
        return None
    if value is None or isinstance(value, str | int | float):
        return value
    raise InputError(f"expected numbers, texts and lists in a record, got {type(value).__name__}")
