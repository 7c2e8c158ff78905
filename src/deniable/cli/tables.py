"""Results and other tables on a terminal."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from deniable.formatting import TextTable
    from deniable.render.view import NoteOptions
    from deniable.results import Result


def console() -> Console:
    """Return standard output, wide enough for any table where it is not a terminal."""
    from rich.console import Console

    return Console(highlight=False, width=None if sys.stdout.isatty() else 200)


def show(result: Result, notes: NoteOptions | None) -> None:
    """Print the heading of a result, its table, and the notes of its view."""
    from deniable.render.view import NoteOptions, view_of

    view, out = view_of(result), console()
    _print_text(out, result.heading())
    table = view.table()
    if table.rows:
        print_table(table, out)
    if table.left_out:
        _print_text(out, f"… and {table.left_out:,} more rows: -o FILE.csv has them all")
    for note in view.notes(notes or NoteOptions()):
        _print_text(out, note)


def print_table(table: TextTable, out: Console) -> None:
    """Print a table with lines around it."""
    from rich.table import Table
    from rich.text import Text

    from deniable.formatting import visible

    drawn = Table(title=table.title or None)
    for name, right in zip(table.names, table.right or [False] * len(table.names), strict=True):
        drawn.add_column(Text(visible(name)), justify="right" if right else "left")
    for row in table.rows:
        drawn.add_row(*(Text(visible(text)) for text in row))
    out.print(drawn)


def _print_text(out: Console, text: str) -> None:
    from deniable.formatting import visible

    out.print(visible(text), markup=False, soft_wrap=True)
