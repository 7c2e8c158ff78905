"""Records of experiments: rows of data as JSON, and numbers compared with the paper's.

A run writes data, with its seed, parameters and version; a figure is drawn from that data.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from scipy.stats import t as student

from deniable.errors import InputError
from deniable.formatting import aligned
from deniable.version import __version__

Row = Mapping[str, Any]
COLUMNS = ("quantity", "paper", "ours", "predicted", "verdict")


def rows_of(**columns: Iterable[object]) -> list[Row]:
    """Turn columns of equal length into rows.

    >>> rows_of(f=[0.5, 0.25], found=[12, 7])
    [{'f': 0.5, 'found': 12}, {'f': 0.25, 'found': 7}]
    """
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


@dataclass(frozen=True)
class Claim:
    """What the paper says in words about a number: it is above, at least, or not some value.

    >>> Claim("above", 0).holds(0.01, 0.03), Claim("above", 0).holds(-0.01, 0.03)
    (True, None)
    """

    relation: Literal["above", "at least", "not"]
    value: float

    def __str__(self) -> str:
        return f"{self.relation} {self.value:g}"

    def holds(self, low: float, high: float) -> bool | None:
        """Say whether the claim is true of every number from low to high; None if of some."""
        if self.relation == "not":
            return True if not low <= self.value <= high else False if low == high else None
        strictly = self.relation == "above"
        if low > self.value or (low == self.value and not strictly):
            return True
        return False if high < self.value or (high == self.value and strictly) else None


@dataclass(frozen=True)
class Comparison:
    """One quantity, as the paper prints it and as we measure it, judged by one rule.

    From the mean m, the standard deviation s and the number n of our crowds follows the range in
    which the paper's number would lie in 95% of all cases if it came from crowds like ours:
    m ± t s √(1/k + 1/n), with t of Student's distribution with n − 1 degrees of freedom and k, the
    number of crowds behind the paper's number: 1 for a single run, infinite for what it says about
    a method in general. A number agrees if it lies in this range. A claim in words agrees if it is
    true in the whole range, and does not if it is true nowhere in it.

    ours : mean over crowds (geometric, if numbers are compared by their logarithms)
    low, high : smallest and largest value of a crowd, None if there is only one
    agrees : None if the paper says nothing, or if our crowds cannot decide
    crowds : number of our crowds; predicted : the range, None for a single crowd
    difference : ours minus the paper's, or the ratio of the two for logarithms; empty if they agree
    reason : why they differ, as far as known
    """

    quantity: str
    paper: str
    ours: float
    low: float | None
    high: float | None
    agrees: bool | None
    crowds: int = 1
    predicted: tuple[float, float] | None = None
    difference: str = ""
    reason: str = ""

    @staticmethod
    def of(
        quantity: str,
        paper: float | Claim | None,
        seen: Sequence[float],
        *,
        behind: float = 1,
        logarithm: bool = False,
        rounding: float = 0.0,
        computed: bool = False,
        reason: str = "",
    ) -> Comparison:
        """Compare what the paper says with the values of our crowds.

        paper : the number or the claim; None if it says nothing
        behind : crowds behind the paper's number, infinite for a claim about a method
        logarithm : whether to compare logarithms, of numbers that vary by factors
        rounding : half a unit of the last digit printed; computed : no crowds were needed
        """
        values = np.array(seen, float)
        scale: Any = np.log if logarithm else np.asarray
        back: Any = np.exp if logarithm else np.asarray
        count, mean = len(values), float(np.mean(scale(values)))
        text, ours = "" if paper is None else str(paper), float(back(mean))
        if isinstance(paper, int | float):
            text = f"{paper:.6g}"
        low, high = (float(values.min()), float(values.max())) if count > 1 else (None, None)
        found = Comparison(quantity, text, ours, low, high, None, count)
        if paper is None or (count < 2 and not computed):
            return found
        spread = float(np.std(scale(values), ddof=1)) if count > 1 else 0.0
        return found.judged(paper, mean, spread, behind, logarithm, rounding, reason)

    def judged(
        self,
        paper: float | Claim,
        mean: float,
        spread: float,
        behind: float,
        logarithm: bool,
        rounding: float,
        reason: str,
    ) -> Comparison:
        """Return the comparison with its verdict; mean and spread of logarithms, if they count."""
        back: Any = np.exp if logarithm else np.asarray
        quantile = float(student.ppf(0.975, self.crowds - 1)) if self.crowds > 1 else 0.0
        margin = quantile * spread * np.sqrt(1 / behind + 1 / self.crowds) + rounding
        low, high = float(back(mean - margin)), float(back(mean + margin))
        if isinstance(paper, Claim):
            agrees, against = paper.holds(low, high), paper.value
        else:
            agrees, against = bool(low <= paper <= high), paper
        judged = replace(self, agrees=agrees, predicted=(low, high))
        if agrees is not False:
            return judged
        difference = f"{self.ours - against:+.3g}"
        if logarithm:
            difference = f"a factor of {self.ours / against:.3g}"
        return replace(judged, difference=difference, reason=reason or "reason not known")

    @property
    def verdict(self) -> str:
        """Agrees, differs by how much and why, cannot be decided; empty if there is no rule.

        >>> Comparison.of("found", 12, [6, 7, 8, 7], reason="a smaller crowd").verdict
        'differs by -5: a smaller crowd'
        """
        if self.agrees is None:
            return "undecided" if self.predicted else ""
        return "agrees" if self.agrees else f"differs by {self.difference}: {self.reason}"

    def row(self) -> dict[str, str]:
        """Return the line of a table."""
        spread = "" if self.predicted is None else "{:.4g} to {:.4g}".format(*self.predicted)
        values = (self.quantity, self.paper, f"{self.ours:.4g}", spread, self.verdict)
        return dict(zip(COLUMNS, values, strict=True))


@dataclass
class Record:
    """One run of an experiment: parts by name, each of them rows of plain values."""

    experiment: str
    seed: int
    parameters: Mapping[str, Any]
    parts: dict[str, list[Row]] = field(default_factory=dict)
    comparisons: list[Comparison] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    _start: float = field(default_factory=time.perf_counter)

    def keep(self, part: str, rows: Sequence[Row]) -> None:
        """Keep rows under a name."""
        self.parts[part] = list(rows)

    def compare(
        self, quantity: str, paper: float | Claim | None, seen: Sequence[float], **how: Any
    ) -> None:
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
            "notes": list(self.notes),
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
