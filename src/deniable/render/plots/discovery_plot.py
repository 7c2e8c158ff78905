"""A discovery: its strings with intervals; and the graph of grams, as in the paper's figure."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.axes import Axes

from deniable.errors import InputError
from deniable.render.plots.marginal_plot import DETECTED, NOT_DETECTED, TRUTH, short
from deniable.results import Discovery


def draw_discovery(
    result: Discovery, ax: Axes, *, most: int = 30, truth: Mapping[str, float] | None = None
) -> Axes:
    """The `most` largest estimates, and the truth where it is given; false strings are grey."""
    for row, text in enumerate(result.strings[:most]):
        there = truth is None or text in truth
        colour = DETECTED if there else NOT_DETECTED
        ends = [100 * result.low[row], 100 * result.high[row]]
        ax.plot(ends, [row, row], color=colour, lw=2)
        ax.plot(100 * result.estimate[row], row, "o", color=colour, ms=5)
        if truth is not None:
            ax.plot(100 * truth.get(text, 0.0), row, "|", color=TRUTH, ms=11, mew=2)
    shown = min(len(result.strings), most)
    ax.axvline(0, color="black", lw=0.6)
    ax.axvline(100 * result.detection_threshold, color="black", lw=0.6, ls=":")
    ax.set_yticks(range(shown), [short(text) for text in result.strings[:most]])
    ax.set_ylim(max(shown, 1) - 0.5, -0.5)
    ax.set_xlabel("clients, % (95% intervals; dotted: detection threshold)")
    title = f"{result.question or 'strings'}: {len(result.strings)} found without a dictionary"
    ax.set_title(f"{title}, {result.reports:,} reports", fontsize=10, loc="left")
    if truth is not None:
        ax.plot([], [], "|", color=TRUTH, ms=11, mew=2, label="truth")
        ax.legend(frameon=False, loc="lower right")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def draw_graph(result: Discovery, ax: Axes) -> Axes:
    """One column a position, one node a gram; edges of cliques whose string was found are dark."""
    graph = result.graph
    if graph is None:
        raise InputError("this result has no graph: only small ones of reading='paper' are kept")
    joined = set()
    for clique in graph.cliques:
        text = "".join(graph.labels[g][i] for g, i in enumerate(clique)).rstrip("·")
        if text in result.strings:
            joined |= {
                (g, clique[g], h, clique[h])
                for g in range(len(clique))
                for h in range(g + 1, len(clique))
            }
    for g, i, h, j in graph.edges:
        found = (g, i, h, j) in joined
        ax.plot(
            [g, h], [-i, -j], color=DETECTED if found else NOT_DETECTED, lw=1.6 if found else 0.8,
            ls="-" if found else "--", zorder=1,
        )  # fmt: skip
    for g, grams in enumerate(graph.labels):
        for i, gram in enumerate(grams):
            ax.text(
                g, -i, short(gram), ha="center", va="center", zorder=2,
                bbox={"boxstyle": "circle", "facecolor": "white", "edgecolor": "black"},
            )  # fmt: skip
    ax.set_xticks(range(len(graph.labels)), [f"position {g + 1}" for g in range(len(graph.labels))])
    ax.set_yticks([])
    tallest = max((len(grams) for grams in graph.labels), default=1)
    ax.set_xlim(-0.5, len(graph.labels) - 0.5)
    ax.set_ylim(-tallest + 0.4, 0.6)
    ax.set_title(
        f"{len(graph.cliques)} candidates, {len(result.strings)} found", fontsize=10, loc="left"
    )
    ax.spines[["top", "right", "left"]].set_visible(False)
    return ax
