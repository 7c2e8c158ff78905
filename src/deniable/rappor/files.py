"""Read and write the CSV and JSON files of google/rappor.

Bit strings have the most significant bit first. Cohorts are numbered from 0. The entries of a map
number bits from 1 over all cohorts: cohort·k + bit + 1. Lines end with CR LF, as the tools of that
project write them. Text is not escaped against formulas of spreadsheets, because those tools would
not undo it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, astuple, dataclass, fields
from pathlib import Path

import numpy as np

from deniable.analysis.counting import MAX_REPORTS
from deniable.errors import InputError, check_integer, did_you_mean
from deniable.kernels.array_types import Floats, Int32s, Int64s
from deniable.mechanisms import Noise
from deniable.mechanisms.schemes import scheme_named
from deniable.rappor.csv_files import Rows, csv_rows, integers, write_rows

ANY_NOISE = Noise.of(p=0.25, q=0.75)
"""Noise that every client supports, to check the other parameters."""
LARGEST_COUNT = 65536
"""Largest number of bits, hashes and cohorts."""


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

    def __post_init__(self) -> None:
        for name in "khm":
            check_integer(name, getattr(self, name), 1, LARGEST_COUNT)
        Noise.of(p=self.p, q=self.q, f=self.f)  # raises if they are no probabilities

    @property
    def noise(self) -> Noise:
        """Noise with the probabilities as exact thresholds."""
        return Noise.of(p=self.p, q=self.q, f=self.f)


PARAMS_HEADER = [field.name for field in fields(Params)]


def read_params(path: str | Path) -> Params:
    """Read params.csv: the header `k,h,m,p,q,f` and one row."""
    rows = csv_rows(path)
    if len(rows) != 2 or [c.strip() for c in rows[0][1]] != PARAMS_HEADER:
        got = " / ".join(",".join(row) for _, row in rows[:2]) or "an empty file"
        raise InputError(f"{path}: expected the header k,h,m,p,q,f and one row, got {got}")
    line, row = rows[1]
    try:
        k, h, m = (int(c) for c in row[:3])
        p, q, f = (float(c) for c in row[3:])
    except ValueError:
        raise InputError(
            f"{path}, line {line}: expected three whole numbers and three probabilities, got "
            f"{','.join(row)}"
        ) from None
    try:
        return Params(k, h, m, p, q, f)
    except InputError as error:
        raise InputError(f"{path}, line {line}: {error}") from None


def write_params(path: str | Path, params: Params) -> None:
    """Write params.csv."""
    write_rows(path, [PARAMS_HEADER, astuple(params)])


# --- counts.csv and map.csv --------------------------------------------------------------------


def read_counts(path: str | Path, params: Params) -> tuple[Int64s, Int64s]:
    """Read counts.csv: set bits int64[m, k] and reports int64[m] per cohort."""
    rows = csv_rows(path)
    if len(rows) != params.m:
        raise InputError(
            f"{path}: expected {params.m} rows, one per cohort (m in the parameters), got "
            f"{len(rows)}"
        )
    for line, row in rows:
        if len(row) != params.k + 1:
            raise InputError(
                f"{path}, line {line}: expected {params.k + 1} columns (the number of reports, then"
                f" {params.k} bits, k in the parameters), got {len(row)}"
            )
    table = integers(path, rows)
    ones, total = table[:, 1:], table[:, 0]
    possible = (ones >= 0) & (ones <= total[:, np.newaxis])
    if (bad := np.flatnonzero(~possible.all(axis=1))).size:
        raise InputError(
            f"{path}, line {rows[bad[0]][0]}: expected every bit to be set 0 to {total[bad[0]]} "
            "times, the number of reports"
        )
    if total.sum(dtype=np.float64) > MAX_REPORTS:
        raise InputError(f"{path} counts more than {MAX_REPORTS:,} reports, the maximum")
    if not total.any():
        raise InputError(f"{path} has no reports: the first number of every line is 0")
    return ones, total


def count_rows(ones: Int64s, total: Int64s) -> Rows:
    """Return the rows of counts.csv."""
    rows: Rows = np.column_stack([total, ones]).tolist()
    return rows


@dataclass(frozen=True, eq=False)
class Map:
    """Bits that each candidate sets.

    strings : V candidates; positions : int32[m, V, h], numbered from 0 in each cohort.
    """

    strings: tuple[str, ...]
    positions: Int32s


def read_map(path: str | Path, params: Params) -> Map:
    """Read map.csv: per row a candidate string, then m·h numbers of bits."""
    rows = csv_rows(path)
    if not rows:
        raise InputError(f"{path} is empty: expected a string and its bits per line")
    expected = params.m * params.h
    seen: dict[str, int] = {}
    for line, row in rows:
        if len(row) - 1 != expected:
            raise InputError(
                f"{path}, line {line}: expected a string and {expected} numbers (m·h in the "
                f"parameters), got {len(row) - 1} numbers"
            )
        if (first := seen.setdefault(row[0], line)) != line:
            raise InputError(f"{path}, line {line}: {row[0]!r} is already in line {first}")
    flat = integers(path, [(line, row[1:]) for line, row in rows])
    places = flat.reshape(len(rows), params.m, params.h) - 1
    positions = places - np.arange(params.m)[:, np.newaxis] * params.k
    if (bad := np.flatnonzero(((positions < 0) | (positions >= params.k)).any((1, 2)))).size:
        raise InputError(
            f"{path}, line {rows[bad[0]][0]}: the numbers of cohort c must be from c·k+1 to "
            f"(c+1)·k, with k = {params.k}; was the map made for other parameters?"
        )
    return Map(tuple(seen), positions.transpose(1, 0, 2).astype(np.int32))


def hash_map(strings: Sequence[str], params: Params, scheme: str = "rappor-cpp") -> Map:
    """Return the map that the tools of google/rappor would make for these strings.

    scheme : hashing scheme; the Python client of google/rappor hashes as its C++ client does.
    """
    hashing = scheme_named(scheme)
    hashing.check(params.k, params.h, ANY_NOISE)
    rows = [
        [hashing.positions(s.encode(), c, params.k, params.h, b"") for s in strings]
        for c in range(params.m)
    ]
    shape = (params.m, len(strings), params.h)
    return Map(tuple(strings), np.array(rows, np.int32).reshape(shape))


def map_rows(candidates: Map, params: Params) -> Rows:
    """Return the rows of map.csv."""
    offsets = np.arange(params.m)[:, np.newaxis, np.newaxis] * params.k + 1
    places = (
        (candidates.positions + offsets).transpose(1, 0, 2).reshape(len(candidates.strings), -1)
    )
    return [[s, *row] for s, row in zip(candidates.strings, places.tolist(), strict=True)]


# --- schema and results ---------------------------------------------------------------------------


SCHEMA_HEADER = ["metric", "var", "var_type", "params"]
VARIABLE_TYPES = ("string", "boolean")


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
    rows = csv_rows(path)
    if not rows or rows[0][1] != SCHEMA_HEADER:
        got = ",".join(rows[0][1]) if rows else "an empty file"
        raise InputError(f"{path}: expected the header metric,var,var_type,params; got {got}")
    if len(rows) == 1:
        raise InputError(f"{path} has no variables: expected lines metric,var,var_type,params")
    for line, row in rows[1:]:
        if len(row) != 4:
            raise InputError(f"{path}, line {line}: expected 4 columns, got {','.join(row)}")
        if row[2] not in VARIABLE_TYPES:
            raise InputError(
                f"{path}, line {line}: expected var_type string or boolean, got {row[2]!r}"
            )
    return tuple(Variable(*row) for _, row in rows[1:])


def read_metric(path: str | Path, metric: str | None) -> list[Variable]:
    """Read the variables of a metric of a schema, by default of the only one."""
    rows = read_schema(path)
    metrics = sorted({row.metric for row in rows})
    if metric is None and len(metrics) > 1:
        raise InputError(
            f"{path} has the metrics {', '.join(metrics)}: choose one with --metric-name"
        )
    wanted = metrics[0] if metric is None else metric
    if wanted not in metrics:
        raise InputError(
            f"{path} has no metric {wanted!r}, only {', '.join(metrics)}."
            f"{did_you_mean(wanted, metrics)}"
        )
    return [row for row in rows if row.metric == wanted]


def write_results(path: str | Path, rows: Sequence[ResultRow]) -> None:
    """Write results.csv."""
    header = [field.name for field in fields(ResultRow)]
    write_rows(path, [header, *map(astuple, rows)])


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
    write_rows(path, [[*names, "proportion"], *rows])
