"""Figures of the experiments' data.

    python -m experiments.draw FOLDER        reads FOLDER/*.json, writes FOLDER/*.png

tables.json (four panels about Other), playstore.json (rates and cells with intervals) and
independence.json (Q–Q plots of p-values) have figures; other files are left alone.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

BLUE, GREY, RED = "#1f6f8b", "#b8b8b8", "#c4541a"


def draw_tables(data: dict[str, Any]) -> Figure:
    """Estimates against truth, without Other above and with it below."""
    figure, axes = plt.subplots(2, 2, figsize=(8, 8), layout="constrained")
    for row, (way, title) in zip(
        axes, (("none", "Other ignored"), ("mixture", "with Other")), strict=True
    ):
        for ax, panel in zip(row, ("joint", "conditional"), strict=True):
            cells = [c for c in data["cells"] if c["other"] == way and c["panel"] == panel]
            truth = 100 * np.array([c["truth"] for c in cells])
            estimate = 100 * np.array([c["estimate"] for c in cells])
            ax.plot(truth.ravel(), estimate.ravel(), "o", ms=3, color=GREY)
            ax.plot(truth[0], estimate.mean(axis=0), "o", ms=5, color=BLUE, label="mean")
            low, high = truth.min() * 0.8, truth.max() * 1.1
            ax.plot([low, high], [low, high], color=RED, lw=1)
            ax.set_title(f"{title}, {panel} frequencies", fontsize=10, loc="left")
            ax.set_xlabel("true, %")
            ax.set_ylabel("estimated, %")
            ax.spines[["top", "right"]].set_visible(False)
    return figure


def draw_playstore(data: dict[str, Any]) -> Figure:
    """Rate of paid apps by category, and the table's 60 cells, with 95% intervals."""
    cells = sorted(data["cells"], key=lambda c: -c["truth"][0] / sum(c["truth"]))
    figure, (above, below) = plt.subplots(2, 1, figsize=(9, 10), layout="constrained")
    for i, c in enumerate(cells):
        above.plot([i, i], [100 * c["rate_low"][0], 100 * c["rate_high"][0]], color=BLUE, lw=2)
        above.plot(i, 100 * c["rate"][0], "o", color=BLUE, ms=4)
        above.plot(i, 100 * c["truth"][0] / sum(c["truth"]), "_", color=RED, ms=11, mew=2)
        for side, colour in ((0, "#8a5a2b"), (1, "#3f8f4f")):
            below.plot(
                [100 * c["low"][side], 100 * c["high"][side]], [100 * c["truth"][side]] * 2,
                color=colour, lw=1.5,
            )  # fmt: skip
            below.plot(100 * c["table"][side], 100 * c["truth"][side], "o", color=colour, ms=4)
    names = [c["category"].replace("_", " ").lower() for c in cells]
    above.set_xticks(range(len(cells)), names, rotation=90, fontsize=8)
    above.set_ylabel("paid, % (red: true)")
    most = 100 * max(max(c["truth"]) for c in cells)
    below.plot([0, most], [0, most], color="black", lw=0.6)
    below.set_xlabel("estimated, % of all apps, with 95% intervals (green: free, brown: paid)")
    below.set_ylabel("true, %")
    for ax in (above, below):
        ax.spines[["top", "right"]].set_visible(False)
    return figure


def draw_independence(data: dict[str, Any]) -> Figure:
    """Sorted p-values against uniform quantiles, one panel for each setting without association."""
    settings = {name: rows for name, rows in data.items() if name.endswith("strength=0.0")}
    columns = -(-len(settings) // 2)
    figure, axes = plt.subplots(2, columns, figsize=(3.6 * columns, 7.4), layout="constrained")
    colours = {"score": BLUE, "paper": RED, "lrt": GREY}
    for ax, (name, rows) in zip(axes.ravel(), settings.items(), strict=False):
        for row in rows:
            p = np.array(row["p_values"])
            quantiles = (np.arange(len(p)) + 0.5) / len(p)
            ax.plot(quantiles, p, ".", ms=3, color=colours[row["method"]], label=row["method"])
        ax.plot([0, 1], [0, 1], color="black", lw=0.6)
        ax.set_title(name.removesuffix(", strength=0.0"), fontsize=9, loc="left")
    axes.ravel()[0].legend(frameon=False)
    for ax in axes.ravel()[len(settings) :]:
        ax.set_visible(False)
    figure.supxlabel("uniform quantiles")
    figure.supylabel("p-values")
    return figure


FIGURES: dict[str, Callable[[dict[str, Any]], Figure]] = {
    "tables": draw_tables,
    "playstore": draw_playstore,
    "independence": draw_independence,
}


def main(folder: Path) -> None:
    """Draw every figure whose data is there."""
    for name, draw in FIGURES.items():
        source = folder / f"{name}.json"
        if source.exists():
            figure = draw(json.loads(source.read_text()))
            figure.savefig(folder / f"{name}.png", dpi=110)
            print(folder / f"{name}.png")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
