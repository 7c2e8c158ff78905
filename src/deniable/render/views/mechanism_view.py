"""The view of a comparison of mechanisms: variance against ε, one line per mechanism."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from deniable.formatting import TextTable, epsilon_text, sortable_table
from deniable.render import elements, plots
from deniable.render.colours import LIGHT
from deniable.render.view import Truth, View, shows
from deniable.results import MechanismTable
from deniable.survey import Survey

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMNS: dict[str, tuple[str, Callable[[Any], str]]] = {
    "name": ("mechanism", str),
    "epsilon": ("ε", "{:g}".format),
    "per_report": ("ε per report", epsilon_text),
    "variance": ("variance × clients", "{:.3g}".format),
    "variance_30": ("after 30 reports", "{:.3g}".format),
    "bound": ("lower bound", "{:.3g}".format),
    "liar": ("one liar counts as", "{:.2f}".format),
    "bytes": ("bytes", str),
    "groups": ("groups", "{:,}".format),
    "encode_microseconds": ("client, µs", "{:.0f}".format),
    "decode_seconds": ("decode 100,000, s", "{:.2f}".format),
}
"""Title and format of each column."""


@shows(MechanismTable)
class MechanismView(View[MechanismTable]):
    """Shows which mechanism is how accurate, beside the best known lower bound."""

    def table(self) -> TextTable:
        """Return the comparison as a table."""
        columns = self.result.columns()
        titles = {name: COLUMNS[name][0] for name in columns}
        if self.result.collect == "repeatedly":
            titles["epsilon"] = "ε in total"
        named = {titles[name]: column for name, column in columns.items()}
        return TextTable.of(named, {titles[name]: COLUMNS[name][1] for name in columns})

    def notes(self, *, test: str = "score", stages: bool = False) -> list[str]:
        """Say what the columns mean."""
        values = (
            "a rare string"
            if "string" in self.result.question
            else "an answer, if all are equally common"
        )
        return [
            f"Variance of the estimated share of {values}, from one report per client, times the "
            "number of clients: half of it is worth twice the clients.",
            "The lower bound holds for every mechanism with the same ε per report. Clients of one "
            "group have equal clear fields, which are sent without noise. Times are those of this "
            "machine.",
        ]

    def body(self, survey: Survey | None, truth: Truth | None) -> list[str]:
        """Return the table, and what its columns mean."""
        result = self.result
        return [
            elements.title(f"Mechanisms for {result.question}"),
            *map(elements.paragraph, self.notes()),
            sortable_table(result.columns(), elements.MAX_ROWS),
        ]

    def draw(self, ax: Axes) -> None:
        """Draw one line per mechanism, and the lower bound."""
        result = self.result
        for i, name in enumerate(result.names):
            rows = [row for row in result.mechanisms if row.name == name]
            epsilons = [row.epsilon for row in rows]
            marker = "osD^v<>ph"[i % 9]
            ax.plot(epsilons, [row.variance for row in rows], marker=marker, ms=5, label=name)
        first = [row for row in result.mechanisms if row.name == result.names[0]]
        label = "lower bound"
        beside = [row for row in result.mechanisms if row.epsilon == first[0].epsilon]
        if len({round(row.per_report, 3) for row in beside}) > 1:
            label += f" for the ε per report of {result.names[0]}"
        bound = [row.bound for row in first]
        ax.plot([row.epsilon for row in first], bound, color=plots.TRUTH, ls="--", label=label)
        ax.set_yscale("log")
        ax.set_xlabel("ε per report" if result.collect == "once" else "ε in total")
        ax.set_ylabel("variance × number of clients")
        ax.grid(which="major", lw=0.4, color=LIGHT["edge"])
        ax.legend(fontsize=8)
        plots.title(ax, f"{result.question}, collected {result.collect}")
