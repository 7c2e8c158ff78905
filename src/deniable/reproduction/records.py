"""Records of experiments: rows of data as JSON, and numbers compared with the paper's.

A run writes data, with its seed, parameters and version; a figure is drawn from that data.
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
    """One quantity, as the paper prints it and as we measure it.

    ours : mean over trials; low, high : smallest and largest value, None if there is only one
    agrees : None if the paper prints no number
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
        """Compare what the paper prints with the values of our trials.

        A printed number agrees if it lies in their range, or within two of their standard
        deviations.

        paper : the number, or a statement in words
        agrees : whether a statement agrees
        rounding : half a unit of the last digit printed
        """
        values = np.array(seen, float)
        low, high, mean = float(values.min()), float(values.max()), float(values.mean())
        several = len(values) > 1
        if agrees is None and not isinstance(paper, str):
            near = 2 * float(values.std(ddof=1)) if several else 0.0
            agrees = low - rounding <= paper <= high + rounding or abs(paper - mean) <= near
        text = paper if isinstance(paper, str) else f"{paper:.6g}"
        if not several:
            return Comparison(quantity, text, mean, None, None, agrees)
        return Comparison(quantity, text, mean, low, high, agrees)

    def row(self) -> dict[str, str]:
        """Return the line of a table."""
        spread = "" if self.low is None else f"{self.low:.4g} to {self.high:.4g}"
        agrees = {True: "yes", False: "no", None: ""}[self.agrees]
        values = (self.quantity, self.paper, f"{self.ours:.4g}", spread, agrees)
        return dict(zip(COLUMNS, values, strict=True))


@dataclass
class Record:
    """One run of an experiment: parts by name, each of them rows of plain values."""

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
        """Compare a quantity with the paper's; see `Comparison.of`."""
        self.comparisons.append(Comparison.of(quantity, paper, seen, **how))

    @property
    def seconds(self) -> float:
        """Seconds since the run began."""
        return time.perf_counter() - self._start

    def data(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {
            "experiment": self.experiment,
            "version": __version__,
            "seed": self.seed,
            "parameters": _json(self.parameters),
            "seconds": round(self.seconds, 1),
            "comparisons": [_json(asdict(c)) for c in self.comparisons],
            **_json(self.parts),
        }

    def table(self) -> str:
        """Return all comparisons as a table of text."""
        rows = [COLUMNS, *(tuple(c.row().values()) for c in self.comparisons)]
        return "\n".join(aligned(rows, [False] * len(COLUMNS)))

    def write(self, folder: Path) -> Path:
        """Write everything to FOLDER/experiment.json."""
        data = self.data()
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.experiment}.json"
        path.write_text(json.dumps(data, indent=1, allow_nan=False) + "\n")
        return path


def _json(value: object) -> Any:
    """Return the value as JSON has it: NumPy's numbers as Python's, NaN and infinity as null."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): _json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_json(item) for item in value]
    if isinstance(value, float) and not np.isfinite(value):
        return None
    if value is None or isinstance(value, str | int | float):
        return value
    raise InputError(f"expected numbers, texts and lists in a record, got {type(value).__name__}")
