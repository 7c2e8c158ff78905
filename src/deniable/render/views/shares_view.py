"""The view of consistent shares: bars."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from deniable.render import elements, plots, svg
from deniable.render.colours import SERIES
from deniable.render.svg_marks import Layout, responsive
from deniable.render.view import Truth, View, shows
from deniable.results import ConsistentShares, Trend
from deniable.results.consistent import remainder
from deniable.survey import Survey

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_BARS = 30
"""Values that a chart shows."""


@shows(ConsistentShares)
class SharesView(View[ConsistentShares]):
    """Shows one bar per value, and one for all other clients."""

    def notes(self, *, test: str = "score", stages: bool = False) -> list[str]:
        """Return where the intervals are."""
        return ["The estimates of decode are unbiased, and have confidence intervals and tests."]

    def figure_size(self, most: int, graph: bool) -> tuple[float, float]:
        """Return a size with room for one bar per value."""
        return 6.4, 0.24 * min(len(self.result), most) + 1.4

    def draw(self, ax: Axes, *, most: int = MAX_BARS) -> None:
        """Draw the `most` largest shares, and the bar of (other)."""
        names, shares = self._largest(most)
        ax.barh(range(len(names)), [100 * share for share in shares], color=plots.DETECTED)
        ax.set_yticks(range(len(names)), [plots.label(name) for name in names])
        ax.set_ylim(len(names) - 0.5, -0.5)
        ax.set_xlabel(self._axis_title, fontsize=9)
        plots.title(ax, f"{self.result.question or 'values'}: {self.result.reports:,} reports")

    def draw_trend(self, trend: Trend[ConsistentShares], ax: Axes, most: int) -> None:
        """Draw one line per value, for the values that are most common on average."""
        total = Counter[str]()
        for part in trend.parts:
            total.update({row.value: row.share for row in part})
        days = np.array(trend.periods, "datetime64[D]")
        ax.set_prop_cycle(color=SERIES)
        for name, _ in total.most_common(most):
            shares = [100 * part[name].share if name in part else np.nan for part in trend.parts]
            ax.plot(days, shares, "o-", ms=3.5, lw=1.4, label=plots.label(name))
        ax.set_ylabel(self._axis_title)
        plots.legend(ax)

    def chart(self, layout: Layout, truth: Truth | None = None) -> str:
        """Return the bars of the largest shares."""
        return svg.bars(*self._largest(MAX_BARS), layout, self.result.whom)

    def body(self, survey: Survey | None, truth: Truth | None) -> list[str]:
        """Return the bars, what is biased, and the table."""
        return [
            elements.title(f"{self.result.question}: consistent shares"),
            elements.numbers(elements.count(self.result.reports, "report")),
            responsive(self.chart),
            elements.paragraph(f"{self.result.heading()}. {self.notes()[0]}"),
            elements.details("All values", elements.table(self.result)),
        ]

    @property
    def _axis_title(self) -> str:
        return f"% of {self.result.whom} (consistent shares, biased)"

    def _largest(self, most: int) -> tuple[list[str], list[float]]:
        """Return the largest shares, with what is left for all other clients."""
        rows = list(self.result)[: min(most, len(self.result) - 1)]
        shares = [row.share for row in rows]
        return [*(row.value for row in rows), self.result.rest], [*shares, remainder(shares)]
