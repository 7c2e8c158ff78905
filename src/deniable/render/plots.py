"""Results, drawn. `result.plot()` comes here; what is drawn is said by the views."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deniable.formatting import shortened, visible
from deniable.render.view import Shares, view_of
from deniable.results import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DETECTED, NOT_DETECTED, TRUTH = "#1f6f8b", "#b8b8b8", "#c4541a"
LONGEST_LABEL = 32


def draw(result: Result, ax: Axes | None = None, **options: Any) -> Axes:
    """Draw a result onto axes, or onto new ones of a fitting size."""
    from matplotlib import pyplot as plt

    view = view_of(result)
    if ax is None:
        size = view.figure_size(options.get("most", 30), options.get("graph", False))
        _, ax = plt.subplots(figsize=size, layout="constrained")
    view.draw(ax, **options)
    return ax


def intervals(ax: Axes, shares: Shares) -> None:
    """Draw one row per value: its estimate, its 95% interval, and the truth if it is known."""
    for row, found in enumerate(shares.detected):
        colour = DETECTED if found else NOT_DETECTED
        ends = [100 * shares.low[row], 100 * shares.high[row]]
        ax.plot(ends, [row, row], color=colour, lw=2)
        ax.plot(100 * shares.estimate[row], row, "o", color=colour, ms=5)
    if shares.truth is not None:
        at = [100 * share for share in shares.truth]
        ax.plot(at, range(len(at)), "|", color=TRUTH, ms=11, mew=2, label="truth")
        ax.legend(frameon=False, loc="lower right")
    ax.axvline(0, color="black", lw=0.6)
    ax.axvline(100 * shares.threshold, color="black", lw=0.6, ls=":")
    ax.set_yticks(range(len(shares.names)), [label(name) for name in shares.names])
    ax.set_ylim(max(len(shares.names), 1) - 0.5, -0.5)
    ax.set_xlabel("clients, % (95% intervals; dotted: detection threshold)")


def title(ax: Axes, words: str) -> None:
    """Put a title above axes that are open above and on the right."""
    ax.set_title(words, fontsize=10, loc="left")
    ax.spines[["top", "right"]].set_visible(False)


def label(name: str) -> str:
    """Return a decoded string as a label: no line breaks, no mathematics, not too long."""
    return shortened(visible(name), LONGEST_LABEL).replace("$", r"\$")
