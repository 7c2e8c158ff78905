"""Values with their shares: a marginal, and the strings of a discovery."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.formatting import percent
from deniable.render import elements, plots, svg
from deniable.render.view import NoteOptions, Shares, Truth, View, shows
from deniable.results import Discovery, Marginal, Trend
from deniable.survey import Survey

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHOWN = 30
LINES = 6
"""Values of a trend that are drawn on a page: more lines cannot be told apart."""
Values = TypeVar("Values", Marginal, Discovery)
Shown = Mapping[str, float] | None
"""The true shares of values, where they are known."""


class ValuesView(View[Values]):
    """What both kinds of results share."""

    @abstractmethod
    def rows(self, most: int, truth: Shown) -> tuple[NDArray[np.intp], list[bool]]:
        """Return the `most` largest estimates, and which of them are surely there."""

    def shares(self, most: int, truth: Shown) -> Shares:
        """Return what is drawn; truth : the values' true shares, where they are known."""
        found, (order, detected) = self.result, self.rows(most, truth)
        names = [found.names[i] for i in order]
        return Shares(
            names,
            estimate=found.estimate[order].tolist(),
            low=found.low[order].tolist(),
            high=found.high[order].tolist(),
            detected=detected,
            threshold=found.detection_threshold,
            truth=None if truth is None else [truth.get(name, 0.0) for name in names],
        )

    def figure_size(self, most: int, graph: bool) -> tuple[float, float]:
        return 6.4, 4.0 if graph else 0.24 * min(len(self.result.names), most) + 1.4

    def draw_trend(self, trend: Trend[Values], ax: Axes, most: int) -> None:
        """Draw one line per value: those that are most common on average."""
        points: dict[str, list[tuple[float, ...]]] = {}
        for i, part in enumerate(trend.parts):
            for name, *numbers in zip(part.names, part.estimate, part.low, part.high, strict=True):
                points.setdefault(name, []).append((i, *(100 * float(n) for n in numbers)))
        total = {name: np.nansum([p[1] for p in seen]) for name, seen in points.items()}
        days = np.array(trend.periods, "datetime64[D]")
        for name in sorted(total, key=lambda name: -total[name])[:most]:
            where, estimate, low, high = np.array(points[name]).T
            label = plots.label(name)
            if len(where) == len(days):
                (line,) = ax.plot(days, estimate, "o-", ms=3.5, lw=1.4, label=label)
                ax.fill_between(days, low, high, color=line.get_color(), alpha=0.18, lw=0)
            else:  # a band needs neighbours
                ends = [estimate - low, high - estimate]
                at = days[where.astype(int)]
                ax.errorbar(
                    at, estimate, yerr=ends, fmt="o-", ms=3.5, lw=1.2, capsize=2, label=label
                )
        ax.axhline(0, color="black", lw=0.6)
        ax.set_ylabel("clients, % (95% intervals)")
        ax.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))

    def facts(self, name: str, count: str) -> str:
        """Return the numbers at the top of a section."""
        return elements.numbers(
            {
                "reports": f"{self.result.reports:,}",
                name: count,
                "share they explain": str(self.result.mass_found),
                "unexplained": str(self.result.mass_unexplained),
            }
        )

    def influence(self, survey: Survey | None) -> str:
        """Say how many malicious clients make a value seem to exist."""
        found = self.result
        return elements.influence(survey, found.question, found.reports, found.detection_threshold)


@shows(Marginal)
class MarginalView(ValuesView[Marginal]):
    """How frequent every candidate is; those that were not detected are grey."""

    def rows(self, most: int, truth: Shown) -> tuple[NDArray[np.intp], list[bool]]:
        order = self.result.order[:most]
        return order, self.result.detected[order].tolist()

    def draw(self, ax: Axes, *, most: int = SHOWN, truth: Shown = None) -> None:
        """Draw the `most` largest estimates."""
        found = self.result
        plots.intervals(ax, self.shares(most, truth))
        counted = f"{found.question or 'values'}: {int(found.detected.sum())} detected"
        plots.title(ax, f"{counted}, {found.reports:,} reports")

    def body(self, survey: Survey | None, truth: Truth | None) -> list[str]:
        found = self.result
        return [
            elements.title(f"{found.question}: how common each value is"),
            self.facts("values detected", f"{int(found.detected.sum())} of {len(found.names):,}"),
            svg.intervals(self.shares(SHOWN, (truth or {}).get(found.question))),
            elements.paragraph(
                f"A value that at least {percent(found.detection_threshold)} of the clients hold "
                "is detected more often than not. Grey values may be absent: over all values "
                "together the chance of calling any absent one detected is at most "
                f"{found.alpha:g}."
            ),
            self.influence(survey),
            elements.details("All values", elements.table(found)),
        ]

    def trend_section(self, trend: Trend[Marginal], survey: Survey | None) -> str:
        """Return the values of all periods in one chart."""
        largest = trend.largest(LINES)
        lines = (array[:, largest].T.tolist() for array in (trend.estimate, trend.low, trend.high))
        facts = {
            "reports": f"{int(trend.reports.sum()):,}",
            f"{trend.by}s": f"{len(trend.periods)}",
            "values": f"{len(trend.labels):,}",
        }
        words = (
            f"Bands are 95% intervals of one {trend.by} by itself. Where two bands hardly overlap, "
            f"the value has probably changed; looking at many {trend.by}s and values, a few will "
            "seem to change by chance."
        )
        body = [
            elements.title(f"{trend.question}: how common values were, {trend.by} by {trend.by}"),
            elements.numbers(facts),
            svg.lines(trend.periods, [trend.labels[i] for i in largest], *lines),
            elements.paragraph(words),
            elements.details("All values and periods", elements.table(trend)),
        ]
        return elements.section(body, trend.provenance)


@shows(Discovery)
class DiscoveryView(ValuesView[Discovery]):
    """Strings that nobody listed; where the truth is known, false ones are grey."""

    def rows(self, most: int, truth: Shown) -> tuple[NDArray[np.intp], list[bool]]:
        names = self.result.strings[:most]
        return np.arange(len(names)), [truth is None or name in truth for name in names]

    def notes(self, options: NoteOptions) -> list[str]:
        found = self.result
        notes = [f"Found from about {percent(found.detection_threshold)} of the clients."]
        if found.mass_at_end is not None and found.mass_at_end.low > 0.01:
            notes.append(
                f"{percent(found.mass_at_end.estimate)} of the strings fill the greatest length: "
                "longer ones may have been cut"
            )
        return notes + (found.stage_table().split("\n") if options.stages else [])

    def draw(
        self, ax: Axes, *, most: int = SHOWN, truth: Shown = None, graph: bool = False
    ) -> None:
        """Draw the `most` largest estimates, or the graph of n-grams."""
        if graph:
            return self._draw_graph(ax)
        found = self.result
        plots.intervals(ax, self.shares(most, truth))
        counted = f"{found.question or 'strings'}: {len(found.strings)} found"
        plots.title(ax, f"{counted} without a dictionary, {found.reports:,} reports")

    def _draw_graph(self, ax: Axes) -> None:
        """Draw one column per position, one node per gram, as in the paper's figure.

        The edges of cliques whose string was found are dark.
        """
        graph = self.result.graph
        if graph is None:
            raise InputError(
                "this result has no graph: only small ones of reading='paper' are kept"
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
        plots.title(ax, f"{len(graph.cliques)} candidates, {len(self.result.strings)} found")
        ax.spines["left"].set_visible(False)

    def body(self, survey: Survey | None, truth: Truth | None) -> list[str]:
        found = self.result
        chart = elements.paragraph("Nothing stood out from the noise.")
        if found.strings:
            chart = svg.intervals(self.shares(SHOWN, (truth or {}).get(found.question)))
        body = [
            elements.title(f"{found.question}: strings that nobody listed"),
            self.facts("strings found", f"{len(found.strings)}"),
            chart,
            elements.paragraph(
                f"{found.candidates:,} candidates were looked at ({found.correction}). The chance "
                f"that any of these strings was never reported is at most {found.alpha:g}. "
                "Estimates close to the detection threshold are of strings that happened to come "
                "out high."
            ),
        ]
        if found.truncation:
            body.append(elements.paragraph(f"The search was cut short: {found.truncation}."))
        if found.mass_at_end is not None:
            low, high = percent(max(found.mass_at_end.low, 0.0)), percent(found.mass_at_end.high)
            words = "Strings that fill the greatest length, and may have been cut"
            body.append(elements.paragraph(f"{words}: {low} to {high} of the clients."))
        return [
            *body,
            self.influence(survey),
            "<h3>How they were found</h3>",
            svg.stages(found),
            elements.details("All strings", elements.table(found)),
        ]
