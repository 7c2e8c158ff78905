"""The views of values with their shares: a marginal, and the strings of a discovery."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.formatting import counted, percent
from deniable.render import elements, plots, svg
from deniable.render.colours import SERIES
from deniable.render.svg_marks import Layout, responsive
from deniable.render.view import Shares, Truth, View, shows
from deniable.results import Discovery, Marginal, Trend
from deniable.survey import Survey

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_VALUES = 30
"""Values that a chart shows by default."""
MAX_LINES = 6
"""Lines of a trend on a page; more are hard to distinguish."""
Values = TypeVar("Values", Marginal, Discovery)
TrueShares = Mapping[str, float] | None
"""True shares by value, where they are known."""


class ValuesView(View[Values]):
    """What both views share."""

    @abstractmethod
    def rows(self, most: int, truth: TrueShares) -> tuple[NDArray[np.intp], list[bool]]:
        """Return the indices of the `most` largest estimates, and which of them are detected."""

    def shares(self, most: int, truth: TrueShares) -> Shares:
        """Return the `most` most common values as a chart draws them."""
        result, (order, detected) = self.result, self.rows(most, truth)
        names = [result.names[i] for i in order]
        return Shares(
            names,
            estimate=result.estimate[order].tolist(),
            low=result.low[order].tolist(),
            high=result.high[order].tolist(),
            detected=detected,
            threshold=result.detection_threshold,
            truth=None if truth is None else [truth.get(name, 0.0) for name in names],
        )

    def figure_size(self, most: int, graph: bool) -> tuple[float, float]:
        """Return a size with room for one row per value."""
        return 6.4, 4.0 if graph else 0.24 * min(len(self.result.names), most) + 1.4

    def draw_trend(self, trend: Trend[Values], ax: Axes, most: int) -> None:
        """Draw one line per value, for the values that are most common on average."""
        points: dict[str, list[tuple[float, ...]]] = {}
        for i, part in enumerate(trend.parts):
            for name, *numbers in zip(part.names, part.estimate, part.low, part.high, strict=True):
                points.setdefault(name, []).append((i, *(100 * float(n) for n in numbers)))
        total = {name: np.nansum([p[1] for p in seen]) for name, seen in points.items()}
        days = np.array(trend.periods, "datetime64[D]")
        ax.set_prop_cycle(color=SERIES)
        for name in sorted(total, key=lambda name: -total[name])[:most]:
            where, estimate, low, high = np.array(points[name]).T
            label = plots.label(name)
            if len(where) == len(days):
                (line,) = ax.plot(days, estimate, "o-", ms=3.5, lw=1.4, label=label)
                ax.fill_between(days, low, high, color=line.get_color(), alpha=0.18, lw=0)
            else:  # a band needs every period
                ends = [estimate - low, high - estimate]
                at = days[where.astype(int)]
                ax.errorbar(
                    at, estimate, yerr=ends, fmt="o-", ms=3.5, lw=1.2, capsize=2, label=label
                )
        ax.axhline(0, color="black", lw=0.6)
        ax.set_ylabel("% of clients (95% confidence intervals)")
        ax.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))

    def chart(self, layout: Layout, truth: Truth | None = None) -> str:
        """Return the chart of the largest estimates."""
        if not self.result.names:
            return ""
        shares = self.shares(MAX_VALUES, (truth or {}).get(self.result.question))
        return svg.intervals(shares, layout)

    def facts(self, name: str, count: str) -> str:
        """Return the numbers at the top of a section."""
        return elements.numbers(
            {
                "reports": f"{self.result.reports:,}",
                name: count,
                "of clients hold them": str(self.result.mass_found),
                "of clients hold none of them": str(self.result.mass_unexplained),
            }
        )

    def influence(self, survey: Survey | None) -> str:
        """Say how many malicious clients can make a value look present."""
        result = self.result
        return elements.influence(
            survey, result.question, result.reports, result.detection_threshold
        )


@shows(Marginal)
class MarginalView(ValuesView[Marginal]):
    """Shows how common each candidate is; candidates that were not detected are grey."""

    def rows(self, most: int, truth: TrueShares) -> tuple[NDArray[np.intp], list[bool]]:
        """Return the candidates of the `most` largest estimates, and which are detected."""
        order = self.result.order[:most]
        return order, self.result.detected[order].tolist()

    def draw(self, ax: Axes, *, most: int = MAX_VALUES, truth: TrueShares = None) -> None:
        """Draw the `most` largest estimates."""
        marginal = self.result
        plots.intervals(ax, self.shares(most, truth))
        count = counted(int(marginal.detected.sum()), "value")
        plots.title(
            ax, f"{marginal.question or 'values'}: {count} detected, {marginal.reports:,} reports"
        )

    def body(self, survey: Survey | None, truth: Truth | None) -> list[str]:
        """Return the numbers, the chart of the largest estimates, and the table."""
        marginal = self.result
        heading = elements.title(f"{marginal.question}: share of clients per value")
        if not marginal.names:
            text = f"There were no candidates to look for in {marginal.reports:,} reports."
            return [heading, elements.paragraph(text)]
        return [
            heading,
            self.facts(
                "values detected", f"{int(marginal.detected.sum())} of {len(marginal.names):,}"
            ),
            responsive(lambda layout: self.chart(layout, truth)),
            elements.paragraph(
                f"A value held by {percent(marginal.detection_threshold)} of the clients (the "
                "detection threshold) is detected half of the time. Grey values were not detected "
                "and may be absent. The probability that any absent value is called detected is at "
                f"most {marginal.alpha:g}."
            ),
            self.influence(survey),
            elements.details("All values", elements.table(marginal)),
        ]

    def trend_chart(self, trend: Trend[Marginal], layout: Layout) -> str:
        """Return one line per value, for the values that are most common on average."""
        largest = trend.largest(MAX_LINES)
        estimate, low, high = (
            array[:, largest].T.tolist() for array in (trend.estimate, trend.low, trend.high)
        )
        names = [trend.labels[i] for i in largest]
        return svg.lines(trend.periods, names, (estimate, low, high), layout) if names else ""

    def trend_section(self, trend: Trend[Marginal], survey: Survey | None) -> str:
        """Return one chart with the values over all periods."""
        facts = {
            "reports": f"{int(trend.reports.sum()):,}",
            f"{trend.by}s": f"{len(trend.periods)}",
            "values": f"{len(trend.labels):,}",
        }
        text = (
            f"Bands are 95% confidence intervals per {trend.by}. Where two bands hardly overlap, "
            f"the value has probably changed; among many {trend.by}s and values, a few seem to "
            "change by chance."
        )
        body = [
            elements.title(f"{trend.question}: share of clients per value and {trend.by}"),
            elements.numbers(facts),
            responsive(partial(self.trend_chart, trend)),
            elements.paragraph(text),
            elements.details("All values and periods", elements.table(trend)),
        ]
        return elements.section(body, trend.provenance)


@shows(Discovery)
class DiscoveryView(ValuesView[Discovery]):
    """Shows discovered strings; where the truth is known, false discoveries are grey."""

    def rows(self, most: int, truth: TrueShares) -> tuple[NDArray[np.intp], list[bool]]:
        """Return the first `most` strings, and which are true if the truth is known."""
        names = self.result.strings[:most]
        return np.arange(len(names)), [truth is None or name in truth for name in names]

    def notes(self, *, test: str = "score", stages: bool = False) -> list[str]:
        """Return the threshold, the share of cut strings, and the stages on request."""
        discovery = self.result
        notes = [
            f"Detection threshold: about {percent(discovery.detection_threshold)} of the clients."
        ]
        if discovery.mass_at_end is not None and discovery.mass_at_end.low > 0.01:
            notes.append(
                f"{percent(discovery.mass_at_end.estimate)} of the clients hold strings of the "
                "maximum length; these may have been cut."
            )
        return notes + (discovery.stage_table().split("\n") if stages else [])

    def draw(
        self, ax: Axes, *, most: int = MAX_VALUES, truth: TrueShares = None, graph: bool = False
    ) -> None:
        """Draw the `most` largest estimates, or the graph of n-grams."""
        if graph:
            return self._draw_graph(ax)
        discovery = self.result
        plots.intervals(ax, self.shares(most, truth))
        count = counted(len(discovery.strings), "string")
        plots.title(
            ax,
            f"{discovery.question or 'strings'}: {count} discovered, {discovery.reports:,} reports",
        )

    def _draw_graph(self, ax: Axes) -> None:
        """Draw one column per position and one node per n-gram, as in the paper's figure.

        The edges of cliques whose string was discovered are dark.
        """
        graph = self.result.graph
        if graph is None:
            raise InputError(
                "this result has no graph: only small searches with reading='paper' keep it"
            )
        joined = set()
        for clique in graph.cliques:
            string = "".join(graph.labels[g][i] for g, i in enumerate(clique)).rstrip("·")
            if string in self.result.strings:
                nodes = list(enumerate(clique))
                joined |= {(*nodes[g], *node) for g in range(len(nodes)) for node in nodes[g + 1 :]}
        for g, i, h, j in graph.edges:
            colour, width, style = plots.NOT_DETECTED, 0.8, "--"
            if (g, i, h, j) in joined:
                colour, width, style = plots.DETECTED, 1.6, "-"
            ax.plot([g, h], [-i, -j], color=colour, lw=width, ls=style, zorder=1)
        box = {"boxstyle": "circle", "facecolor": "white", "edgecolor": "black"}
        for g, grams in enumerate(graph.labels):
            for i, gram in enumerate(grams):
                ax.text(g, -i, plots.label(gram), ha="center", va="center", zorder=2, bbox=box)
        positions = range(len(graph.labels))
        ax.set_xticks(positions, [f"position {g + 1}" for g in positions])
        ax.set_yticks([])
        ax.set_xlim(-0.5, len(graph.labels) - 0.5)
        ax.set_ylim(0.4 - max((len(grams) for grams in graph.labels), default=1), 0.6)
        plots.title(ax, f"{len(graph.cliques)} candidates, {len(self.result.strings)} discovered")
        ax.spines["left"].set_visible(False)

    def body(self, survey: Survey | None, truth: Truth | None) -> list[str]:
        """Return the numbers, the chart of the largest estimates, and the table."""
        discovery = self.result
        body = [
            elements.title(f"{discovery.question}: discovered strings"),
            self.facts("strings discovered", f"{len(discovery.strings)}"),
            responsive(lambda layout: self.chart(layout, truth))
            or elements.paragraph("No string was discovered: nothing stands out from the noise."),
            elements.paragraph(
                f"{counted(discovery.candidates, 'candidate')} tested ({discovery.correction}). "
                "The probability that any of these strings is held by no client is at most "
                f"{discovery.alpha:g}. Estimates close to the detection threshold are too large "
                "on average."
            ),
        ]
        if discovery.truncation:
            body.append(elements.paragraph(f"The search is incomplete: {discovery.truncation}."))
        if discovery.mass_at_end is not None:
            low, high = (
                percent(max(discovery.mass_at_end.low, 0.0)),
                percent(discovery.mass_at_end.high),
            )
            text = "Clients with strings of the maximum length, which may have been cut"
            body.append(elements.paragraph(f"{text}: {low} to {high}."))
        return [
            *body,
            self.influence(survey),
            "<h3>Stages of the search</h3>",
            responsive(partial(svg.stages, discovery)),
            elements.paragraph("Blue: strings that a stage kept; grey: those that it dropped."),
            elements.details("All strings", elements.table(discovery)),
        ]
