"""google/rappor's files, read and written as they are.

Bit strings stand most significant first; cohorts count from 0; a map's entries count bits from 1
over all cohorts (cohort·k + bit + 1); their tools end lines with CR LF, and so do we. Text in these
files is not escaped against spreadsheets, since their tools would not undo it.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.discovery.ngrams.cliques import GramEdges
from deniable.errors import InputError
from deniable.mechanisms import Noise
from deniable.mechanisms.schemes import scheme_named
from deniable.rappor.text_lines import header_names
from deniable.rappor.text_reader import parse_reports
from deniable.rappor.text_writer import client_ids, format_reports

LINE_END = "\r\n"
BLOCK_ROWS = 1 << 16
RESULTS = ("string", "estimate", "std_error", "proportion", "prop_std_error", "prop_low_95",
           "prop_high_95")  # fmt: skip
METRICS = ("sample_size", "allocated_mass", "num_detected", "explained_var", "missing_var",
           "total_elapsed_time")  # fmt: skip


# --- params.csv ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Params:
    """k bits, h hashes, m cohorts, and the three probabilities."""

    k: int
    h: int
    m: int
    p: float
    q: float
    f: float

    @property
    def noise(self) -> Noise:
        """The probabilities as integers."""
        return Noise.of(p=self.p, q=self.q, f=self.f)


def read_params(path: str | Path) -> Params:
    """params.csv: `k,h,m,p,q,f` and one row."""
    rows = _rows(path)
    if len(rows) != 2 or [c.strip() for c in rows[0]] != ["k", "h", "m", "p", "q", "f"]:
        raise InputError(f"{path}: expected a header k,h,m,p,q,f and one row, got {rows[:2]}")
    try:
        k, h, m = (int(c) for c in rows[1][:3])
        p, q, f = (float(c) for c in rows[1][3:])
    except ValueError:
        raise InputError(f"{path}: expected three whole numbers and three probabilities, "
                         f"got {rows[1]}") from None  # fmt: skip
    return Params(k, h, m, p, q, f)


def write_params(path: str | Path, params: Params) -> None:
    """params.csv."""
    values = [params.k, params.h, params.m, params.p, params.q, params.f]
    _write(path, [["k", "h", "m", "p", "q", "f"], values])


# --- counts.csv and map.csv --------------------------------------------------------------------


def read_counts(path: str | Path, params: Params) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """counts.csv: (ones int64[m, k], total int64[m])."""
    table = _integers(path, params.m, params.k + 1, "total,bit0,…")
    ones, total = table[:, 1:], table[:, 0]
    if (bad := np.flatnonzero((ones > total[:, np.newaxis]).any(axis=1) | (total < 0))).size:
        raise InputError(f"{path}, line {bad[0] + 1}: a bit was set more often than there are "
                         f"reports ({total[bad[0]]})")  # fmt: skip
    return ones, total


def write_counts(path: str | Path, ones: NDArray[np.int64], total: NDArray[np.int64]) -> None:
    """counts.csv."""
    _write(path, np.column_stack([total, ones]).tolist())


@dataclass(frozen=True, eq=False)
class Map:
    """Which bits each candidate sets: positions int32[m, V, h], counted from 0 in each cohort."""

    strings: tuple[str, ...]
    positions: NDArray[np.int32]


def read_map(path: str | Path, params: Params) -> Map:
    """map.csv: a string, then m·h places."""
    rows = _rows(path)
    expected = 1 + params.m * params.h
    for line, row in enumerate(rows, 1):
        if len(row) != expected:
            raise InputError(f"{path}, line {line}: expected a string and {expected - 1} numbers "
                             f"(m·h), got {len(row) - 1}")  # fmt: skip
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
            f"{path}, line {line}: expected cohort c's numbers from c·k+1 to (c+1)·k, k = "
            f"{params.k}; is the map of other parameters?"
        )
    return Map(strings, positions.transpose(1, 0, 2).astype(np.int32))


def hash_map(strings: Sequence[str], params: Params, scheme: str = "rappor-cpp") -> Map:
    """The map that their tools would make; their Python client hashes as their C++ one does."""
    positions = scheme_named(scheme).positions
    rows = [
        [positions(s.encode(), c, params.k, params.h, b"") for s in strings]
        for c in range(params.m)
    ]
    shape = (params.m, len(strings), params.h)
    return Map(tuple(strings), np.array(rows, np.int32).reshape(shape))


def write_map(path: str | Path, candidates: Map, params: Params) -> None:
    """map.csv."""
    offsets = np.arange(params.m)[:, np.newaxis, np.newaxis] * params.k + 1
    places = (
        (candidates.positions + offsets).transpose(1, 0, 2).reshape(len(candidates.strings), -1)
    )
    _write(path, ([s, *row] for s, row in zip(candidates.strings, places.tolist(), strict=True)))


# --- reports and true values -------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Reports:
    """A reports file: clients as bytes, cohort u16[N], each bit column packed, with its width."""

    clients: NDArray[np.bytes_]
    cohort: NDArray[np.uint16]
    columns: Mapping[str, tuple[NDArray[np.uint8], int]]

    def __len__(self) -> int:
        return len(self.cohort)


def read_reports(
    path: str | Path, *, columns: Sequence[str] | None = None, cohorts: int | None = None
) -> Reports:
    """`client,cohort,bloom,prr,irr`, or `client,cohort,<var1>,<var2>`, with a header line.

    columns : the bit columns wanted; all if not given. cohorts : larger numbers are refused.
    """
    if Path(path).stat().st_size == 0:
        raise InputError(f"{path} is empty: expected a header and lines of client,cohort,bits")
    with Path(path).open("rb") as file:
        names = header_names(file.readline())
    keep = None
    if columns is not None:
        if names is None or not set(columns) <= set(names):
            raise InputError(f"{path}: expected columns {list(columns)}, got {names}")
        keep = [names.index(c) for c in columns]
    data = np.memmap(path, np.uint8, "r").data
    try:
        found = parse_reports(data, keep=keep, cohorts=cohorts)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    clients = client_ids(data, found.client_start, found.client_length)
    kept = zip(found.names, found.bits, found.widths, strict=True)
    return Reports(clients, found.cohort, {n: (bits, width) for n, bits, width in kept})


def write_reports(path: str | Path, reports: Reports) -> None:
    """A reports file, in blocks: touching fresh memory costs more than writing."""
    names = list(reports.columns)
    with Path(path).open("wb") as file:
        for start in range(0, max(1, len(reports)), BLOCK_ROWS):
            rows = slice(start, start + BLOCK_ROWS)
            file.write(
                format_reports(
                    reports.clients[rows],
                    reports.cohort[rows],
                    [bits[rows] for bits, _ in reports.columns.values()],
                    [width for _, width in reports.columns.values()],
                    names=None if start else names,
                ).data
            )


def read_true_values(
    path: str | Path,
) -> tuple[tuple[str, ...], NDArray[np.int64], tuple[str, ...]]:
    """`client,cohort,value`: (clients, cohort int64[N], values)."""
    rows = _rows(path)
    if rows and rows[0] == ["client", "cohort", "value"]:
        rows = rows[1:]
    for line, row in enumerate(rows, 1):
        if len(row) != 3 or not row[1].isdigit():
            raise InputError(f"{path}, row {line}: expected client,cohort,value; got {row}")
    clients, cohorts, values = zip(*rows, strict=True) if rows else ((), (), ())
    return tuple(clients), np.array([int(c) for c in cohorts], np.int64), tuple(values)


def write_true_values(
    path: str | Path, clients: Iterable[str], cohort: Iterable[int], values: Iterable[str]
) -> None:
    """`client,cohort,value`, with that header."""
    _write(
        path, [["client", "cohort", "value"], *map(list, zip(clients, cohort, values, strict=True))]
    )


# --- schema, results, graph ----------------------------------------------------------------------


@dataclass(frozen=True)
class Variable:
    """One row of a schema: a metric's variable, its type, and the name of its parameters' file."""

    metric: str
    name: str
    kind: str
    params: str


def read_schema(path: str | Path) -> tuple[Variable, ...]:
    """`metric,var,var_type,params`."""
    rows = _rows(path)
    if not rows or rows[0] != ["metric", "var", "var_type", "params"]:
        got = rows[0] if rows else "an empty file"
        raise InputError(f"{path}: expected the header metric,var,var_type,params; got {got}")
    for line, row in enumerate(rows[1:], 2):
        if len(row) != 4:
            raise InputError(f"{path}, line {line}: expected 4 columns, got {row}")
    return tuple(Variable(*row) for row in rows[1:])


def write_schema(path: str | Path, variables: Iterable[Variable]) -> None:
    """`metric,var,var_type,params`."""
    rows = [[v.metric, v.name, v.kind, v.params] for v in variables]
    _write(path, [["metric", "var", "var_type", "params"], *rows])


def read_results(path: str | Path) -> list[dict[str, Any]]:
    """results.csv: a dictionary a row, numbers as numbers."""
    rows = _rows(path)
    if not rows or tuple(rows[0]) != RESULTS:
        got = rows[0] if rows else "an empty file"
        raise InputError(f"{path}: expected the header {','.join(RESULTS)}; got {got}")
    found = []
    for line, row in enumerate(rows[1:], 2):
        try:
            numbers = [float(c) for c in row[1:]]
            found.append(dict(zip(RESULTS, [row[0], *numbers], strict=True)))
        except ValueError:
            raise InputError(f"{path}, line {line}: expected a string and 6 numbers, got {row}"
                             ) from None  # fmt: skip
    return found


def write_results(path: str | Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """results.csv."""
    _write(path, [list(RESULTS), *([row[name] for name in RESULTS] for row in rows)])


def write_metrics(path: str | Path, metrics: Mapping[str, float]) -> None:
    """metrics.json."""
    Path(path).write_text(json.dumps({name: metrics[name] for name in METRICS}, indent=2) + "\n")


def write_assoc_results(
    path: str | Path,
    names: Sequence[str],
    labels: Sequence[Sequence[str]],
    table: NDArray[np.float64],
) -> None:
    """assoc-results.csv: `<var1>,<var2>,proportion`, largest first."""
    order = np.argsort(-table.ravel(), kind="stable")
    cells = zip(*np.unravel_index(order, table.shape), strict=True)
    rows = [
        [*(axis[i] for axis, i in zip(labels, cell, strict=True)), float(table[cell])]
        for cell in cells
    ]
    _write(path, [[*names, "proportion"], *rows])


def read_graph(path: str | Path) -> GramEdges:
    """`num_partitions 3`, `ngram_size 2`, then lines `edge 0.ab 1.cd`."""
    sizes: dict[str, int] = {}
    edges = []
    text = Path(path).read_text(encoding="utf-8")
    for number, line in enumerate(text.split("\n"), 1):
        words = line.rstrip("\r").split(" ")
        try:
            if words[0] in ("num_partitions", "ngram_size"):
                sizes[words[0]] = int(words[1])
            elif words[0] == "edge":
                edges.append(_edge(line.rstrip("\r")[5:], sizes))
            elif words != [""]:
                raise ValueError
        except (ValueError, IndexError, KeyError):
            raise InputError(
                f"{path}, line {number}: expected num_partitions N, ngram_size N or "
                f"edge P.GRAM P.GRAM; got {line!r}"
            ) from None
    if len(sizes) != 2:
        raise InputError(f"{path}: expected num_partitions and ngram_size, got {list(sizes)}")
    return GramEdges(sizes["num_partitions"], sizes["ngram_size"], tuple(edges))


def _edge(text: str, sizes: Mapping[str, int]) -> tuple[tuple[int, str], tuple[int, str]]:
    """`0.ab 1.cd`; a gram may hold a space or a full stop, but its length is known."""
    ends = []
    for _ in range(2):
        number, _, rest = text.partition(".")
        gram, text = rest[: sizes["ngram_size"]], rest[sizes["ngram_size"] :].removeprefix(" ")
        partition = int(number)
        if len(gram) != sizes["ngram_size"] or not 0 <= partition < sizes["num_partitions"]:
            raise ValueError
        ends.append((partition, gram))
    if text or ends[0][0] == ends[1][0]:
        raise ValueError
    return ends[0], ends[1]


def write_graph(path: str | Path, graph: GramEdges) -> None:
    """The graph file."""
    lines = [f"num_partitions {graph.partitions}", f"ngram_size {graph.gram}"]
    lines += [f"edge {a[0]}.{a[1]} {b[0]}.{b[1]}" for a, b in graph.edges]
    Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")


# --- their CSV ----------------------------------------------------------------------------------


def _rows(path: str | Path) -> list[list[str]]:
    try:
        text = Path(path).read_bytes().decode()
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text: {error}") from None
    try:
        return [row for row in csv.reader(io.StringIO(text, newline="")) if row]
    except csv.Error as error:
        raise InputError(f"{path} is not CSV: {error}") from None


def _integers(path: str | Path, rows: int, columns: int, form: str) -> NDArray[np.int64]:
    found = _rows(path)
    if len(found) != rows or any(len(row) != columns for row in found):
        got = f"{len(found)} rows of {sorted({len(r) for r in found})} columns"
        raise InputError(f"{path}: expected {rows} rows of {columns} columns ({form}), got {got}")
    try:
        return np.array(found, dtype=np.int64)
    except (ValueError, OverflowError) as error:
        raise InputError(f"{path}: expected whole numbers: {error}") from None


def _write(path: str | Path, rows: Iterable[Iterable[Any]]) -> None:
    with Path(path).open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator=LINE_END).writerows(rows)
