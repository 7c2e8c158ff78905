"""The view of a number question: a histogram, and the mean and median over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from deniable.formatting import TextTable
from deniable.render import elements, plots, svg
from deniable.render.colours import SERIES
from deniable.render.svg_marks import Layout
from deniable.render.view import Truth, shows
from deniable.render.views.values_view import MAX_VALUES, MarginalView, TrueShares
from deniable.results import Histogram, Marginal, Trend
from deniable.results.histogram import SUMMARIES

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@shows(Histogram)
class HistogramView(MarginalView):
    """Shows bars as wide as their bins, with error bars; bins that were not detected are grey."""

    result: Histogram

    def table(self) -> TextTable:
        """Return the table for a terminal, in which the values name the edges."""
        columns = self.result.columns()
        return TextTable.readable(
            {name: c for name, c in columns.items() if not name.endswith("_edge")}
        )

    def notes(self, *, test: str = "score", stages: bool = False) -> list[str]:
        """Say whose mean it is, and what the intervals allow for."""
        ends = " to ".join(f"{end:g}" for end in self.result.edges[[0, -1]])
        return [
            f"Mean and median are those of the clients that answered; numbers outside {ends} count "
            "in the first or last bin. Their intervals allow for where in its bin a number may "
            "lie.",
            *super().notes(test=test, stages=stages),
        ]

    def figure_size(self, most: int, graph: bool) -> tuple[float, float]:
        """Return a wide size."""
        return 6.4, 3.8

    def draw(self, ax: Axes, *, most: int = MAX_VALUES, truth: TrueShares = None) -> None:
        """Draw all bins, whatever `most` is, and the mean."""
        histogram, shares = self.result, self.shares(len(self.result.estimate), truth)
        edges = histogram.edges
        colours = [plots.DETECTED if sure else plots.NOT_DETECTED for sure in shares.detected]
        estimate, low, high = (
            100 * np.array(column) for column in (shares.estimate, shares.low, shares.high)
        )
        bars = ax.bar(edges[:-1], estimate, np.diff(edges), align="edge", color=colours, alpha=0.75)
        for bar in bars:
            bar.set(edgecolor="white", linewidth=0.5)
        logarithmic = svg.wants_logarithm(edges.tolist())
        middle = np.sqrt(edges[:-1] * edges[1:]) if logarithmic else (edges[:-1] + edges[1:]) / 2
        reach = [estimate - low, high - estimate]
        ax.errorbar(middle, estimate, yerr=reach, fmt="none", ecolor="black", elinewidth=0.9)
        if shares.truth is not None:
            true = 100 * np.array(shares.truth)
            ax.stairs(true, edges, color=plots.TRUTH, lw=1.4, label="truth", baseline=None)
        if histogram.known:
            ax.axvline(histogram.mean.estimate, color="black", lw=0.8, ls="--", label="mean")
            ax.legend(frameon=False, fontsize=8)
        ax.axhline(0, color="black", lw=0.6)
        if logarithmic:
            ax.set_xscale("log")
        ax.set_xlabel(self._axis_title)
        ax.set_ylabel(f"% of {histogram.whom} per bin, 95% intervals")
        plots.title(ax, f"{histogram.title}: {histogram.reports_phrase}")

    def chart(self, layout: Layout, truth: Truth | None = None) -> str:
        """Return the bars of all bins."""
        true = (truth or {}).get(self.result.question)
        shares = self.shares(len(self.result.estimate), true)
        return svg.histogram(shares, self.result.edges.tolist(), self._axis_title, layout)

    @property
    def _axis_title(self) -> str:
        name, unit = self.result.question or "number", self.result.unit
        return f"{name} in {unit}" if unit else name

    def _facts(self) -> dict[str, str]:
        """Return the numbers at the top of the section."""
        facts = elements.count(self.result.reports, "report")
        if self.result.subgroup is not None:
            facts["of clients are in the subgroup"] = str(self.result.subgroup)
        if self.result.known:
            facts |= {name: getattr(self.result, name).short for name in SUMMARIES}
        return facts

    # --- over time -------------------------------------------------------------------------------

    def draw_trend(self, trend: Trend[Marginal], ax: Axes, most: int) -> None:
        """Draw the mean and the median over time."""
        days = np.array(trend.periods, "datetime64[D]")
        ax.set_prop_cycle(color=SERIES)
        for name in SUMMARIES:
            estimate, low, high = trend.numbers(name).T
            reach = [estimate - low, high - estimate]
            ax.errorbar(days, estimate, yerr=reach, fmt="o-", ms=3.5, lw=1.2, capsize=2, label=name)
        ax.set_ylabel(f"{self._axis_title} (95% intervals)")
        plots.legend(ax)

    def trend_chart(self, trend: Trend[Marginal], layout: Layout) -> str:
        """Return the mean and the median over time."""
        arrays = np.stack([trend.numbers(name) for name in SUMMARIES])
        estimate, low, high = np.moveaxis(arrays, -1, 0).tolist()
        scale = svg.NumberScale(self._axis_title)
        return svg.lines(trend.periods, SUMMARIES, (estimate, low, high), layout, scale)

    def trend_notes(self, trend: Trend[Marginal]) -> list[str]:
        """Return the mean and the median of each period, and which bins changed."""
        numbers = [
            f"{period}: mean {part.mean.short}, median {part.median.short}"
            for period, part in zip(trend.periods, trend.parts, strict=True)
            if isinstance(part, Histogram)
        ]
        return [*numbers, *super().trend_notes(trend)]
