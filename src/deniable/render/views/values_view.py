"""The views of values with their shares: a marginal, and the strings of a discovery."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.formatting import TextTable, counted, percent
from deniable.render import elements, plots, svg
from deniable.render.colours import SERIES
from deniable.render.svg_marks import Layout, responsive
from deniable.render.view import Shares, Truth, View, shows
from deniable.results import Change, Discovery, Marginal, Measured, Trend
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

    @property
    def shown(self) -> Values:
        """The result with all rows that tables and charts show."""
        return self.result

    @abstractmethod
    def rows(self, most: int, truth: TrueShares) -> tuple[NDArray[np.intp], list[bool]]:
        """Return the indices of the `most` largest estimates, and which of them are detected."""

    def shares(self, most: int, truth: TrueShares) -> Shares:
        """Return the `most` most common values as a chart draws them."""
        result, (order, detected) = self.shown, self.rows(most, truth)
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
        return 6.4, 4.0 if graph else 0.24 * min(len(self.shown.names), most) + 1.4

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
            if len(where) == len(days) > 1:
                (line,) = ax.plot(days, estimate, "o-", ms=3.5, lw=1.4, label=label)
                ax.fill_between(days, low, high, color=line.get_color(), alpha=0.18, lw=0)
            else:  # a band needs every period, and two of them
                ends = [estimate - low, high - estimate]
                at = days[where.astype(int)]
                ax.errorbar(
                    at, estimate, yerr=ends, fmt="o-", ms=3.5, lw=1.2, capsize=2, label=label
                )
        ax.axhline(0, color="black", lw=0.6)
        whom = trend.parts[0].whom if isinstance(trend.parts[0], Marginal) else "clients"
        ax.set_ylabel(f"% of {whom} (95% confidence intervals)")
        plots.legend(ax)

    def chart(self, layout: Layout, truth: Truth | None = None) -> str:
        """Return the chart of the largest estimates."""
        if not self.rows(MAX_VALUES, None)[1]:
            return ""
        shares = self.shares(MAX_VALUES, (truth or {}).get(self.result.question))
        return svg.intervals(shares, layout)

    def influence(self, survey: Survey | None) -> str:
        """Say how many malicious clients can make a value look present."""
        result = self.result
        return elements.influence(
            survey, result.question, result.reports, result.detection_threshold
        )


def _with_no(marginal: Marginal) -> Marginal:
    """Return the result with a row for "no" if the question is a boolean: 1 minus that of "yes".

    This row is not tested, so its p-value is NaN.
    """
    if not marginal.is_boolean or len(marginal.names) > 1:
        return marginal
    low = 1 - marginal.high
    return replace(
        marginal,
        labels=(*marginal.names, "no"),
        estimate=np.append(marginal.estimate, 1 - marginal.estimate),
        standard_error=np.tile(marginal.standard_error, 2),
        low=np.append(marginal.low, low),
        high=np.append(marginal.high, 1 - marginal.low),
        p_value=np.append(marginal.p_value, np.nan),
        log_p_value=np.append(marginal.log_p_value, np.nan),
        detected=np.append(marginal.detected, (low > 0) & marginal.tested),
        identified=np.tile(marginal.identified, 2),
    )


@shows(Marginal)
class MarginalView(ValuesView[Marginal]):
    """Shows how common each candidate is; candidates that were not detected are grey."""

    @property
    def shown(self) -> Marginal:
        """The result; that of a boolean with a row for "no"."""
        return _with_no(self.result)

    def table(self) -> TextTable:
        """Return the table for a terminal."""
        return TextTable.readable(self.shown.columns())

    def notes(self, *, test: str = "score", stages: bool = False) -> list[str]:
        """Say which reports are used, and what is not known about a subgroup."""
        marginal = self.result
        notes = []
        if marginal.total_reports is not None:
            notes.append(
                f"{marginal.reports_phrase} are used: the others report only a shorter prefix, "
                "which does not identify a string."
            )
        if marginal.is_boolean:
            notes.append("Clients that did not answer count as no.")
        if marginal.subgroup is None:
            return notes
        if not marginal.identified.any():
            return [
                *notes,
                "Nothing can be said about this subgroup: its share of clients, "
                f"{marginal.subgroup}, cannot be distinguished from 0. Choose a larger subgroup, "
                "or collect more reports.",
            ]
        if left_out := int((~marginal.identified).sum()):
            notes.append(
                f"{counted(left_out, 'candidate')} without an estimate: only values that are "
                "detected among all clients can be estimated in a subgroup."
            )
        if marginal.tested:
            notes.append(
                "A value is detected if the hypothesis that no client in the subgroup holds it is "
                "rejected."
            )
        return notes

    def rows(self, most: int, truth: TrueShares) -> tuple[NDArray[np.intp], list[bool]]:
        """Return the candidates of the `most` largest estimates, and which are detected."""
        shown = self.shown
        order = shown.order[:most]
        if shown.subgroup is not None:
            order = order[shown.identified[order]]
        # If nothing is tested, no value is drawn as one that may be absent.
        return order, (shown.detected[order] | (not shown.tested)).tolist()

    def draw(self, ax: Axes, *, most: int = MAX_VALUES, truth: TrueShares = None) -> None:
        """Draw the `most` largest estimates."""
        marginal = self.result
        plots.intervals(ax, self.shares(most, truth))
        count = counted(int(marginal.detected.sum()), "value")
        found = "" if marginal.is_boolean or not marginal.tested else f"{count} detected, "
        plots.title(ax, f"{marginal.title}: {found}{marginal.reports_phrase}")

    def shares(self, most: int, truth: TrueShares) -> Shares:
        """Return the `most` most common values as a chart draws them."""
        if truth is not None and self.result.is_boolean:
            truth = {"no": 1 - truth.get("yes", 0.0), **truth}
        return replace(super().shares(most, truth), whom=self.result.whom)

    def body(self, survey: Survey | None, truth: Truth | None) -> list[str]:
        """Return the numbers, the chart of the largest estimates, and the table."""
        marginal = self.result
        heading = elements.title(f"{marginal.title}: share of {marginal.whom} per value")
        if not marginal.names:
            text = f"There were no candidates to look for in {marginal.reports:,} reports."
            return [heading, elements.paragraph(text)]
        facts, notes = elements.numbers(self._facts()), map(elements.paragraph, self.notes())
        if not marginal.identified.any() and marginal.subgroup is not None:
            return [heading, facts, *notes]
        # How far malicious clients can change shares of a subgroup depends on the joint table.
        influence = self.influence(survey) if marginal.subgroup is None else ""
        return [
            heading,
            facts,
            responsive(lambda layout: self.chart(layout, truth)),
            self._about_tests() if marginal.tested else "",
            *notes,
            influence,
            elements.details("All values", elements.table(self.shown)),
        ]

    def _about_tests(self) -> str:
        """Say what is detected how often."""
        marginal = self.result
        return elements.paragraph(
            f"A value held by {percent(marginal.detection_threshold)} of {marginal.whom} (the "
            "detection threshold) is detected half of the time. Grey values were not detected "
            "and may be absent. The probability that any absent value is called detected is at "
            f"most {marginal.alpha:g}."
        )

    def _facts(self) -> dict[str, str]:
        """Return the numbers at the top of the section."""
        marginal, shown = self.result, self.shown
        facts = elements.count(marginal.reports, "report")
        if marginal.total_reports is not None:
            facts = {"reports": f"{marginal.reports:,} of {marginal.total_reports:,}"}
        if marginal.subgroup is not None:
            facts["of clients are in the subgroup"] = str(marginal.subgroup)
            if not marginal.identified.any():
                return facts
        if marginal.is_boolean:
            for name, estimate, error in zip(
                shown.names, shown.estimate, shown.standard_error, strict=True
            ):
                facts[f"of {marginal.whom} say {name}"] = str(Measured.normal(estimate, error))
            return facts
        if not marginal.tested:
            return facts
        facts["values detected"] = f"{int(marginal.detected.sum())} of {len(marginal.names):,}"
        facts[f"of {marginal.whom} hold them"] = str(marginal.mass_found)
        facts[f"of {marginal.whom} hold none of them"] = str(marginal.mass_unexplained)
        return facts

    def trend_chart(self, trend: Trend[Marginal], layout: Layout) -> str:
        """Return one line per value, for the values that are most common on average."""
        largest = trend.largest(MAX_LINES)
        estimate, low, high = (
            array[:, largest].T.tolist() for array in (trend.estimate, trend.low, trend.high)
        )
        names = [trend.labels[i] for i in largest]
        if not names:
            return ""
        scale = svg.ShareScale(f"share of {self.result.whom}")
        return svg.lines(trend.periods, names, (estimate, low, high), layout, scale)

    def change(self, trend: Trend[Marginal]) -> Change:
        """Compare the first and the last period; only this needs the `analysis` extra."""
        from deniable.analysis import compare

        return compare(trend)

    def trend_notes(self, trend: Trend[Marginal]) -> list[str]:
        """Say which values changed from the first to the last period."""
        if len(trend.periods) < 2:
            return []
        change = self.change(trend)
        if not change.tested:
            return []
        return [f"{change.summary()} (at significance level {change.alpha:g})."]

    def trend_section(self, trend: Trend[Marginal], survey: Survey | None) -> str:
        """Return one chart with the values over all periods."""
        first = trend.marginals[0]
        facts = {
            **elements.count(int(trend.reports.sum()), "report"),
            **elements.count(len(trend.periods), trend.by),
            **elements.count(len(trend.labels), "value"),
        }
        text = (
            f"Bands are 95% confidence intervals per {trend.by}. Among many {trend.by}s and values,"
            " a few seem to change by chance."
        )
        if len(trend.periods) == 1:
            text = f"Vertical lines are 95% confidence intervals. Only one {trend.by} has reports."
        body = [
            elements.title(f"{first.title}: share of {first.whom} per value and {trend.by}"),
            elements.numbers(facts),
            responsive(partial(self.trend_chart, trend)),
            elements.paragraph(text),
            *map(elements.paragraph, self.trend_notes(trend)),
            elements.details("All values and periods", elements.table(trend)),
        ]
        if len(trend.periods) > 1:
            name = f"Changes from {trend.periods[0]} to {trend.periods[-1]}"
            body.append(elements.details(name, elements.table(self.change(trend))))
        return elements.section(body, trend)


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
        if not discovery.tested:
            return []
        notes = [
            f"Detection threshold: about {percent(discovery.detection_threshold)} of the clients."
        ]
        if discovery.mass_at_end is not None and discovery.mass_at_end.low > 0.01:
            notes.append(
                f"{percent(discovery.mass_at_end.estimate)} of the clients hold strings of the "
                "maximum length; these may have been cut."
            )
        if discovery.shrinkage_note:
            notes.append(discovery.shrinkage_note)
        return notes + (discovery.stage_table().split("\n") if stages else [])

    def draw(
        self, ax: Axes, *, most: int = MAX_VALUES, truth: TrueShares = None, graph: bool = False
    ) -> None:
        """Draw the `most` largest estimates, or the graph of n-grams."""
        if graph:
            return self._draw_graph(ax)
        discovery = self.result
        plots.intervals(ax, self.shares(most, truth))
        if not discovery.strings:
            empty, at = "no string was discovered", ax.transAxes
            ax.text(0.5, 0.5, empty, ha="center", va="center", fontsize=9, transform=at)
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
        if not discovery.tested:
            count = elements.count(discovery.reports, "report")
            title = elements.title(f"{discovery.question}: discovered strings")
            return [title, elements.numbers(count)]
        body = [
            elements.title(f"{discovery.question}: discovered strings"),
            elements.numbers(
                {
                    **elements.count(discovery.reports, "report"),
                    **elements.count(len(discovery.strings), "discovered string"),
                    "of clients hold them": str(discovery.mass_found),
                    "of clients hold none of them": str(discovery.mass_unexplained),
                }
            ),
            responsive(lambda layout: self.chart(layout, truth))
            or elements.paragraph("No string was discovered: nothing stands out from the noise."),
            elements.paragraph(
                f"{counted(discovery.candidates, 'candidate')} tested ({discovery.correction}). "
                "The probability that any of these strings is held by no client is at most "
                f"{discovery.alpha:g}."
            ),
        ]
        if discovery.shrinkage_note:
            body.append(elements.paragraph(discovery.shrinkage_note))
        if discovery.truncation:
            body.append(elements.paragraph(f"The search is incomplete: {discovery.truncation}."))
        if discovery.mass_at_end is not None:
            ends = (discovery.mass_at_end.low, discovery.mass_at_end.high)
            low, high = (percent(max(end, 0.0)) for end in ends)
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
