"""Read google/rappor's parameters, schemas and maps, which may be compressed with gzip."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from deniable.errors import InputError, check_integer, did_you_mean
from deniable.mechanisms import Noise
from deniable.mechanisms.schemes import scheme_named
from deniable.text_files import decode_text

GZIP_MAGIC = b"\x1f\x8b"
MAX_TEXT_BYTES = 1 << 30
"""Largest schema or map, uncompressed: a small compressed file may unfold to any size."""
LARGEST_COUNT = 65536
"""Largest number of bits, hashes and cohorts."""
ANY_NOISE = Noise.of(p=0.25, q=0.75)
"""Noise that every client supports, to check the other parameters."""
PARAMS_HEADER = ["k", "h", "m", "p", "q", "f"]
SCHEMA_HEADER = ["metric", "var", "var_type", "params"]
Row = tuple[int, list[str]]
"""A row of a CSV file, with the number of its line."""


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """Open a file to read it, decompressed."""
    with path.open("rb") as file:
        compressed = file.read(2) == GZIP_MAGIC
        file.seek(0)
        try:
            yield cast(BinaryIO, gzip.GzipFile(fileobj=file)) if compressed else file
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise InputError(f"cannot decompress {path}: {error}") from None


def csv_rows(path: Path) -> list[Row]:
    """Return the rows of a CSV file that are not empty."""
    with opened(path) as file:
        data = file.read(MAX_TEXT_BYTES + 1)
    if len(data) > MAX_TEXT_BYTES:
        raise InputError(f"{path} has more than {MAX_TEXT_BYTES:,} bytes: divide it")
    reader = csv.reader(io.StringIO(decode_text(data, str(path)), newline=""))
    try:
        return [(reader.line_num, row) for row in reader if row]
    except csv.Error as error:
        raise InputError(f"{path}, line {reader.line_num}: {error}") from None


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


def read_params(path: Path) -> Params:
    """Read params.csv: the header `k,h,m,p,q,f` and one row."""
    rows = csv_rows(path)
    if len(rows) != 2 or [cell.strip() for cell in rows[0][1]] != PARAMS_HEADER:
        got = " / ".join(",".join(row) for _, row in rows[:2]) or "an empty file"
        raise InputError(f"{path}: expected the header k,h,m,p,q,f and one row, got {got:.80}")
    line, row = rows[1]
    try:
        k, h, m = map(int, row[:3])
        p, q, f = map(float, row[3:])
    except ValueError:
        raise InputError(
            f"{path}, line {line}: expected three whole numbers and three probabilities, got "
            f"{','.join(row):.80}"
        ) from None
    try:
        return Params(k, h, m, p, q, f)
    except InputError as error:
        raise InputError(f"{path}, line {line}: {error}") from None


@dataclass(frozen=True)
class Variable:
    """A variable of a schema: its name, its kind, and the name of its parameter file."""

    name: str
    kind: str
    params: str


def read_schema(path: Path, metric: str | None) -> tuple[str, list[Variable]]:
    """Read a metric of a schema, by default the only one; return its name and its variables."""
    (_, header), *rows = csv_rows(path) or [(0, ["an empty file"])]
    if header != SCHEMA_HEADER:
        raise InputError(
            f"{path}: expected the header metric,var,var_type,params; got {','.join(header):.80}"
        )
    for line, row in rows:
        if len(row) != 4:
            raise InputError(f"{path}, line {line}: expected 4 columns, got {','.join(row):.80}")
        if row[2] not in ("string", "boolean"):
            raise InputError(
                f"{path}, line {line}: expected var_type string or boolean, got {row[2]!r:.40}"
            )
    metrics = list(dict.fromkeys(row[0] for _, row in rows))
    if not metrics:
        raise InputError(f"{path} has no variables: expected lines metric,var,var_type,params")
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
    return wanted, [Variable(*row[1:]) for _, row in rows if row[0] == wanted]


def read_map(path: Path, params: Params, client: str) -> list[str]:
    """Return the candidates of a map; raise InputError if the client hashes them otherwise.

    A row is a string, then h numbers for each of m cohorts: cohort·k + bit + 1.
    """
    scheme = scheme_named(f"rappor-{client}")
    scheme.check(params.k, params.h, ANY_NOISE)
    lines: dict[str, int] = {}
    for line, (text, *numbers) in csv_rows(path):
        where = f"{path}, line {line}"
        if len(numbers) != params.m * params.h:
            raise InputError(
                f"{where}: expected a string and {params.m * params.h} numbers (m·h in the "
                f"parameters), got {len(numbers)} numbers"
            )
        if not text or text.splitlines() != [text]:
            raise InputError(f"{where}: {text!r:.80} cannot be a line of text: remove it")
        if (first := lines.setdefault(text, line)) != line:
            raise InputError(f"{where}: {text!r:.80} is already in line {first}: remove one")
        expected = [
            str(cohort * params.k + bit + 1)
            for cohort in range(params.m)
            for bit in scheme.positions(text.encode(), cohort, params.k, params.h, b"")
        ]
        if [number.strip() for number in numbers] != expected:
            raise InputError(
                f"{where}: {text!r:.80} has other bits than the {client} client sets with these "
                "parameters: choose the client of the reports with --client, and its own map"
            )
    if not lines:
        raise InputError(f"{path} is empty: expected a string and its bits per line")
    return list(lines)
