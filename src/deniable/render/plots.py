"""Plots with matplotlib. `result.plot()` calls `draw`; the views say what is drawn."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

from deniable.formatting import shortened, visible
from deniable.render.colours import DIVERGING, LIGHT, STEPS
from deniable.render.view import Shares, view_of
from deniable.results import Result
from deniable.results.fit_check import SUSPICIOUS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DETECTED, NOT_DETECTED, TRUTH = (LIGHT[name] for name in ("sure", "unsure", "truth"))
"""Colours of estimates and of true shares."""
MAX_LABEL = 32
"""Characters of a label."""


def draw(result: Result, ax: Axes | None = None, **options: Any) -> Axes:
    """Draw a result.

    Parameters
    ----------
    result : Result
        Result to draw.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default those of a new figure of a suitable size.
    **options
        Options of the result's view: `most` (number of values), `truth` (true shares by value),
        `graph` (draw the graph of n-grams), `digits` (decimals of a joint table).

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Examples
    --------
    >>> from deniable import plan
    >>> axes = draw(plan(clients=100_000, epsilon=4.0, kind="boolean"))
    >>> axes.get_xlabel()
    'number of clients'
    """
    from matplotlib import pyplot as plt

    view = view_of(result)
    if ax is None:
        size = view.figure_size(options.get("most", 30), options.get("graph", False))
        _, ax = plt.subplots(figsize=size, layout="constrained")
    view.draw(ax, **options)
    if result.warning:
        mark = ax.text(0.5, 0.5, SUSPICIOUS, transform=ax.transAxes, ha="center", va="center")
        mark.set(fontsize=18, color="red", alpha=0.5, rotation=20)
    return ax


def intervals(ax: Axes, shares: Shares) -> None:
    """Draw one row per value: estimate, 95% confidence interval, and the truth if known."""
    for row, detected in enumerate(shares.detected):
        colour = DETECTED if detected else NOT_DETECTED
        ends = [100 * shares.low[row], 100 * shares.high[row]]
        ax.plot(ends, [row, row], color=colour, lw=2)
        ax.plot(100 * shares.estimate[row], row, "o", color=colour, ms=5)
    if shares.truth is not None:
        at = [100 * share for share in shares.truth]
        ax.plot(at, range(len(at)), "|", color=TRUTH, ms=11, mew=2, label="truth")
        ax.legend(frameon=False, loc="lower right")
    ax.axvline(0, color="black", lw=0.6)
    about = f"% of {shares.whom}, 95% confidence intervals"
    if isfinite(shares.threshold):
        ax.axvline(100 * shares.threshold, color="black", lw=0.6, ls=":")
        about += " (dotted: detection threshold)"
    ax.set_yticks(range(len(shares.names)), [label(name) for name in shares.names])
    ax.set_ylim(max(len(shares.names), 1) - 0.5, -0.5)
    ax.set_xlabel(about, fontsize=9)


def heat_scale() -> dict[str, Any]:
    """Return the colours of residuals for `imshow`: one per standard error, as on pages."""
    from matplotlib.colors import BoundaryNorm, ListedColormap

    bounds = [step for step in range(-STEPS, STEPS + 1) if step]
    return {
        "cmap": ListedColormap(DIVERGING),
        "norm": BoundaryNorm(bounds, len(DIVERGING), extend="both"),
    }


def legend(ax: Axes) -> None:
    """Name the lines on the right of the axes."""
    ax.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))


def title(ax: Axes, text: str) -> None:
    """Put a title above the axes; remove their lines above and on the right."""
    ax.set_title(text, fontsize=10, loc="left")
    ax.spines[["top", "right"]].set_visible(False)


def label(name: str) -> str:
    """Return a decoded string as a label: printable, not too long, not read as mathematics."""
    return shortened(visible(name), MAX_LABEL).replace("$", r"\$")
