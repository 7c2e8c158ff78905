"""Results as tables on a terminal."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from deniable.cli.output import console, printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from deniable.results import Joint, Result

SHARES = ("estimate", "standard_error", "proportion", "threshold")
HIDDEN = ("low", "high", "standard_error")
"""Shown as one interval, or implied by it."""
ROWS = 40


def show(result: Result, notes: Callable[[Any], Sequence[str]] = lambda _: ()) -> None:
    """The result's heading, its table, and what else is to be said of it."""
    from deniable.results import Joint, Trend

    out = console()
    _say(out, result.heading())
    columns = result.columns()
    count = len(next(iter(columns.values()), ()))
    if isinstance(result, Joint) and len(result.questions) == 2:
        out.print(_crossed(result))
    elif count:
        out.print(table_of(columns))
        if count > ROWS:
            _say(out, f"… and {count - ROWS:,} more rows: -o FILE.csv has them all")
    if isinstance(result, Trend):
        for period, why in result.skipped.items():
            _say(out, f"{period}: {why}")
    else:
        for note in notes(result):
            _say(out, note)


def _say(out: Console, text: str) -> None:
    out.print(printable(text), markup=False, soft_wrap=True)


def table_of(columns: Mapping[str, Sequence[Any]]) -> Table:
    """The first rows, shares in per cent and the ends of an interval in one cell."""
    from rich.table import Table
    from rich.text import Text

    interval = {"low", "high"} <= columns.keys()
    shown = {name: c[:ROWS] for name, c in columns.items() if name not in HIDDEN or not interval}
    table = Table()
    for name, column in shown.items():
        right = bool(column) and isinstance(column[0], float | int)
        table.add_column(name.replace("_", " "), justify="right" if right else "left")
    if interval:
        table.add_column("95% interval", justify="right")
    for i in range(min(len(next(iter(columns.values()))), ROWS)):
        cells = [cell(column[i], name) for name, column in shown.items()]
        if interval:
            low, high = (cell(columns[end][i], "estimate") for end in ("low", "high"))
            cells.append(f"{low} … {high}")
        table.add_row(*map(Text, cells))
    return table


def cell(value: Any, name: str) -> str:
    """One value as people read it."""
    if isinstance(value, bool):
        return "yes" if value else ""
    if isinstance(value, float):
        if not math.isfinite(value):
            return "–" if math.isnan(value) else ("∞" if value > 0 else "−∞")
        if name == "p_value" and value < 1e-300:
            return "< 1e-300"
        return share(value) if name in SHARES else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else printable(str(value))


def share(value: float) -> str:
    """A share of clients in per cent, three figures of it.

    >>> share(0.5), share(0.01234), share(0.000123456), share(0.0)
    ('50.0%', '1.23%', '0.0123%', '0.0%')
    """
    size = float(f"{abs(100 * value):.3g}")
    digits = 1 if size == 0 or size >= 10 else min(2 - math.floor(math.log10(size)), 8)
    return f"{100 * value:.{digits}f}%"


def _crossed(result: Joint) -> Table:
    """Two questions, one down and one across."""
    from rich.table import Table
    from rich.text import Text

    (rows, columns), (down, across) = result.labels, result.questions
    table = Table(title="% of clients, ± 1.96 standard errors")
    table.add_column(Text(printable(f"{down} \\ {across}")))
    for name in columns:
        table.add_column(Text(printable(name)), justify="right")
    for i, name in enumerate(rows):
        cells = [
            f"{100 * result.table[i, j]:.2f} ± {196 * result.standard_error[i, j]:.2f}"
            for j in range(len(columns))
        ]
        table.add_row(*map(Text, (printable(name), *cells)))
    return table
