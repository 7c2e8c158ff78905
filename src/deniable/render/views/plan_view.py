"""The view of a plan: detection threshold against number of clients, one line per ε."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from deniable.formatting import percent
from deniable.render import elements, plots
from deniable.render.colours import LIGHT
from deniable.render.view import Truth, View, shows
from deniable.results import Plan
from deniable.survey import Survey

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@shows(Plan)
class PlanView(View[Plan]):
    """Shows the predictions for the best design; the plan is a point among them."""

    def body(self, survey: Survey | None, truth: Truth | None) -> list[str]:
        """Return the plan in one sentence, and the table of predictions."""
        plan = self.result
        return [
            elements.title(f"Plan for {plan.question}"),
            elements.paragraph(f"{plan.heading()}."),
            elements.table(plan),
        ]

    def draw(self, ax: Axes) -> None:
        """Draw one line per ε, and the plan as a point."""
        plan = self.result
        sizes = np.array(plan.sizes, float)
        clients = np.geomspace(sizes[0], sizes[-1], 50)
        shades = np.linspace(0.85, 0.25, len(plan.epsilons))
        write = partial(ax.annotate, textcoords="offset points")
        # Where nothing is tested, there is no line.
        known = clients >= sizes[np.isfinite(plan.thresholds[0])].min(initial=np.inf)
        rows = zip(plan.epsilons, plan.thresholds[:, -1], shades, strict=True)
        for epsilon, last_threshold, shade in rows:
            # Thresholds fall with the square root of the number of clients.
            y = 100 * last_threshold * np.sqrt(sizes[-1] / clients)
            line_colour, width, text_colour = str(shade), 1.2, "black"
            if np.isclose(epsilon, plan.epsilon):
                line_colour, width, text_colour = plots.DETECTED, 2.4, plots.DETECTED
            drawn = known & (y <= 100)
            ax.plot(clients[drawn], y[drawn], color=line_colour, lw=width)
            if known.any():
                end = (clients[-1], y[-1])
                write(f"ε = {epsilon:g}", end, (4, 0), va="center", fontsize=8, color=text_colour)
        if plan.tested:
            point = (plan.clients, 100 * plan.threshold)
            ax.plot(*point, "o", color=plots.DETECTED, ms=7)
            box = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
            text = percent(plan.threshold)
            write(text, point, (6, 8), fontsize=9, color=plots.DETECTED, bbox=box)
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.yaxis.set_major_formatter(lambda y, _: f"{y:g}")
        ax.set_xlim(sizes[0], sizes[-1] * 2.2)
        ax.set_xlabel("number of clients")
        ax.set_ylabel("detection threshold, % of clients")
        ax.grid(which="major", lw=0.4, color=LIGHT["edge"])
        plots.title(ax, f"{plan.question}: {plan.best.name}")
