"""Numbers, shares and tables as text and HTML, for terminals, notebooks, plots and pages."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from html import escape
from typing import Any, Self

Value = str | int | float
Columns = dict[str, Sequence[Value]]
"""A table: columns of equal length, by name."""
ROWS_SHOWN = 40
"""Rows of a table that are shown by default."""
Z95 = 1.9599639845400545
"""Number of standard errors from an estimate to each end of its 95% interval."""
INTERVAL = ("low", "high")
"""Names of the columns with the ends of an interval."""
MAX_PRINTED_EPSILON = 20
"""Factors e^ε of a larger ε are written as powers of ten."""


def visible(text: str) -> str:
    """Replace characters that are invisible or control a terminal by U+FFFD.

    Decoded strings come from clients and may be hostile.
    """
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def printable(text: str) -> str:
    r"""Return text of several lines in which each line is `visible`; a tab becomes a blank.

    >>> printable("one\ttwo\nthr\x1bee")
    'one two\nthr�ee'
    """
    return "\n".join(visible(line.replace("\t", " ")) for line in text.split("\n"))


def shortened(text: str, longest: int) -> str:
    """Return the text, cut to `longest` characters."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def percent(share: float) -> str:
    """Return a share in per cent with three significant digits.

    >>> percent(0.12345), percent(0.00012345), percent(0.0999999), percent(1.0), percent(0.0)
    ('12.3%', '0.0123%', '10.0%', '100%', '0%')
    """
    if not math.isfinite(share):
        return number(share)
    size = float(f"{abs(100 * share):.3g}")
    if not size:
        return "0%"
    digits = min(max(0, 2 - math.floor(math.log10(size))), 6)
    return f"{100 * share:.{digits}f}%"


def percent_within(share: float, margin: float) -> str:
    """Return a share and its margin of error, rounded to two significant digits of the margin.

    A share that is certain, such as that of all options together, has no margin.

    >>> percent_within(0.44812, 0.00689), percent_within(0.9941, 0.0266), percent_within(1.0, 0.0)
    ('44.81% ± 0.69%', '99.4% ± 2.7%', '100%')
    """
    if not margin or not math.isfinite(margin):
        return percent(share)
    size = float(f"{100 * margin:.2g}")
    digits = min(max(0, 1 - math.floor(math.log10(size))), 6)
    return f"{100 * share:.{digits}f}% ± {size:.{digits}f}%"


def number(value: float) -> str:
    """Return a number with four decimals, or with three significant digits if it is small.

    >>> number(2.5), number(0.00123456), number(math.nan)
    ('2.5000', '0.00123', '–')
    """
    if not math.isfinite(value):
        return "–" if math.isnan(value) else ("∞" if value > 0 else "−∞")
    return f"{value:.3g}" if abs(value) < 0.01 else f"{value:.4f}"


def counted(count: int, noun: str) -> str:
    """Return a count with its noun, in the plural unless the count is 1.

    >>> counted(1, "day"), counted(1500, "report")
    ('1 day', '1,500 reports')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def rounded_up(value: float, digits: int) -> float:
    """Return a number rounded up to this many significant digits, if it is above 0.

    What exceeds a rounded number by less than a millionth of its last digit is a rounding error.

    >>> rounded_up(1.2345, 3), rounded_up(2.9999999, 3), rounded_up(3.0000000000000004, 3)
    (1.24, 3.0, 3.0)
    """
    if value <= 0:
        return value
    decimals = digits - 1 - math.floor(math.log10(value))
    return round(math.ceil(value * 10.0**decimals - 1e-6) / 10.0**decimals, max(decimals, 0))


def epsilon_text(epsilon: float) -> str:
    """Return ε rounded up to four significant digits.

    >>> epsilon_text(1.60397), epsilon_text(4.999999995), epsilon_text(0.0)
    ('1.604', '5', '0')
    """
    return f"{rounded_up(epsilon, 4):.6g}"


def odds_factor(epsilon: float) -> str:
    """Return e^ε, the largest factor by which a report can change the odds of a guess, rounded up.

    >>> odds_factor(1.0), odds_factor(5.0), odds_factor(7.0), odds_factor(100.0)
    ('2.72', '149', '1,100', '10^44')
    """
    if epsilon > MAX_PRINTED_EPSILON:
        return f"10^{math.ceil(epsilon / math.log(10))}"
    factor = math.exp(epsilon)
    if factor < 10:
        return f"{rounded_up(factor, 3):.2f}"
    return f"{rounded_up(factor, 3 if factor >= 100 else 2):,.0f}"


SMALLEST_P = 1e-300
"""p-values below this are given as this, so that none is 0; their logarithm says what they are."""
LEAST_LOG_P = -2_302_580.0
"""Logarithms of p-values below this are too small even for decimal numbers."""


class PValue(float):
    """A p-value that knows its logarithm, as a row of a table."""

    log: float

    def __new__(cls, value: float, log: float) -> Self:
        """Return a p-value; log : its natural logarithm, which may be that of a smaller number."""
        self = super().__new__(cls, value)
        self.log = log
        return self

    def __getnewargs__(self) -> tuple[float, float]:  # type: ignore[override]  # for pickle
        return float(self), self.log


def p_value(value: float) -> str:
    """Return a p-value with three significant digits.

    >>> p_value(0.04567), p_value(PValue(1e-300, -1000.0)), p_value(1e-300), p_value(math.nan)
    ('0.0457', '5.08e-435', '< 1e-300', '–')
    >>> p_value(PValue(1e-300, -5e6))
    '< 1e-999999'
    """
    if math.isnan(value):
        return "–"
    if value > SMALLEST_P:
        return f"{value:.3g}"
    if not isinstance(value, PValue) or not math.log(SMALLEST_P) > value.log > -math.inf:
        return "< 1e-300"
    if value.log < LEAST_LOG_P:
        return "< 1e-999999"
    return f"{Decimal(value.log).exp():.3g}"


def p_phrase(value: float) -> str:
    """Return a p-value with its name.

    >>> p_phrase(0.04567), p_phrase(0.0)
    ('p = 0.0457', 'p < 1e-300')
    """
    shown = p_value(value)
    return f"p {shown}" if shown.startswith("<") else f"p = {shown}"


def cell(value: Value) -> str:
    """Return one cell of a table; a string with blanks at an end is quoted."""
    if isinstance(value, bool):
        return "yes" if value else ""
    if isinstance(value, float):
        return number(value)
    if isinstance(value, str):
        return visible(value) if value == value.strip() else repr(value)
    return str(value)


FORMATS: Mapping[str, Callable[[Any], str]] = {
    **dict.fromkeys(("estimate", "standard_error", "proportion", "share", "threshold"), percent),
    **dict.fromkeys(("earlier", "later", "change", "shrunk_by"), percent),
    "p_value": p_value,
    "evidence": "{:.1f}".format,
    "reports": "{:,}".format,
    "clients": "{:,}".format,
}
"""Formats of the columns of a table for people, by name."""
PLAIN_FORMATS: Mapping[str, Callable[[Any], str]] = {"p_value": p_value}
"""Formats of the columns of a plain table, by name."""


@dataclass(frozen=True)
class TextTable:
    """A table of text.

    Parameters
    ----------
    names
        Names of the columns.
    rows
        Cells, row by row.
    right
        Whether each column is aligned on the right.
    title
        Title of the table.
    left_out
        Number of rows that are not shown.
    """

    names: Sequence[str]
    rows: Sequence[Sequence[str]]
    right: Sequence[bool] = ()
    title: str = ""
    left_out: int = 0

    @classmethod
    def of(
        cls, columns: Columns, formats: Mapping[str, Callable[[Any], str]] = PLAIN_FORMATS
    ) -> TextTable:
        """Return the first rows of a table; `formats` are those of columns, by name."""
        rows, left_out = first_rows(columns, ROWS_SHOWN)
        by_column = [formats.get(name, cell) for name in columns]
        texts = [[f(value) for f, value in zip(by_column, row, strict=True)] for row in rows]
        right = [bool(c) and not isinstance(c[0], str) for c in columns.values()]
        return cls(list(columns), texts, right, left_out=left_out)

    @classmethod
    def readable(cls, columns: Columns) -> TextTable:
        """Return a table for people: shares in per cent, an interval in one column."""
        if not set(INTERVAL) <= columns.keys():
            table = cls.of(columns, FORMATS)
            return replace(table, names=[column_title(name) for name in table.names])
        hidden = (*INTERVAL, "standard_error")
        table = cls.readable({name: c for name, c in columns.items() if name not in hidden})
        ends = zip(*(columns[end] for end in INTERVAL), strict=True)
        spans = [f"{percent(float(low))} … {percent(float(high))}" for low, high in ends]
        rows = [[*row, span] for row, span in zip(table.rows, spans, strict=False)]
        names, right = [*table.names, "95% interval"], [*table.right, True]
        return replace(table, names=names, rows=rows, right=right)

    def lines(self) -> list[str]:
        """Return the table as lines of plain text, with a rule below the names."""
        head, *rows = aligned([self.names, *self.rows], self.right)
        widths = [max(map(len, column)) for column in zip(self.names, *self.rows, strict=True)]
        return [head, "  ".join("-" * width for width in widths), *rows]

    def html(self) -> str:
        """Return the table as HTML."""
        kinds = [' class="number"' if right else "" for right in self.right]
        head = "".join(
            f'<th scope="col"{kind}>{html_text(name)}</th>'
            for name, kind in zip(self.names, kinds, strict=True)
        )
        body = "".join(
            f"<tr>{''.join(f'<td{k}>{html_text(c)}</td>' for c, k in zip(row, kinds, strict=True))}"
            "</tr>"
            for row in self.rows
        )
        return _html_table(head, body, "", self.left_out)


def column_title(name: str) -> str:
    """Return the name of a column for people."""
    return name.replace("p_value", "p-value").replace("_", " ")


def aligned(rows: Sequence[Sequence[str]], right: Sequence[bool]) -> list[str]:
    """Return rows of text as lines whose columns are aligned."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            text.rjust(width) if is_right else text.ljust(width)
            for text, width, is_right in zip(row, widths, right, strict=True)
        ).rstrip()
        for row in rows
    ]


def first_rows(columns: Columns, most: int) -> tuple[list[tuple[Value, ...]], int]:
    """Return the first rows of a table, and the number of other rows."""
    rows = list(zip(*columns.values(), strict=True))
    return rows[:most], max(0, len(rows) - most)


def text_table(heading: str, columns: Columns) -> str:
    """Return a table as plain text; a long table is cut and says so."""
    table = TextTable.of(columns)
    lines = [heading, "", *table.lines()]
    if table.left_out:
        lines.append(f"… and {table.left_out:,} more rows; to_arrow() returns all of them")
    return "\n".join(lines)


def html_text(text: str) -> str:
    """Return text as HTML: escaped, because decoded strings may be hostile."""
    return escape(visible(text))


def sortable_table(columns: Columns, most: int) -> str:
    """Return the first `most` rows as HTML that `report.js` sorts.

    The names are buttons, and numbers carry their value as `data-key`.
    """
    rows, left_out = first_rows(columns, most)
    head = "".join(
        f'<th scope="col"><button type="button">{html_text(name)}</button></th>' for name in columns
    )
    formats = [PLAIN_FORMATS.get(name, cell) for name in columns]
    body = "".join(f"<tr>{''.join(map(_html_cell, row, formats))}</tr>" for row in rows)
    return _html_table(head, body, ' class="sortable"', left_out)


def _html_table(head: str, body: str, kind: str, left_out: int) -> str:
    """Return a table whose cells and rows are HTML already; kind : attribute of the table."""
    more = f"<p>{left_out:,} more rows are not shown.</p>" if left_out else ""
    return (
        f'<div class="scroll"><table{kind}><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>{more}"
    )


def _html_cell(value: Value, shown: Callable[[Any], str]) -> str:
    number_key = isinstance(value, float | int) and not isinstance(value, bool)
    key = f' data-key="{float(value)!r}"' if number_key else ""
    return f"<td{key}>{html_text(shown(value))}</td>"
