"""What an experiment prints and keeps: tables of text, and JSON with seed, parameters and version.

A run writes data, a plot reads data, never both in one step.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from deniable.errors import InputError
from deniable.version import __version__

Row = Mapping[str, Any]


def arguments(text: str | None, *, seed: int, **more: dict[str, Any]) -> argparse.Namespace:
    """An experiment's command line: --quick, --seed, -o, and its own options (name=settings)."""
    parser = argparse.ArgumentParser(
        description=text, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="few replications, to see it run")
    parser.add_argument("--seed", type=int, default=seed)
    parser.add_argument("-o", "--output", type=Path, help="folder for the data, as JSON")
    for name, settings in more.items():
        parser.add_argument(f"--{name.replace('_', '-')}", **settings)
    return parser.parse_args()


def text_table(rows: Sequence[Row]) -> str:
    """Rows of one set of names as aligned text.

    >>> print(text_table([{"f": 0.5, "found": 12}, {"f": 0.25, "found": 7}]))
       f  found
    0.50     12
    0.25      7
    """
    if not rows:
        return "(nothing)"
    names = list(rows[0])
    columns = [[name, *_formatted([row[name] for row in rows])] for name in names]
    widths = [max(map(len, column)) for column in columns]
    lefts = [isinstance(rows[0][name], str) for name in names]
    lines = [
        "  ".join(
            cell.ljust(width) if left else cell.rjust(width)
            for cell, width, left in zip(cells, widths, lefts, strict=True)
        ).rstrip()
        for cells in zip(*columns, strict=True)
    ]
    return "\n".join(lines)


def _formatted(values: Sequence[Any]) -> list[str]:
    """Numbers of one column with equally many digits, about four of them."""
    numbers = [abs(v) for v in values if isinstance(v, float) and np.isfinite(v) and v]
    digits = 0
    if numbers:
        digits = int(np.clip(3 - np.floor(np.log10(max(numbers))), 0, 9))
        while digits and all(round(v, digits - 1) == round(v, 9) for v in numbers):
            digits -= 1
        digits = max(digits, 2) if max(numbers) < 100 else digits
    return [
        f"{v:.{digits}f}" if isinstance(v, float) and (not v or abs(v) >= 0.5 * 10.0**-digits)
        else f"{v:.1e}" if isinstance(v, float)
        else f"{v:,}" if isinstance(v, int) and not isinstance(v, bool)
        else str(v)
        for v in values
    ]  # fmt: skip


@dataclass
class Record:
    """One experiment's run: parts by name, each rows of plain values."""

    experiment: str
    seed: int
    parameters: Mapping[str, Any]
    parts: dict[str, list[Row]] = field(default_factory=dict)
    _start: float = field(default_factory=time.perf_counter)

    def show(self, part: str, rows: Sequence[Row], note: str = "") -> None:
        """Keep rows under a name, and print them."""
        self.keep(part, rows)
        print(f"\n{note or part}\n{text_table(rows)}", flush=True)

    def keep(self, part: str, rows: Sequence[Row]) -> None:
        """Keep rows under a name without printing: what a figure needs."""
        self.parts[part] = list(rows)

    def write(self, folder: Path | None) -> Path | None:
        """Write everything to FOLDER/experiment.json, if there is a folder."""
        seconds = time.perf_counter() - self._start
        print(f"\n{self.experiment}: seed {self.seed}, {seconds:.0f} s", flush=True)
        if folder is None:
            return None
        data = {
            "experiment": self.experiment, "version": __version__, "seed": self.seed,
            "parameters": _finite(self.parameters), "seconds": round(seconds, 1),
            **_finite(self.parts),
        }  # fmt: skip
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.experiment}.json"
        path.write_text(json.dumps(data, indent=1, allow_nan=False) + "\n")
        return path


def _finite(value: Any) -> Any:
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
