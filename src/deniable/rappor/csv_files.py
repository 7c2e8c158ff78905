"""Read and write text as google/rappor's tools do: CSV with CR LF, compressed files, pipes."""

from __future__ import annotations

import csv
import gzip
import io
import re
import sys
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from deniable.errors import InputError
from deniable.kernels.array_types import Bytes, Int64s
from deniable.text_files import decode_text

LINE_END = "\r\n"
Rows = Sequence[Sequence[object]]
INTEGER = re.compile(r"\s*[+-]?[0-9]{1,18}\s*", re.ASCII)
GZIP_MAGIC = b"\x1f\x8b"
STANDARD_INPUT = Path("-")
MAX_UNPACKED_BYTES, MAX_UNPACKED_RATIO = 1 << 28, 50
"""A compressed file may unfold to so many bytes, or to so many times its size; reports in text
unfold to about ten times."""


def input_name(path: str | Path) -> str:
    """Return the name of a file for messages.

    >>> input_name("map.csv"), input_name("-")
    ('map.csv', 'standard input')
    """
    return "standard input" if Path(path) == STANDARD_INPUT else str(path)


def input_bytes(path: str | Path) -> Bytes:
    """Return the content of a file as uint8[N]; `-` is standard input.

    A plain file is memory-mapped; a file that is compressed with gzip is decompressed.
    """
    if Path(path) == STANDARD_INPUT:
        return _decompressed(sys.stdin.buffer.read(), path)
    with Path(path).open("rb") as file:
        if file.read(2) == GZIP_MAGIC:
            return _decompressed(GZIP_MAGIC + file.read(), path)
        size = file.tell()
    return np.memmap(path, np.uint8, "r") if size else np.empty(0, np.uint8)


def _decompressed(data: bytes, path: str | Path) -> Bytes:
    """Return the data, decompressed if it is compressed."""
    if data.startswith(GZIP_MAGIC):
        limit = max(MAX_UNPACKED_BYTES, MAX_UNPACKED_RATIO * len(data))
        try:
            data = gzip.GzipFile(fileobj=io.BytesIO(data)).read(limit + 1)
        except (EOFError, OSError, zlib.error) as error:
            raise InputError(f"cannot decompress {input_name(path)}: {error}") from None
        if len(data) > limit:
            raise InputError(
                f"{input_name(path)} has more than {limit:,} bytes when it is decompressed, which "
                "is too much for its size: decompress it yourself if you trust it"
            )
    return np.frombuffer(data, np.uint8)


def input_text(path: str | Path) -> str:
    """Return the text of a file, without a byte-order mark; raise InputError if it is no text."""
    return decode_text(input_bytes(path).tobytes(), input_name(path))


def input_lines(path: str | Path) -> list[str]:
    """Return the lines of a text file, which end with a line feed, without it."""
    text = input_text(path).removesuffix("\n")
    if not text:
        raise InputError(f"{input_name(path)} is empty")
    return text.split("\n")


def csv_rows(path: str | Path) -> list[tuple[int, list[str]]]:
    """Return the non-empty rows of a CSV file, each with the number of its line."""
    reader = csv.reader(io.StringIO(input_text(path), newline=""))
    try:
        return [(reader.line_num, row) for row in reader if row]
    except csv.Error as error:
        raise InputError(f"{path}, line {reader.line_num}: {error}") from None


def integers(path: str | Path, rows: Sequence[tuple[int, list[str]]]) -> Int64s:
    """Return rows of equal length as int64[rows, columns]."""
    try:
        return np.array([row for _, row in rows], dtype=np.int64)
    except (ValueError, OverflowError):
        cells = ((line, cell) for line, row in rows for cell in row)
        line, bad = next((line, cell) for line, cell in cells if not INTEGER.fullmatch(cell))
        raise InputError(f"{path}, line {line}: expected a whole number, got {bad!r:.40}") from None


def csv_bytes(rows: Rows) -> bytes:
    r"""Return rows as the content of a CSV file.

    >>> csv_bytes([["a b", 1], ["c,d", 2]])
    b'a b,1\r\n"c,d",2\r\n'
    """
    file = io.StringIO(newline="")
    csv.writer(file, lineterminator=LINE_END).writerows(rows)
    return file.getvalue().encode()


def write_rows(path: str | Path, rows: Rows) -> None:
    """Write rows as CSV."""
    Path(path).write_bytes(csv_bytes(rows))
