r"""Read reports of google/rappor's clients: lines `client,cohort,bits,…` below a header.

Bits are 0s and 1s, the most significant first. Lines end with \n or \r\n. Arrow splits a file; if
it or a check refuses the file, a slow pass looks for the first wrong line and says what is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa
from pyarrow import csv

from deniable.errors import InputError, did_you_mean
from deniable.kernels.array_types import Bytes, UInt16s
from deniable.rappor.files import opened

BLOCK_BYTES = 1 << 22
MAX_SHOWN = 40
"""Number of characters of a wrong field that a message repeats."""


@dataclass(frozen=True, eq=False)
class Reports:
    """Reports of a file.

    clients : ids of the clients; cohort : uint16[N]
    bits : uint8[N, B] of each column, packed with the lowest bit first
    """

    clients: pa.ChunkedArray
    cohort: UInt16s
    bits: list[Bytes]


@dataclass(frozen=True)
class Form:
    """Form of the lines: names of all columns, widths of those that are read, cohorts."""

    names: tuple[str, ...]
    widths: Mapping[str, int]
    cohorts: int


def read_reports(path: Path, widths: Mapping[str, int], cohorts: int) -> Reports:
    """Read a file of reports.

    widths : number of bits of each column to read, by its name; if there is one and no such column,
    it is `irr` or the only column of bits
    """
    with opened(path) as file:
        names = _names(path, file.readline())
        form = Form(names, _columns(path, names[2:], widths), cohorts)
        try:
            return _split(file, form)
        except ValueError as error:  # Arrow's errors are of this kind, too
            _check_lines(path, form)
            raise InputError(f"{path} is not a file of reports: {error}") from None


def _names(path: Path, header: bytes) -> tuple[str, ...]:
    """Return the names of the columns."""
    text = header.decode("utf-8-sig", "replace").strip()
    names = tuple(name.strip().strip('"') for name in text.split(","))
    if len(names) < 3 or names[1].lower() != "cohort":
        raise InputError(
            f"{path}, line 1: expected a header client,cohort,… and columns of bits, got "
            f"{text[:MAX_SHOWN]!r}"
        )
    if len(set(names)) != len(names):
        raise InputError(f"{path}, line 1: two columns have one name: {', '.join(names)}")
    return names


def _columns(path: Path, names: tuple[str, ...], widths: Mapping[str, int]) -> Mapping[str, int]:
    """Return the widths of the columns to read."""
    if missing := [name for name in widths if name not in names]:
        if len(widths) == 1 and ("irr" in names or len(names) == 1):
            return {"irr" if "irr" in names else names[0]: widths[missing[0]]}
        raise InputError(
            f"{path}, line 1: no column {missing[0]!r}, only {', '.join(names)}: rename the column "
            f"of its reports.{did_you_mean(missing[0], names)}"
        )
    return widths


def _split(file: BinaryIO, form: Form) -> Reports:
    """Return the reports below the header; raise ValueError or ArrowInvalid if one is wrong."""
    client, cohort, *_ = form.names
    types = {client: pa.binary(), cohort: pa.int32()}
    types |= {name: pa.binary(width) for name, width in form.widths.items()}
    options = {"check_utf8": False, "null_values": [], "include_columns": list(types)}
    blocks = csv.open_csv(
        file,
        read_options=csv.ReadOptions(column_names=form.names, block_size=BLOCK_BYTES),
        parse_options=csv.ParseOptions(quote_char=False, ignore_empty_lines=False),
        convert_options=csv.ConvertOptions(column_types=types, **options),
    )
    clients, cohorts, bits = [], [], []
    for block in blocks:
        clients.append(block.column(0))
        cohorts.append(block.column(1).to_numpy())
        bits.append([_packed(column) for column in block.columns[2:]])
    joined = np.concatenate(cohorts)
    if joined.min() < 0 or joined.max() >= form.cohorts:
        raise ValueError("a cohort is out of range")
    columns = [np.concatenate(parts) for parts in zip(*bits, strict=True)]
    return Reports(pa.chunked_array(clients), joined.astype(np.uint16), columns)


def _packed(column: pa.FixedSizeBinaryArray) -> Bytes:
    """Pack characters, most significant bit first, into bytes, lowest bit first."""
    width = column.type.byte_width
    characters = np.frombuffer(column.buffers()[1], np.uint8)[column.offset * width :]
    bits = characters[: len(column) * width].reshape(-1, width) - np.uint8(ord("0"))
    if bits.size and bits.max() > 1:
        raise ValueError("a character is neither 0 nor 1")
    return np.packbits(bits[:, ::-1], axis=1, bitorder="little")


def _check_lines(path: Path, form: Form) -> None:
    """Raise InputError for the first wrong line."""
    number = 1
    with opened(path) as file:
        file.readline()
        for number, line in enumerate(file, 2):
            try:
                _check_line(line.rstrip(b"\r\n").decode("utf-8", "replace"), form)
            except InputError as error:
                raise InputError(f"{path}, line {number}: {error}") from None
    if number == 1:
        raise InputError(f"{path} has no reports: expected lines below the header")


def _check_line(line: str, form: Form) -> None:
    """Raise InputError unless a line has the form."""
    fields = line.split(",")
    if len(fields) != len(form.names):
        raise InputError(
            f"expected {len(form.names)} fields ({','.join(form.names)}), got "
            f"{len(fields) if line else 'an empty line'}"
        )
    cohort = fields[1]
    if not cohort.isdecimal() or int(cohort) >= form.cohorts:
        raise InputError(f"expected a cohort in 0..{form.cohorts - 1}, got {cohort[:MAX_SHOWN]!r}")
    for name, width in form.widths.items():
        bits = fields[form.names.index(name)]
        if len(bits) != width:
            raise InputError(f"column {name!r}: expected {width} bits, got {len(bits)} characters")
        if wrong := bits.strip("01"):
            raise InputError(f"column {name!r}: expected 0s and 1s, got {wrong[0]!r}")
