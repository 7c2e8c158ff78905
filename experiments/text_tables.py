"""Tables of text that experiments print while they run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deniable.formatting import aligned
from experiments.paper.records import Record, Row


def show(record: Record, part: str, rows: Sequence[Row], note: str = "") -> None:
    """Keep rows in a record under a name, and print them."""
    record.keep(part, rows)
    print(f"\n{note or part}\n{text_table(rows)}", flush=True)


def text_table(rows: Sequence[Row]) -> str:
    """Rows of one set of names as aligned text.

    >>> print(text_table([{"f": 0.5, "found": 12}, {"f": 0.25, "found": 7}]))
       f  found
    0.50     12
    0.25      7
    """
    if not rows:
        return "(nothing)"
    names = list(rows[0])
    columns = [[name, *_formatted([row[name] for row in rows])] for name in names]
    right = [not isinstance(rows[0][name], str) for name in names]
    return "\n".join(aligned(list(zip(*columns, strict=True)), right))


def _formatted(values: Sequence[object]) -> list[str]:
    """Numbers of one column with equally many digits, about four of them."""
    numbers = [abs(v) for v in values if isinstance(v, float) and np.isfinite(v) and v]
    digits = 0
    if numbers:
        digits = int(np.clip(3 - np.floor(np.log10(max(numbers))), 0, 9))
        while digits and all(round(v, digits - 1) == round(v, 9) for v in numbers):
            digits -= 1
        digits = max(digits, 2) if max(numbers) < 100 else digits
    return [_cell(value, digits) for value in values]


def _cell(value: object, digits: int) -> str:
    if isinstance(value, float):
        plain = not value or abs(value) >= 0.5 * 10.0**-digits
        return f"{value:.{digits}f}" if plain else f"{value:.1e}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return str(value)
