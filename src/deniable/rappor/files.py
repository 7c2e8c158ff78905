"""Read and write the CSV and JSON files of google/rappor.

Bit strings have the most significant bit first. Cohorts are numbered from 0. The entries of a map
number bits from 1 over all cohorts: cohort·k + bit + 1. Lines end with CR LF, as the tools of that
project write them. Text is not escaped against formulas of spreadsheets, because those tools would
not undo it.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, astuple, dataclass, fields
from pathlib import Path

import numpy as np

from deniable.errors import InputError
from deniable.kernels.array_types import Floats, Int32s, Int64s
from deniable.mechanisms import Noise
from deniable.mechanisms.schemes import scheme_named

LINE_END = "\r\n"


# --- params.csv ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Params:
    """Parameters of a variable: k bits, h hashes, m cohorts, and probabilities p, q and f."""

    k: int
    h: int
    m: int
    p: float
    q: float
    f: float

    @property
    def noise(self) -> Noise:
        """Noise with the probabilities as exact thresholds."""
        return Noise.of(p=self.p, q=self.q, f=self.f)


PARAMS_HEADER = [field.name for field in fields(Params)]


def read_params(path: str | Path) -> Params:
    """Read params.csv: the header `k,h,m,p,q,f` and one row."""
    rows = _rows(path)
    if len(rows) != 2 or [c.strip() for c in rows[0]] != PARAMS_HEADER:
        got = " / ".join(",".join(row) for row in rows[:2]) or "an empty file"
        raise InputError(f"{path}: expected the header k,h,m,p,q,f and one row, got {got}")
    try:
        k, h, m = (int(c) for c in rows[1][:3])
        p, q, f = (float(c) for c in rows[1][3:])
    except ValueError:
        raise InputError(
            f"{path}: expected three whole numbers and three probabilities, got {','.join(rows[1])}"
        ) from None
    return Params(k, h, m, p, q, f)


def write_params(path: str | Path, params: Params) -> None:
    """Write params.csv."""
    _write(path, [PARAMS_HEADER, astuple(params)])


# --- counts.csv and map.csv --------------------------------------------------------------------


def read_counts(path: str | Path, params: Params) -> tuple[Int64s, Int64s]:
    """Read counts.csv: set bits int64[m, k] and reports int64[m] per cohort."""
    table = _integers(path, params.m, params.k + 1, "total,bit0,…")
    ones, total = table[:, 1:], table[:, 0]
    if (bad := np.flatnonzero((ones > total[:, np.newaxis]).any(axis=1) | (total < 0))).size:
        raise InputError(
            f"{path}, line {bad[0] + 1}: a bit is set more often than there are reports "
            f"({total[bad[0]]})"
        )
    return ones, total


def write_counts(path: str | Path, ones: Int64s, total: Int64s) -> None:
    """Write counts.csv."""
    _write(path, np.column_stack([total, ones]).tolist())


@dataclass(frozen=True, eq=False)
class Map:
    """Bits that each candidate sets.

    strings : V candidates; positions : int32[m, V, h], numbered from 0 in each cohort.
    """

    strings: tuple[str, ...]
    positions: Int32s


def read_map(path: str | Path, params: Params) -> Map:
    """Read map.csv: per row a candidate string, then m·h numbers of bits."""
    rows = _rows(path)
    expected = 1 + params.m * params.h
    for line, row in enumerate(rows, 1):
        if len(row) != expected:
            raise InputError(
                f"{path}, line {line}: expected a string and {expected - 1} numbers (m·h), "
                f"got {len(row) - 1} numbers"
            )
    strings = tuple(row[0] for row in rows)
    try:
        flat = np.array([row[1:] for row in rows], dtype=np.int64)
    except (ValueError, OverflowError) as error:
        raise InputError(f"{path}: expected whole numbers after the string: {error}") from None
    places = flat.reshape(len(rows), params.m, params.h) - 1
    positions = places - np.arange(params.m)[:, np.newaxis] * params.k
    if positions.size and not 0 <= positions.min() <= positions.max() < params.k:
        line = int(np.flatnonzero(((positions < 0) | (positions >= params.k)).any((1, 2)))[0]) + 1
        raise InputError(
            f"{path}, line {line}: the numbers of cohort c must be from c·k+1 to (c+1)·k, with k = "
            f"{params.k}; was the map made for other parameters?"
        )
    return Map(strings, positions.transpose(1, 0, 2).astype(np.int32))


def hash_map(strings: Sequence[str], params: Params, scheme: str = "rappor-cpp") -> Map:
    """Return the map that the tools of google/rappor would make for these strings.

    scheme : hashing scheme; the Python client of google/rappor hashes as its C++ client does.
    """
    positions = scheme_named(scheme).positions
    rows = [
        [positions(s.encode(), c, params.k, params.h, b"") for s in strings]
        for c in range(params.m)
    ]
    shape = (params.m, len(strings), params.h)
    return Map(tuple(strings), np.array(rows, np.int32).reshape(shape))


def write_map(path: str | Path, candidates: Map, params: Params) -> None:
    """Write map.csv."""
    offsets = np.arange(params.m)[:, np.newaxis, np.newaxis] * params.k + 1
    places = (
        (candidates.positions + offsets).transpose(1, 0, 2).reshape(len(candidates.strings), -1)
    )
    _write(path, ([s, *row] for s, row in zip(candidates.strings, places.tolist(), strict=True)))


# --- schema and results ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Variable:
    """One row of a schema: metric, variable, its type, and the name of its parameter file."""

    metric: str
    name: str
    kind: str
    params: str


@dataclass(frozen=True)
class ResultRow:
    """One row of results.csv: estimates for a detected string, as clients and as a proportion."""

    string: str
    estimate: float
    std_error: float
    proportion: float
    prop_std_error: float
    prop_low_95: float
    prop_high_95: float


@dataclass(frozen=True)
class DistMetrics:
    """Content of metrics.json: figures about a whole run of decode-dist."""

    sample_size: int
    allocated_mass: float
    num_detected: int
    explained_var: float
    missing_var: float
    total_elapsed_time: float


def read_schema(path: str | Path) -> tuple[Variable, ...]:
    """Read a schema: the header `metric,var,var_type,params` and one row per variable."""
    rows = _rows(path)
    if not rows or rows[0] != ["metric", "var", "var_type", "params"]:
        got = ",".join(rows[0]) if rows else "an empty file"
        raise InputError(f"{path}: expected the header metric,var,var_type,params; got {got}")
    for line, row in enumerate(rows[1:], 2):
        if len(row) != 4:
            raise InputError(f"{path}, line {line}: expected 4 columns, got {','.join(row)}")
    return tuple(Variable(*row) for row in rows[1:])


def write_results(path: str | Path, rows: Sequence[ResultRow]) -> None:
    """Write results.csv."""
    header = [field.name for field in fields(ResultRow)]
    _write(path, [header, *map(astuple, rows)])


def write_metrics(path: str | Path, metrics: DistMetrics) -> None:
    """Write metrics.json."""
    Path(path).write_text(json.dumps(asdict(metrics), indent=2) + "\n")


def write_assoc_results(
    path: str | Path, names: Sequence[str], labels: Sequence[Sequence[str]], table: Floats
) -> None:
    """Write assoc-results.csv: `<var1>,<var2>,proportion`, the largest proportion first."""
    order = np.argsort(-table.ravel(), kind="stable")
    cells = zip(*np.unravel_index(order, table.shape), strict=True)
    rows = [
        [*(axis[i] for axis, i in zip(labels, cell, strict=True)), float(table[cell])]
        for cell in cells
    ]
    _write(path, [[*names, "proportion"], *rows])


# --- CSV ----------------------------------------------------------------------------------------


def _rows(path: str | Path) -> list[list[str]]:
    """Return the non-empty rows of a CSV file."""
    try:
        text = Path(path).read_bytes().decode()
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text: {error}") from None
    try:
        return [row for row in csv.reader(io.StringIO(text, newline="")) if row]
    except csv.Error as error:
        raise InputError(f"{path} is not CSV: {error}") from None


def _integers(path: str | Path, rows: int, columns: int, form: str) -> Int64s:
    """Return a CSV file as int64[rows, columns]; form : names of the columns, for messages."""
    cells = _rows(path)
    if len(cells) != rows or any(len(row) != columns for row in cells):
        widths = " or ".join(map(str, sorted({len(row) for row in cells})))
        got = f"{len(cells)} rows of {widths or 0} columns"
        raise InputError(f"{path}: expected {rows} rows of {columns} columns ({form}), got {got}")
    try:
        return np.array(cells, dtype=np.int64)
    except (ValueError, OverflowError) as error:
        raise InputError(f"{path}: expected whole numbers: {error}") from None


def _write(path: str | Path, rows: Iterable[Iterable[object]]) -> None:
    """Write rows as CSV."""
    with Path(path).open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator=LINE_END).writerows(rows)
