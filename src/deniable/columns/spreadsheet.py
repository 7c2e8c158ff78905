"""CSV files that a spreadsheet can open without running anything.

A cell that begins with = + - @ or a control character can be executed as a formula, and a decoded
string is whatever some client sent. Such text is written with a leading apostrophe, which
spreadsheets take for "this is text", and read back without it: a text of any number of apostrophes
before one of those characters gains one apostrophe on the way out and loses one on the way in, so
all text comes back unchanged. Numbers that we write ourselves are never escaped.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO
from pathlib import Path

from deniable.errors import InputError

_FORMULA = re.compile(r"'*[=+\-@\t\r\n]")


def escape(text: str) -> str:
    """The text as a harmless cell.

    >>> escape("=1+1"), escape("it's"), unescape(escape("'=x"))
    ("'=1+1", "it's", "'=x")
    """
    return "'" + text if _FORMULA.match(text) else text


def unescape(cell: str) -> str:
    """The text of a cell that `escape` wrote; other text is left alone."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def read_rows(path: str | Path) -> Iterator[tuple[int, list[str]]]:
    """(line number, cells) of a CSV file, cells unescaped; blank lines are passed over."""
    with Path(path).open(newline="", encoding="utf-8-sig") as file:
        reader = csv.reader(file)
        try:
            for row in reader:
                if row:
                    yield reader.line_num, [unescape(cell) for cell in row]
        except (csv.Error, UnicodeDecodeError) as error:
            raise InputError(f"{path}, line {reader.line_num + 1}: {error}") from None


def write_rows(path: str | Path, rows: Iterable[Sequence[str | float]]) -> None:
    """Write a CSV file: text escaped, numbers as they are."""
    Path(path).write_text(csv_text(rows), encoding="utf-8", newline="")


def csv_text(rows: Iterable[Sequence[str | float]]) -> str:
    """The same as text.

    >>> csv_text([["value", "share"], ["=1+1", 0.5]])
    "value,share\\n'=1+1,0.5\\n"
    """
    file = StringIO(newline="")
    writer = csv.writer(file, lineterminator="\n")
    for row in rows:
        writer.writerow([escape(c) if isinstance(c, str) else c for c in row])
    return file.getvalue()
