"""The view of a trend, which depends on the class of its parts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from deniable.errors import InputError
from deniable.render import elements, plots
from deniable.render.svg_marks import Layout
from deniable.render.view import Truth, View, shows, view_of
from deniable.results import Result, Trend
from deniable.survey import Survey

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_TICKS = 8
"""Periods that are named below a plot."""


@shows(Trend)
class TrendView(View[Trend[Result]]):
    """Shows a trend as the view of its first part does."""

    def notes(self, *, test: str = "score", stages: bool = False) -> list[str]:
        """Return what changed, and the periods that were not analysed."""
        trend = self.result
        skipped = [f"{period}: {why}" for period, why in trend.skipped.items()]
        changed = view_of(trend.parts[0]).trend_notes(trend) if trend.parts else []
        return [*changed, *skipped]

    def figure_size(self, most: int, graph: bool) -> tuple[float, float]:
        """Return a wide size."""
        return 7.2, 3.6

    def draw(self, ax: Axes, *, most: int = 6) -> None:
        """Draw the parts over time, with at most `most` lines."""
        if not self.result.parts:
            raise InputError("a trend without periods has no plot")
        view_of(self.result.parts[0]).draw_trend(self.result, ax, most)
        plots.title(ax, self.result.heading())
        periods = self.result.periods[:: math.ceil(len(self.result.periods) / MAX_TICKS)]
        ax.set_xticks(np.array(periods, "datetime64[D]"), periods, rotation=30, ha="right")

    def chart(self, layout: Layout, truth: Truth | None = None) -> str:
        """Return the chart of the first part's view."""
        trend = self.result
        return view_of(trend.parts[0]).trend_chart(trend, layout) if trend.parts else ""

    def section(self, survey: Survey | None = None, truth: Truth | None = None) -> str:
        """Return the section of the first part's view, and the skipped periods."""
        trend = self.result
        body = view_of(trend.parts[0]).trend_section(trend, survey) if trend.parts else ""
        skipped = (f"{period}: {why}" for period, why in trend.skipped.items())
        return body + "".join(map(elements.paragraph, skipped))
