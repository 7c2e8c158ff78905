"""A marginal: one line a value, its estimate and 95% interval, and the truth where it is known."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes

from deniable.results import Marginal

DETECTED, NOT_DETECTED, TRUTH = "#1f6f8b", "#b8b8b8", "#c4541a"


def draw_marginal(
    result: Marginal, ax: Axes, *, most: int = 30, truth: Mapping[str, float] | None = None
) -> Axes:
    """The `most` largest estimates; those not detected are grey."""
    labels = result.labels or tuple(str(i) for i in range(len(result.estimate)))
    order = np.argsort(-np.nan_to_num(result.estimate, nan=-np.inf), kind="stable")[:most]
    for row, i in enumerate(order):
        colour = DETECTED if result.detected[i] else NOT_DETECTED
        ax.plot([100 * result.low[i], 100 * result.high[i]], [row, row], color=colour, lw=2)
        ax.plot(100 * result.estimate[i], row, "o", color=colour, ms=5)
        if truth is not None:
            ax.plot(100 * truth.get(labels[i], 0.0), row, "|", color=TRUTH, ms=11, mew=2)
    ax.axvline(0, color="black", lw=0.6)
    ax.axvline(100 * result.detection_threshold, color="black", lw=0.6, ls=":")
    ax.set_yticks(range(len(order)), [short(labels[i]) for i in order])
    ax.set_ylim(len(order) - 0.5, -0.5)
    ax.set_xlabel("clients, % (95% intervals; dotted: detection threshold)")
    shown = f"{result.question or 'values'}: {int(result.detected.sum())} detected"
    ax.set_title(f"{shown}, {result.reports:,} reports", fontsize=10, loc="left")
    if truth is not None:
        ax.plot([], [], "|", color=TRUTH, ms=11, mew=2, label="truth")
        ax.legend(frameon=False, loc="lower right")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def short(label: str) -> str:
    """Decoded strings are anything: no line breaks, no mathematics, not too long."""
    plain = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in label)
    cut = plain if len(plain) <= 32 else plain[:31] + "…"
    return cut.replace("$", r"\$")
