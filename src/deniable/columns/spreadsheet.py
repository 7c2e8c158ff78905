"""CSV files that a spreadsheet can open without executing anything.

A spreadsheet may execute a cell as a formula if it begins with = + - @, a tab or a line break, and
a decoded string is arbitrary input from a client. Such text is written with a leading apostrophe,
which spreadsheets treat as "this is text", and read back without it. Text that begins with
apostrophes followed by one of those characters gains one apostrophe in writing and loses one in
reading, so all text is read back unchanged. Numbers are never escaped.
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
    """Return the text as a cell that no spreadsheet executes.

    >>> escape("=1+1"), escape("it's"), unescape(escape("'=x"))
    ("'=1+1", "it's", "'=x")
    """
    return "'" + text if _FORMULA.match(text) else text


def unescape(cell: str) -> str:
    """Return the text of a cell that `escape` wrote; other text is unchanged."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def read_rows(path: str | Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the line number and the unescaped cells of each row of a CSV file; skip blank lines."""
    with Path(path).open(newline="", encoding="utf-8-sig") as file:
        reader = csv.reader(file, strict=True)
        try:
            for row in reader:
                if row:
                    yield reader.line_num, [unescape(cell) for cell in row]
        except UnicodeDecodeError:
            raise InputError(f"{path} is not UTF-8 text: save it as UTF-8") from None
        except csv.Error as error:
            raise InputError(f"{path}, line {reader.line_num}: {error}") from None


def write_rows(path: str | Path, rows: Iterable[Sequence[str | float]]) -> None:
    """Write rows to a CSV file, with text escaped."""
    Path(path).write_text(csv_text(rows), encoding="utf-8", newline="")


def csv_text(rows: Iterable[Sequence[str | float]]) -> str:
    r"""Return rows as the text of a CSV file, with text escaped; the cell of NaN is empty.

    >>> csv_text([["value", "share"], ["=1+1", 0.5], ["a", float("nan")]])
    "value,share\n'=1+1,0.5\na,\n"
    """
    file = StringIO(newline="")
    writer = csv.writer(file, lineterminator="\n")
    for row in rows:
        writer.writerow([escape(c) if isinstance(c, str) else c if c == c else "" for c in row])
    return file.getvalue()
