"""A plan: the smallest frequency that is found against the number of clients, a line per ε."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from deniable.formatting import percent
from deniable.render import plots
from deniable.render.view import View, shows
from deniable.results import Plan

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CHOSEN = "#0b5394"


@shows(Plan)
class PlanView(View[Plan]):
    """Lines of the best design; the plan itself is a point."""

    def draw(self, ax: Axes) -> None:
        """Draw the lines, and the plan on its line."""
        plan = self.result
        sizes = np.array(plan.sizes, float)
        clients = np.geomspace(sizes[0], sizes[-1], 50)
        shades = np.linspace(0.85, 0.25, len(plan.epsilons))
        write = partial(ax.annotate, textcoords="offset points")
        rows = zip(plan.epsilons, plan.thresholds[:, 0], shades, strict=True)
        for epsilon, at_first, shade in rows:
            # Thresholds fall with the root of the number of clients.
            y = 100 * at_first * np.sqrt(sizes[0] / clients)
            line, width, words = str(shade), 1.2, "black"
            if np.isclose(epsilon, plan.epsilon):
                line, width, words = CHOSEN, 2.4, CHOSEN
            ax.plot(clients[y <= 100], y[y <= 100], color=line, lw=width)
            end = (clients[-1], y[-1])
            write(f"ε = {epsilon:g}", end, (4, 0), va="center", fontsize=8, color=words)
        point = (plan.clients, 100 * plan.threshold)
        ax.plot(*point, "o", color=CHOSEN, ms=7)
        box = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
        write(percent(plan.threshold), point, (6, 8), fontsize=9, color=CHOSEN, bbox=box)
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.yaxis.set_major_formatter(lambda y, _: f"{y:g}")
        ax.set_xlim(sizes[0], sizes[-1] * 2.2)
        ax.set_xlabel("clients")
        ax.set_ylabel("found from this share of the clients, %")
        ax.grid(which="major", lw=0.4, color="#dddddd")
        plots.title(ax, f"{plan.question}: {plan.best.name}")
