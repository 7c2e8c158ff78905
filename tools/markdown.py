"""Tables of Markdown."""

from __future__ import annotations

from collections.abc import Iterable


def markdown_table(headings: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Return rows as a Markdown table.

    >>> print(markdown_table(["f", "N"], [["½", 1000]]))
    | f | N |
    | --- | --- |
    | ½ | 1,000 |
    """
    headings = list(headings)
    lines = [headings, ["---"] * len(headings), *(map(cell_text, row) for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def cell_text(value: object) -> str:
    """Return a value as the text of a cell, whole numbers with separators."""
    return f"{value:,}" if isinstance(value, int) else str(value)
