"""A trend: one line a value over the periods, with its 95% intervals."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from deniable.render.plots.marginal_plot import short
from deniable.results import Result, Trend


def draw_trend(result: Trend[Result], ax: Axes, *, most: int = 6) -> Axes:
    """The `most` values that are largest on average."""
    days = np.array(result.periods, "datetime64[D]")
    for i in result.largest(most):
        (line,) = ax.plot(
            days, 100 * result.estimate[:, i], "o-", ms=3.5, lw=1.4, label=short(result.labels[i])
        )
        ax.fill_between(
            days, 100 * result.low[:, i], 100 * result.high[:, i],
            color=line.get_color(), alpha=0.18, lw=0,
        )  # fmt: skip
    ax.axhline(0, color="black", lw=0.6)
    ax.set_ylabel("clients, % (95% intervals)")
    title = f"{result.question} by {result.by}: {int(result.reports.sum()):,} reports"
    ax.set_title(title, fontsize=10, loc="left")
    ax.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    ax.tick_params(axis="x", rotation=30)
    ax.spines[["top", "right"]].set_visible(False)
    return ax
