"""The view of a joint distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from deniable.errors import InputError
from deniable.formatting import TextTable, counted, p_phrase
from deniable.render import elements, plots, svg
from deniable.render.colours import LIGHT, STEPS
from deniable.render.svg_marks import Layout, responsive
from deniable.render.view import Truth, View, shows
from deniable.results import Joint, Trend
from deniable.results.association import AssociationTest
from deniable.survey import Survey

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ALPHA = 0.05
"""Questions with a smaller p-value are called associated."""


@shows(Joint)
class JointView(View[Joint]):
    """Shows the table of two questions, coloured by its difference from independence."""

    def table(self) -> TextTable:
        """Return a contingency table of two questions, or a list of cells of more."""
        joint = self.result
        if len(joint.questions) != 2:
            return super().table()
        (down, across), (first, second) = joint.labels, joint.questions
        rows = [
            [name, *(f"{100 * p:.2f} ± {196 * e:.2f}" for p, e in zip(*numbers, strict=True))]
            for name, *numbers in zip(down, joint.table, joint.standard_error, strict=True)
        ]
        right = [False, *(True for _ in across)]
        title = "% of clients, 95% intervals"
        return TextTable([f"{first} \\ {second}", *across], rows, right, title)

    def notes(self, *, test: str = "score", stages: bool = False) -> list[str]:
        """Return the test of independence, its effect size, and what (other) stands for."""
        joint, two = self.result, len(self.result.questions) == 2
        told = []
        if joint.tested:
            outcome = joint.test(test) if two else joint.mutual_independence()
            verdict = "are associated" if outcome.p_value < ALPHA else "show no association"
            told = [f"The questions {verdict} ({outcome})."]
        if two:
            told.append(f"{joint.cramers_v()}.")
        return [" ".join(told), *joint.last_categories()]

    def figure_size(self, most: int, graph: bool) -> tuple[float, float]:
        """Return a size with room for every cell."""
        names = [[plots.label(name) for name in labels] for labels in self.result.labels]
        rows, columns = names[0], names[-1]
        # A character is about 0.085 inches wide; the labels of columns are turned by 45°.
        left, below = (0.085 * max(map(len, labels)) for labels in (rows, columns))
        width, height = max(0.7 * len(columns), 2.6), max(0.45 * len(rows), 2.2)
        return width + left + 1.8, height + 0.7 * below + 1.0

    def draw(self, ax: Axes, *, digits: int = 1) -> None:
        """Draw a heat map: residuals from independence as colours, per cent as numbers."""
        joint = self.result
        if joint.table.ndim != 2:
            raise InputError(f"a heat map needs two questions, this table has {joint.table.ndim}")
        residuals = joint.residuals
        image = ax.imshow(residuals, **plots.heat_scale(), aspect="auto")
        for (i, j), share in np.ndenumerate(joint.table):
            colour = LIGHT["on"] if abs(residuals[i, j]) >= STEPS else LIGHT["ink"]
            text = f"{100 * share:.{digits}f}"
            ax.text(j, i, text, ha="center", va="center", fontsize=8, color=colour)
        rows, columns = ([plots.label(name) for name in names] for names in joint.labels)
        ax.set_yticks(range(len(rows)), rows)
        ax.set_xticks(range(len(columns)), columns, rotation=45, ha="right")
        ax.set_ylabel(joint.questions[0])
        ax.set_xlabel(joint.questions[1])
        ax.set_title(f"% of clients, {counted(joint.reports, 'report')}", fontsize=10, loc="left")
        figure = ax.get_figure()
        if figure is not None:
            bar = figure.colorbar(image, ax=ax, shrink=0.8)
            bar.set_label("difference from independence, standard errors", fontsize=8)

    def draw_trend(self, trend: Trend[Joint], ax: Axes, most: int) -> None:
        """Draw Cramér's V of two questions over time."""
        if len(self.result.questions) != 2:
            return super().draw_trend(trend, ax, most)
        effects = [part.cramers_v() for part in trend.parts]
        estimate, low, high = np.array([(v.estimate, v.low, v.high) for v in effects]).T
        ends = [np.maximum(estimate - low, 0), np.maximum(high - estimate, 0)]
        days = np.array(trend.periods, "datetime64[D]")
        ax.errorbar(days, estimate, yerr=ends, fmt="o-", ms=4, capsize=3, color=plots.DETECTED)
        ax.set_ylabel("Cramér's V (95% confidence intervals)")
        ax.set_ylim(0, None)

    def body(self, survey: Survey | None, truth: Truth | None) -> list[str]:
        """Return the test and the heat map of two questions, and the table of cells."""
        joint = self.result
        facts = elements.count(joint.reports, "report")
        if joint.made_from == "counts":
            facts["estimated from"] = "counts"
        pair = self._pair(facts) if len(joint.questions) == 2 else self._several(facts)
        *first, last = joint.questions
        return [
            elements.title(f"Joint distribution of {', '.join(first)} and {last}"),
            elements.numbers(facts),
            *pair,
            *map(elements.paragraph, joint.last_categories()),
            elements.details("All cells", elements.table(joint)),
        ]

    def chart(self, layout: Layout, truth: Truth | None = None) -> str:
        """Return the heat map of two questions."""
        return svg.heatmap(self.result, layout) if len(self.result.questions) == 2 else ""

    def _several(self, facts: dict[str, str]) -> list[str]:
        """Return the test of independence of three or more questions, and add to the facts."""
        # A result that was read from a file has no reports to test.
        if self.result.tests is None or not self.result.tested:
            return []
        return [self._verdict(self.result.mutual_independence(), facts)]

    def _verdict(self, test: AssociationTest, facts: dict[str, str]) -> str:
        """Return the outcome of a test of independence, and add to the facts."""
        facts["test of independence"] = p_phrase(test.p_value)
        verdict = "The questions are associated"
        if test.p_value >= ALPHA:
            verdict = "The questions show no association: the answers look independent"
        return elements.paragraph(f"{verdict} ({test}).")

    def _pair(self, facts: dict[str, str]) -> list[str]:
        """Return the test and the heat map of two questions, and add to the facts."""
        verdict = self._verdict(self.result.test(), facts) if self.result.tested else ""
        effect = self.result.cramers_v()
        strength = f"{effect.estimate:.2f} ({effect.low:.2f} to {effect.high:.2f})"
        facts["Cramér's V (strength of the association)"] = strength
        return [
            verdict,
            responsive(self.chart),
            elements.paragraph(
                "Orange cells are more common than they would be if the questions were "
                "independent, blue cells less common."
            ),
        ]
