"""A joint table of two questions as a heat map: how much more common than under independence."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from deniable.errors import InputError
from deniable.render.plots.marginal_plot import short
from deniable.results import Joint


def draw_joint(result: Joint, ax: Axes, *, digits: int = 1) -> Axes:
    """Colour: (cell − product of margins) in standard errors. Numbers: the cell in per cent."""
    if result.table.ndim != 2:
        raise InputError(f"a heat map is of two questions, this table has {result.table.ndim}")
    table = result.table
    expected = np.outer(table.sum(axis=1), table.sum(axis=0))
    apart = (table - expected) / np.maximum(result.standard_error, 1e-12)
    limit = max(3.0, float(np.abs(apart).max()))
    image = ax.imshow(apart, cmap="RdBu_r", vmin=-limit, vmax=limit, aspect="auto")
    for (i, j), share in np.ndenumerate(table):
        strong = abs(apart[i, j]) > 0.6 * limit
        ax.text(
            j, i, f"{100 * share:.{digits}f}", ha="center", va="center", fontsize=8,
            color="white" if strong else "black",
        )  # fmt: skip
    rows, columns = result.labels
    ax.set_yticks(range(len(rows)), [short(x) for x in rows])
    ax.set_xticks(range(len(columns)), [short(x) for x in columns], rotation=45, ha="right")
    ax.set_ylabel(result.questions[0])
    ax.set_xlabel(result.questions[1])
    ax.set_title(f"% of {result.reports:,} clients", fontsize=10, loc="left")
    figure = ax.get_figure()
    if figure is not None:
        bar = figure.colorbar(image, ax=ax, shrink=0.8)
        bar.set_label("apart from independence, standard errors", fontsize=8)
    return ax
