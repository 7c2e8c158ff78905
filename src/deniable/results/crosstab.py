"""Joint tables as HTML: crosstabs of the first two questions, for notebooks."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from deniable.formatting import html_text, percent
from deniable.results.covariance import Covariance, residuals

if TYPE_CHECKING:
    from deniable.results.joint import Joint

MAX_ROWS, MAX_COLUMNS, MAX_TABLES = 40, 16, 8
"""Larger tables are shown as a list of cells."""
MAX_STEP = 4
"""Standard errors from independence that have the strongest colour."""
LEGEND = (
    '<p class="legend"><span class="more2">Orange</span> cells are more common than if the '
    'questions were independent, <span class="less2">blue</span> cells less common. Small numbers '
    "are 95% confidence intervals.</p>"
)


def crosstabs(joint: Joint) -> str:
    """Return one table per combination of the further questions; empty if that is too much."""
    rows, columns, *further = joint.labels if len(joint.labels) > 1 else ((), ())
    combinations = list(product(*further))
    if not (
        len(joint.labels) > 1
        and len(rows) <= MAX_ROWS
        and len(columns) <= MAX_COLUMNS
        and len(combinations) <= MAX_TABLES
    ):
        return ""
    numbered = np.arange(joint.table.size).reshape(len(rows), len(columns), -1)
    html = []
    for i, values in enumerate(combinations):
        cells = numbered[:, :, i]
        chosen = np.ix_(cells.ravel(), cells.ravel())
        pairs = zip(joint.questions[2:], values, strict=True)
        caption = ", ".join(f"{question} = {value}" for question, value in pairs)
        part = Covariance(joint.table.ravel()[cells], joint.covariance[chosen])
        html.append(_crosstab(joint, part, caption))
    notes = (f"<p>{html_text(note)}</p>" for note in joint.last_categories())
    return "".join([*html, LEGEND, *notes])


def _crosstab(joint: Joint, part: Covariance, caption: str) -> str:
    """Return one table with its margins, coloured by the difference from independence."""
    rows, columns, *_ = joint.labels
    each_row, each_column = np.arange(len(rows)), np.arange(len(columns))
    no_rows, no_columns = np.zeros_like(each_row), np.zeros_like(each_column)
    down = _shown(part.collapsed([each_row, no_columns]))[:, 0]
    across = _shown(part.collapsed([no_rows, each_column]))[0]
    total = float(part.table.sum())
    body = []
    classes = _classes(part)
    for i, (row, shown) in enumerate(zip(rows, _shown(part), strict=True)):
        cells = zip(columns, shown, classes[i], strict=True)
        tds = [_cell(text, f"{row} and {column}", name) for column, text, name in cells]
        tds.append(_cell(down[i], row, "margin"))
        body.append(f'<tr><th scope="row">{html_text(row)}</th>{"".join(tds)}</tr>')
    margins = [_cell(text, column, "margin") for column, text in zip(columns, across, strict=True)]
    margins.append(f'<td class="margin">{percent(total)}</td>')
    body.append(f'<tr><th scope="row">all</th>{"".join(margins)}</tr>')
    corner = html_text(f"{joint.questions[0]} \\ {joint.questions[1]}")
    head = "".join(f'<th scope="col">{html_text(name)}</th>' for name in (*columns, "all"))
    title = f"<caption>{html_text(caption)}</caption>" if caption else ""
    return (
        f'<div class="scroll"><table class="crosstab">{title}<thead><tr><th>{corner}</th>{head}'
        f"</tr></thead><tbody>{''.join(body)}</tbody></table></div>"
    )


def _shown(part: Covariance) -> np.ndarray[tuple[int, ...], np.dtype[np.str_]]:
    """Return the text of every cell: the share, and below it the ends of its interval."""
    intervals = part.intervals()
    ends = zip(part.table.ravel(), intervals.low.ravel(), intervals.high.ravel(), strict=True)
    texts = [
        f"{percent(float(share))}<br><small>{percent(float(low))} … {percent(float(high))}</small>"
        for share, low, high in ends
    ]
    return np.array(texts).reshape(part.table.shape)


def _classes(part: Covariance) -> list[list[str]]:
    """Return the colour of every cell, by its difference from independence in standard errors."""
    steps = np.nan_to_num(residuals(part.table, part.standard_errors))  # 0 where it is unknown
    return [
        [f"{'more' if each > 0 else 'less'}{min(MAX_STEP, int(abs(each)))}" for each in row]
        for row in steps.tolist()
    ]


def _cell(text: str, title: str, name: str) -> str:
    return f'<td class="{name}" title="{html_text(title)}">{text}</td>'
