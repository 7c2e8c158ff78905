"""A joint distribution: how values of several questions go together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from deniable.errors import InputError
from deniable.formatting import TextTable, p_phrase
from deniable.render import elements, plots, svg
from deniable.render.view import NoteOptions, Truth, View, shows
from deniable.results import Joint, Trend
from deniable.survey import Survey

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ALPHA = 0.05
"""Below this p-value we say that questions are associated."""


@shows(Joint)
class JointView(View[Joint]):
    """A table of two questions, coloured by how far it is from independence."""

    def table(self) -> TextTable:
        """Return two questions crossed, one down and one across; more as a list of cells."""
        found = self.result
        if len(found.questions) != 2:
            return super().table()
        (down, across), (first, second) = found.labels, found.questions
        rows = [
            [name, *(f"{100 * p:.2f} ± {196 * e:.2f}" for p, e in zip(*numbers, strict=True))]
            for name, *numbers in zip(down, found.table, found.standard_error, strict=True)
        ]
        right = [False, *(True for _ in across)]
        title = "% of clients, ± 1.96 standard errors"
        return TextTable([f"{first} \\ {second}", *across], rows, right, title)

    def notes(self, options: NoteOptions) -> list[str]:
        """Return the test, and what (other) stands for."""
        found = self.result
        if len(found.questions) == 2:
            test, effect = found.test(options.test), found.cramers_v()
            of = f"Cramér's V {effect.estimate:.3f} ({effect.low:.3f} to {effect.high:.3f})"
        else:
            test, of = found.mutual_independence(), "of all questions"
        shown = "goes together" if test.p_value < ALPHA else "no association is shown"
        pairs = zip(found.questions, found.other, strict=True)
        return [
            f"Independence ({test.method}): statistic {test.statistic:.2f}, "
            f"{test.degrees_of_freedom} degrees of freedom, {p_phrase(test.p_value)}: {shown}. "
            f"{of}",
            *(f"(other) of {question}: {other}" for question, other in pairs if other),
        ]

    def figure_size(self, most: int, graph: bool) -> tuple[float, float]:
        rows, columns = self.result.table.shape[0], self.result.table.shape[-1]
        return 0.7 * columns + 2.6, 0.45 * rows + 1.6

    def draw(self, ax: Axes, *, digits: int = 1) -> None:
        """Colour: (cell − product of margins) in standard errors. Numbers: the cell in per cent."""
        found, table = self.result, self.result.table
        if table.ndim != 2:
            raise InputError(f"a heat map is of two questions, this table has {table.ndim}")
        expected = np.outer(table.sum(axis=1), table.sum(axis=0))
        apart = (table - expected) / np.maximum(found.standard_error, 1e-12)
        limit = max(3.0, float(np.abs(apart).max()))
        image = ax.imshow(apart, cmap="RdBu_r", vmin=-limit, vmax=limit, aspect="auto")
        for (i, j), share in np.ndenumerate(table):
            colour = "white" if abs(apart[i, j]) > 0.6 * limit else "black"
            words = f"{100 * share:.{digits}f}"
            ax.text(j, i, words, ha="center", va="center", fontsize=8, color=colour)
        rows, columns = ([plots.label(name) for name in names] for names in found.labels)
        ax.set_yticks(range(len(rows)), rows)
        ax.set_xticks(range(len(columns)), columns, rotation=45, ha="right")
        ax.set_ylabel(found.questions[0])
        ax.set_xlabel(found.questions[1])
        ax.set_title(f"% of {found.reports:,} clients", fontsize=10, loc="left")
        figure = ax.get_figure()
        if figure is not None:
            bar = figure.colorbar(image, ax=ax, shrink=0.8)
            bar.set_label("apart from independence, standard errors", fontsize=8)

    def draw_trend(self, trend: Trend[Joint], ax: Axes, most: int) -> None:
        """Draw how strongly two questions were associated."""
        if len(self.result.questions) != 2:
            return super().draw_trend(trend, ax, most)
        seen = [part.cramers_v() for part in trend.parts]
        estimate, low, high = np.array([(v.estimate, v.low, v.high) for v in seen]).T
        ends = [np.maximum(estimate - low, 0), np.maximum(high - estimate, 0)]
        days = np.array(trend.periods, "datetime64[D]")
        ax.errorbar(days, estimate, yerr=ends, fmt="o-", ms=4, capsize=3)
        ax.set_ylabel("Cramér's V (95% intervals)")
        ax.set_ylim(0, None)

    def body(self, survey: Survey | None, truth: Truth | None) -> list[str]:
        found = self.result
        facts = {"reports": f"{found.reports:,}"}
        if found.made_from == "counts":
            facts["made from"] = "counts"
        pair = self._pair(facts) if len(found.questions) == 2 else []
        others = zip(found.questions, found.other, strict=True)
        return [
            elements.title(" and ".join(found.questions) + ": how values go together"),
            elements.numbers(facts),
            *pair,
            *(elements.paragraph(f"“Other” of {q}: {o}.") for q, o in others if o),
            elements.details("All cells", elements.table(found)),
        ]

    def _pair(self, facts: dict[str, str]) -> list[str]:
        """Return what is said of two questions, and add to the facts."""
        test, effect = self.result.test(), self.result.cramers_v()
        facts["association test"] = p_phrase(test.p_value)
        strength = f"{effect.estimate:.2f} ({effect.low:.2f} to {effect.high:.2f})"
        facts["strength (Cramér's V)"] = strength
        words = "The questions are associated"
        if test.p_value >= ALPHA:
            words = (
                "No association is shown: the answers are as they would be if the questions had "
                "nothing to do with each other"
            )
        return [
            elements.paragraph(
                f"{words} ({test.method} test, statistic {test.statistic:.1f} with "
                f"{test.degrees_of_freedom} degrees of freedom)."
            ),
            svg.heatmap(self.result),
            elements.paragraph(
                "Orange cells are more common than independent answers would make them, "
                "blue ones less."
            ),
        ]
