"""A plan: the smallest frequency that is found against the number of clients, a line for each ε."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from deniable.results.survey_plan import Plan


def draw_plan(result: Plan, ax: Axes) -> Axes:
    """Lines of the best design; the plan itself is a point."""
    sizes = np.array(result.sizes, float)
    clients = np.geomspace(sizes[0], sizes[-1], 50)
    # Thresholds fall with the root of the number of clients.
    shades = np.linspace(0.85, 0.25, len(result.epsilons))
    for epsilon, at_first, shade in zip(
        result.epsilons, result.thresholds[:, 0], shades, strict=True
    ):
        y = 100 * at_first * np.sqrt(sizes[0] / clients)
        chosen = bool(np.isclose(epsilon, result.epsilon))
        seen = y <= 100
        ax.plot(clients[seen], y[seen], lw=2.4 if chosen else 1.2,
                color="#0b5394" if chosen else str(shade))  # fmt: skip
        ax.annotate(f"ε = {epsilon:g}", (clients[-1], y[-1]), xytext=(4, 0),
                    textcoords="offset points", va="center", fontsize=8,
                    color="#0b5394" if chosen else "black")  # fmt: skip
    ax.plot(result.clients, 100 * result.threshold, "o", color="#0b5394", ms=7)
    ax.annotate(f"{100 * result.threshold:.2g}%", (result.clients, 100 * result.threshold),
                xytext=(6, 8), textcoords="offset points", fontsize=9, color="#0b5394",
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0})  # fmt: skip
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.yaxis.set_major_formatter(lambda y, _: f"{y:g}")
    ax.set_xlim(sizes[0], sizes[-1] * 2.2)
    ax.set_xlabel("clients")
    ax.set_ylabel("found from this share of the clients, %")
    ax.set_title(f"{result.question}: {result.best.name}", fontsize=10, loc="left")
    ax.grid(which="major", lw=0.4, color="#dddddd")
    ax.spines[["top", "right"]].set_visible(False)
    return ax
