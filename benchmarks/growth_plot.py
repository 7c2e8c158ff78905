"""Draw how times grow: python -m benchmarks.growth_plot docs/results/growth.json PICTURE"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

COLOURS = {"decode": "#2f5d8a", "associate": "#b03030", "discover": "#3f7f4f"}
NAMES = {
    "reports": "number of reports",
    "candidates": "number of candidates",
    "cells": "cells of the table",
    "cores": "processor cores",
}


def draw(data: dict[str, Any]) -> Figure:
    """Return one panel per quantity, with logarithmic axes, and lines of proportional growth."""
    figure = Figure(figsize=(9, 6.5), layout="constrained")
    for axes, panel in zip(figure.subplots(2, 2).flat, data["panels"], strict=True):
        x = np.array(panel["x"], float)
        for label, seconds in panel["series"].items():
            colour = COLOURS[label.split(",")[0]]
            axes.plot(x, seconds, "o-", color=colour, lw=1.4, ms=4, label=label)
        first, *_, last = np.max(list(panel["series"].values()), axis=0)
        if panel["name"] == "cores":
            proportional = first * x[0] / x
            axes.set(ylim=(0, None), xticks=x)
        else:
            proportional = last * x / x[-1]
            axes.set(xscale="log", yscale="log")
        axes.plot(x, proportional, ":", color="#888888", label="proportional")
        axes.set_xlabel(NAMES[panel["name"]])
        axes.set_ylabel("processor seconds" if panel["time"] == "processor" else "seconds")
        axes.legend(frameon=False, fontsize=8)
        axes.spines[["top", "right"]].set_visible(False)
    return figure


if __name__ == "__main__":
    source, picture = map(Path, sys.argv[1:])
    draw(json.loads(source.read_text())).savefig(picture, dpi=120)
