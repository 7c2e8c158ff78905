"""Read and write reports files of google/rappor: `client,cohort,bloom,prr,irr`.

Files for associations (`client,cohort,var1,var2`) have the same form with other columns. Arrow
splits a file into fields. If Arrow or a check below refuses the file, it is read again line by
line, which finds the wrong line and says what is wrong with it.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import csv

from deniable.compute.progress import report_progress
from deniable.errors import InputError, did_you_mean
from deniable.kernels.array_types import Bytes, Int32s, UInt16s, UInt32s
from deniable.kernels.words import byte_width, check_packed
from deniable.rappor.csv_files import input_bytes, input_name
from deniable.rappor.report_lines import (
    LineForm,
    checked_fields,
    form_of,
    header_names,
    numbered,
    split_line,
)

Fields = tuple[NDArray[np.bytes_], UInt16s, list[Bytes]]
"""Client ids [N], cohorts [N], and the characters uint8[N, width] of each bit column."""

COMMA, NEWLINE, ZERO, NINE = b",\n09"
BLOCK_BYTES = 1 << 22
"""Number of bytes that are read at once."""
BLOCK_ROWS = 1 << 16
"""Number of reports that are written at once."""
MAX_COHORT_DIGITS = 5


@dataclass(frozen=True, eq=False)
class Reports:
    """Content of a reports file.

    clients : client ids as bytes [N]; cohort : uint16[N]; columns : packed bits uint8[N, B] and
    width of each bit column, by its name.
    """

    clients: NDArray[np.bytes_]
    cohort: UInt16s
    columns: Mapping[str, tuple[Bytes, int]]

    def __len__(self) -> int:
        return len(self.cohort)


def read_reports(
    path: str | Path,
    *,
    columns: Sequence[str] | None = None,
    cohorts: int | None = None,
    bits: Mapping[str, int] | None = None,
) -> Reports:
    """Read a reports file; `-` is standard input.

    columns : bit columns to return, by default all; cohorts : number of cohorts, by default 65,536
    bits : number of bits of some bit columns; by default as in the first line
    """
    return ReportsFile(path).read(columns=columns, cohorts=cohorts, bits=bits)


class ReportsFile:
    """A reports file whose columns are known, and whose reports have not been read yet."""

    def __init__(self, path: str | Path) -> None:
        self.name = input_name(path)
        self._data = input_bytes(path)
        if not len(self._data):
            raise InputError(
                f"{self.name} is empty: expected a header and lines of client,cohort,bits"
            )
        head = _line_at(self._data, 0)
        names = header_names(head)
        self.columns = numbered(len(split_line(head)) - 2) if names is None else names
        """Names of the bit columns: "3", "4", … if the file has no header."""

    def read(
        self,
        *,
        columns: Sequence[str] | None = None,
        cohorts: int | None = None,
        bits: Mapping[str, int] | None = None,
    ) -> Reports:
        """Return the reports; the parameters are those of `read_reports`."""
        for column in columns or ():
            self.check_column(column)
        try:
            return parse_reports(self._data, columns=columns, cohorts=cohorts, bits=bits)
        except InputError as error:
            raise InputError(f"{self.name}: {error}") from None

    def check_column(self, column: str) -> None:
        """Raise InputError if there is no bit column of this name."""
        if column not in self.columns:
            raise InputError(
                f"{self.name} has the bit columns {', '.join(self.columns) or 'none'}; expected "
                f"{column}.{did_you_mean(column, self.columns)}"
            )

    def main_column(self, option: str) -> str:
        """Return the column of single-variable reports: `irr`, or the only one.

        option : what the user can add to choose a column, for messages
        """
        if "irr" in self.columns:
            return "irr"
        if len(self.columns) != 1:
            raise InputError(
                f"{self.name} has the bit columns {', '.join(self.columns) or 'none'}: choose one "
                f"with {option}"
            )
        return self.columns[0]


def parse_reports(
    data: Bytes,
    *,
    widths: Sequence[int] | None = None,
    columns: Sequence[str] | None = None,
    cohorts: int | None = None,
    bits: Mapping[str, int] | None = None,
) -> Reports:
    r"""Parse the bytes of a reports file, with or without a header; lines end with \n or \r\n.

    widths : number of bits per bit column; by default as in the first line
    columns : bit columns to return, by default all; without a header they are named "3", "4", …
    cohorts, bits : see `read_reports`
    All columns are checked.

    >>> text = b"client,cohort,bloom,prr,irr\r\n7,1,0010,0110,1110\r\n"
    >>> parsed = parse_reports(np.frombuffer(text, np.uint8), columns=["irr"])
    >>> parsed.cohort.tolist(), parsed.columns["irr"][0].tolist()
    ([1], [[14]])
    """
    head = _line_at(data, 0)
    names = header_names(head)
    body = data if names is None else data[len(head) :]
    if not len(body) and widths is None:
        raise InputError("the file has no reports: expected at least one line after the header")
    first = _line_at(body, 0)
    form = form_of(first, names, widths, cohorts, bits or {})
    lines = len(body) / max(1, len(first))  # nearly, for the progress
    try:
        blocks = list(_packed_blocks(_split_by_arrow(body, form), form, lines))
        if sum(len(cohort) for _, cohort, _ in blocks) != _line_count(body):
            raise ValueError("Arrow, unlike this format, ends lines at a lone carriage return")
    except (ValueError, pa.ArrowInvalid):
        fields = _split_line_by_line(body, names is not None, form)
        blocks = list(_packed_blocks(fields, form, lines))
    clients, cohort, packed = zip(*blocks, strict=True)
    joined = [np.concatenate(column) for column in zip(*packed, strict=True)]
    by_name = dict(zip(form.names, zip(joined, form.widths, strict=True), strict=True))
    if columns is not None:
        by_name = {name: by_name[name] for name in columns}
    return Reports(np.concatenate(clients), np.concatenate(cohort), by_name)


def _packed_blocks(blocks: Iterator[Fields], form: LineForm, lines: float) -> Iterator[Fields]:
    """Yield an empty block, then each block packed; raise ValueError if a character is no bit.

    lines : approximate number of lines
    """
    done = 0
    no_bits = [np.empty((0, byte_width(width)), np.uint8) for width in form.widths]
    yield np.empty(0, "S1"), np.empty(0, np.uint16), no_bits
    for clients, cohort, columns in blocks:
        yield clients, cohort, [_packed(characters) for characters in columns]
        done += len(cohort)
        report_progress("reading", done / lines)


def _packed(characters: Bytes) -> Bytes:
    """Pack characters uint8[N, width], most significant bit first, into bytes, lowest bit first."""
    rows, width = characters.shape
    bits = np.zeros((rows, (width + 7) // 8 * 8), np.uint8)
    np.subtract(characters, ZERO, out=bits[:, bits.shape[1] - width :])
    if bits.size and bits.max() > 1:
        raise ValueError("expected 0 or 1")
    return np.ascontiguousarray(np.packbits(bits, axis=1)[:, ::-1])


def _split_by_arrow(body: Bytes, form: LineForm) -> Iterator[Fields]:
    """Yield the fields of all lines; raise ValueError or ArrowInvalid if a line may be wrong."""
    if body[:3].tobytes() == BOM_UTF8:
        raise ValueError("Arrow would skip the byte-order mark")
    if not len(body):
        return
    types = [pa.binary(), pa.binary(), *map(pa.binary, form.widths)]
    names = [str(column) for column in range(len(types))]
    reader = csv.open_csv(
        pa.BufferReader(body),
        read_options=csv.ReadOptions(column_names=names, block_size=BLOCK_BYTES),
        parse_options=csv.ParseOptions(quote_char=False, ignore_empty_lines=False),
        convert_options=csv.ConvertOptions(
            column_types=dict(zip(names, types, strict=True)), check_utf8=False, null_values=[]
        ),
    )
    for batch in reader:
        client, cohort, *columns = batch.columns
        yield _clients(client), _cohorts(cohort, form.cohorts), [_characters(c) for c in columns]


def _texts(column: pa.BinaryArray) -> tuple[Int32s, Bytes]:
    """Return the offsets, from 0, and the bytes of a column of texts."""
    _, offsets, data = column.buffers()
    edges = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1]
    return edges - edges[0], np.frombuffer(data, np.uint8)[edges[0] : edges[-1]]


def _clients(column: pa.BinaryArray) -> NDArray[np.bytes_]:
    """Return the client ids."""
    edges, data = _texts(column)
    lengths = np.diff(edges)
    if not lengths.min(initial=1):
        raise ValueError("expected a client id")
    width = int(lengths.max(initial=1))
    text = np.zeros((len(lengths), width), np.uint8)
    text[np.arange(width) < lengths[:, np.newaxis]] = data
    return text.reshape(-1).view(f"S{width}")


def _cohorts(column: pa.BinaryArray, cohorts: int) -> UInt16s:
    """Return the cohorts; raise ValueError if one is no number below `cohorts`."""
    edges, data = _texts(column)
    lengths = np.diff(edges)
    if lengths.min(initial=1) < 1 or lengths.max(initial=1) > MAX_COHORT_DIGITS:
        raise ValueError("expected one to five digits")
    if data.min(initial=ZERO) < ZERO or data.max(initial=ZERO) > NINE:
        raise ValueError("expected digits")
    numbers: UInt32s = pc.cast(column.cast(pa.string()), pa.uint32()).to_numpy()
    if numbers.max(initial=0) >= cohorts:
        raise ValueError("expected a smaller cohort")
    return numbers.astype(np.uint16)


def _characters(column: pa.FixedSizeBinaryArray) -> Bytes:
    """Return the characters uint8[N, width] of a bit column."""
    width = column.type.byte_width
    data = np.frombuffer(column.buffers()[1], np.uint8)
    return data[column.offset * width : (column.offset + len(column)) * width].reshape(-1, width)


def _split_line_by_line(body: Bytes, headed: bool, form: LineForm) -> Iterator[Fields]:
    """Yield the fields of all lines; raise InputError with the number of the first wrong line."""
    lines = body.tobytes().removesuffix(b"\n").split(b"\n") if len(body) else []
    fields = [checked_fields(line, n, form) for n, line in enumerate(lines, 1 + headed)]
    clients, cohorts, *columns = zip(*fields, strict=True)
    characters = [np.frombuffer(b"".join(column), np.uint8) for column in columns]
    yield (
        np.array(clients, np.bytes_),
        np.array([int(cohort) for cohort in cohorts], np.uint16),
        [c.reshape(len(fields), width) for c, width in zip(characters, form.widths, strict=True)],
    )


def _line_at(data: Bytes, start: int) -> bytes:
    """Return the line that starts at `start`, with its end."""
    step = 1 << 12
    for stop in range(start + step, len(data) + step, step):
        ends = np.flatnonzero(data[stop - step : stop] == NEWLINE)
        if ends.size:
            return data[start : stop - step + int(ends[0]) + 1].tobytes()
    return data[start:].tobytes()


def _line_count(body: Bytes) -> int:
    """Return the number of lines; the last one may have no end."""
    blocks = range(0, len(body), BLOCK_BYTES)
    ends = sum(int(np.count_nonzero(body[a : a + BLOCK_BYTES] == NEWLINE)) for a in blocks)
    return ends + bool(len(body) and body[-1] != NEWLINE)


def write_reports(path: str | Path, reports: Reports) -> None:
    """Write a reports file, block by block: fresh memory for all lines would take longer."""
    _check_clients(reports.clients)
    head = ",".join(["client", "cohort", *reports.columns])
    with Path(path).open("wb") as file:
        file.write(head.encode() + b"\r\n")
        for start in range(0, len(reports), BLOCK_ROWS):
            file.write(_lines(reports, slice(start, start + BLOCK_ROWS)))


def _check_clients(clients: NDArray[np.bytes_]) -> None:
    """Raise InputError if a client id cannot be written."""
    if clients.dtype.kind != "S":
        raise InputError(f"client ids must be bytes, got {clients.dtype}")
    text = clients.view(np.uint8).reshape(len(clients), clients.dtype.itemsize)
    if (len(text) and not text[:, 0].all()) or np.isin(text, (COMMA, NEWLINE)).any():
        raise InputError("client ids must not be empty and must not contain commas or line ends")


def _lines(reports: Reports, rows: slice) -> pa.Buffer:
    """Return the lines of these reports."""
    texts = [pa.array(reports.clients[rows], pa.binary())]
    texts.append(pc.cast(pa.array(reports.cohort[rows]), pa.string()).cast(pa.binary()))
    for bits, width in reports.columns.values():
        unpacked = np.unpackbits(
            check_packed(bits[rows], width), axis=1, count=width, bitorder="little"
        )
        characters = np.ascontiguousarray(unpacked[:, ::-1] + np.uint8(ZERO))
        buffers = [None, pa.py_buffer(characters)]
        fixed = pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), len(unpacked), buffers)
        texts.append(fixed.cast(pa.binary()))
    lines = pc.binary_join_element_wise(*texts, b",")
    ends = pa.scalar(b"\r\n", pa.binary())
    return pc.binary_join_element_wise(lines, ends, b"").buffers()[2]
