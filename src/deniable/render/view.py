"""Views: how a result is shown as text, as a plot, and as a section of a page.

Each class of results has one view, a class in `views/` that registers itself with `shows`. Results
of other classes are shown as plain tables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from deniable.errors import InputError
from deniable.formatting import TextTable
from deniable.render import elements
from deniable.render.svg_marks import Layout
from deniable.results import Result, Trend
from deniable.survey import Survey

if TYPE_CHECKING:
    from matplotlib.axes import Axes

R = TypeVar("R", bound=Result)
V = TypeVar("V", bound="type[View[Any]]")
Truth = Mapping[str, Mapping[str, float]]
"""True shares of a simulated crowd: question → value → share."""


@dataclass(frozen=True)
class Shares:
    """Values to draw, one row each.

    Parameters
    ----------
    names
        The values.
    estimate, low, high
        Estimated shares of clients, with the ends of their 95% confidence intervals.
    detected
        Whether each value is drawn as detected.
    threshold
        Detection threshold.
    truth
        True shares, where they are known.
    whom
        Whom the shares are shares of.
    """

    names: Sequence[str]
    estimate: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]
    detected: Sequence[bool]
    threshold: float
    truth: Sequence[float] | None = None
    whom: str = "clients"


class View(Generic[R]):
    """Shows a result; subclasses show results of one class in a better way.

    Parameters
    ----------
    result : Result
        Result to show.

    Examples
    --------
    >>> from deniable import plan
    >>> view = view_of(plan(clients=100_000, epsilon=4.0, kind="boolean"))
    >>> view.table().names
    ['epsilon', 'clients', 'threshold']
    """

    _types: ClassVar[dict[type[Result], type[View[Any]]]] = {}
    """Views by the class of their results."""

    def __init__(self, result: R) -> None:
        self.result = result

    # --- as text ---------------------------------------------------------------------------------

    def table(self) -> TextTable:
        """Return the table for a terminal.

        Returns
        -------
        TextTable
            The columns of the result, with shares in per cent.
        """
        return TextTable.readable(self.result.columns())

    def notes(self, *, test: str = "score", stages: bool = False) -> list[str]:
        """Return the notes below the table.

        Parameters
        ----------
        test : str, default "score"
            Method of the test of independence of two questions.
        stages : bool, default False
            Whether to list the stages of a discovery.

        Returns
        -------
        list of str
            One line each.
        """
        return []

    # --- as a plot -------------------------------------------------------------------------------

    def figure_size(self, most: int, graph: bool) -> tuple[float, float]:
        """Return the size of a new figure.

        Parameters
        ----------
        most : int
            Maximum number of values that are drawn.
        graph : bool
            Whether the graph of n-grams is drawn.

        Returns
        -------
        tuple of float
            Width and height in inches.
        """
        return 6.4, 4.4

    def draw(self, ax: Axes, *args: Any, **options: Any) -> None:
        """Draw the result.

        Parameters
        ----------
        ax : matplotlib.axes.Axes
            Axes to draw on.
        *args, **options
            Options of a subclass.

        Raises
        ------
        InputError
            If results of this class have no plot.
        """
        raise InputError(f"a {type(self.result).__name__} has no plot")

    def draw_trend(self, trend: Trend[R], ax: Axes, most: int) -> None:
        """Draw a trend whose first part is this result.

        Parameters
        ----------
        trend : Trend
            Trend to draw.
        ax : matplotlib.axes.Axes
            Axes to draw on.
        most : int
            Maximum number of lines.

        Raises
        ------
        InputError
            If trends of such results have no plot.
        """
        kind = type(self.result).__name__
        raise InputError(f"a trend of {kind} results has no plot: plot its parts")

    # --- on a page -------------------------------------------------------------------------------

    def section(self, survey: Survey | None = None, truth: Truth | None = None) -> str:
        """Return the result as a section of a page.

        Parameters
        ----------
        survey : Survey, optional
            Survey of the reports; adds how many malicious clients could change a result.
        truth : mapping, optional
            True shares of a simulated crowd: question → value → share.

        Returns
        -------
        str
            HTML.
        """
        return elements.section(self.body(survey, truth), self.result)

    def chart(self, layout: Layout, truth: Truth | None = None) -> str:
        """Return the chart of the section.

        Parameters
        ----------
        layout : Layout
            Size of the chart.
        truth : mapping, optional
            True shares of a simulated crowd.

        Returns
        -------
        str
            SVG; empty if the result has no chart.
        """
        return ""

    def body(self, survey: Survey | None, truth: Truth | None) -> list[str]:
        """Return the elements of the section: text, chart and table.

        Parameters
        ----------
        survey : Survey or None
            Survey of the reports.
        truth : mapping or None
            True shares of a simulated crowd.

        Returns
        -------
        list of str
            HTML elements.
        """
        return [elements.table(self.result)]

    def trend_notes(self, trend: Trend[R]) -> list[str]:
        """Return the notes below the table of a trend whose first part is this result.

        Parameters
        ----------
        trend : Trend
            The trend.

        Returns
        -------
        list of str
            One line each.
        """
        return []

    def trend_chart(self, trend: Trend[R], layout: Layout) -> str:
        """Return the chart of a trend whose first part is this result.

        Parameters
        ----------
        trend : Trend
            Trend to draw.
        layout : Layout
            Size of the chart.

        Returns
        -------
        str
            SVG; empty if such trends have no chart.
        """
        return ""

    def trend_section(self, trend: Trend[R], survey: Survey | None) -> str:
        """Return a trend whose first part is this result: one section per period.

        Parameters
        ----------
        trend : Trend
            Trend to show.
        survey : Survey or None
            Survey of the reports.

        Returns
        -------
        str
            HTML.
        """
        return "".join(
            elements.title(f"{trend.by.capitalize()} of {period}") + view_of(part).section(survey)
            for period, part in zip(trend.periods, trend.parts, strict=True)
        )


_MODULES = {
    "Discovery": "values_view",
    "Histogram": "histogram_view",
    "Joint": "joint_view",
    "Marginal": "values_view",
    "Plan": "plan_view",
    "Trend": "trend_view",
}
"""Modules of `views` that register a view of a class of results when they are imported."""


def shows(kind: type[Result]) -> Callable[[V], V]:
    """Return a decorator that registers a class as the view of a class of results.

    Parameters
    ----------
    kind : type
        Class of results.

    Returns
    -------
    callable
        The decorator.

    Examples
    --------
    >>> from deniable.results import Plan
    >>> @shows(Plan)  # doctest: +SKIP
    ... class MyPlanView(View[Plan]):
    ...     def notes(self, **options):
    ...         return ["Ask the statistician first."]
    """

    def register(view: V) -> V:
        View._types[kind] = view
        return view

    return register


def view_of(result: R) -> View[R]:
    """Return the view of a result.

    Parameters
    ----------
    result : Result
        Result to show.

    Returns
    -------
    View
        The view that is registered for its class, or a plain one.

    Examples
    --------
    >>> from deniable import plan
    >>> type(view_of(plan(clients=100_000, epsilon=4.0, kind="boolean"))).__name__
    'PlanView'
    """
    kind = type(result)
    if kind not in View._types and kind.__name__ in _MODULES:
        import_module(f"deniable.render.views.{_MODULES[kind.__name__]}")
    return View._types.get(kind, View)(result)
