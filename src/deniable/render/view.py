"""How a result is shown: as text on a terminal, as a plot, and as a section of a page.

Each type of result has one view, a class in `views/` that registers itself with `shows`. Adding a
type of result means adding one such class; whoever shows results asks `view_of` for theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from deniable.errors import InputError
from deniable.formatting import TextTable
from deniable.render import elements
from deniable.results import Result, Trend
from deniable.survey import Survey

if TYPE_CHECKING:
    from matplotlib.axes import Axes

R = TypeVar("R", bound=Result)
V = TypeVar("V", bound="type[View[Any]]")
Truth = Mapping[str, Mapping[str, float]]
"""Of simulated crowds, by question, each value's share."""


@dataclass(frozen=True)
class Shares:
    """Values to draw, one row each: shares of the clients with their 95% intervals.

    detected : whether the value is surely there; truth : its true share, where that is known.
    threshold : the share at which a value is detected half the time.
    """

    names: Sequence[str]
    estimate: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]
    detected: Sequence[bool]
    threshold: float
    truth: Sequence[float] | None = None


@dataclass(frozen=True)
class NoteOptions:
    """What is wanted below a table.

    test : of the independence of two questions; stages : the steps of a discovery
    """

    test: str = "score"
    stages: bool = False


class View(Generic[R]):
    """What every result can do; the views of its types do better."""

    _types: ClassVar[dict[type[Result], type[View[Any]]]] = {}

    def __init__(self, result: R) -> None:
        self.result = result

    # --- as text ---------------------------------------------------------------------------------

    def table(self) -> TextTable:
        """Return the table for a terminal."""
        return TextTable.readable(self.result.columns())

    def notes(self, options: NoteOptions) -> list[str]:
        """Return lines below the table: what it cannot say."""
        return []

    # --- as a plot -------------------------------------------------------------------------------

    def figure_size(self, most: int, graph: bool) -> tuple[float, float]:
        """Return width and height of a figure, in inches, for these options of `draw`."""
        return 6.4, 4.4

    def draw(self, ax: Axes, *args: Any, **options: Any) -> None:
        """Draw onto axes."""
        raise InputError(f"there is no picture of a {type(self.result).__name__}")

    def draw_trend(self, trend: Trend[R], ax: Axes, most: int) -> None:
        """Draw a trend of which this result is one part."""
        kind = type(self.result).__name__
        raise InputError(f"there is no picture of a series of {kind}: draw its parts")

    # --- on a page -------------------------------------------------------------------------------

    def section(self, survey: Survey | None = None, truth: Truth | None = None) -> str:
        """Return the result as HTML. survey : tells how far malicious clients reach."""
        return elements.section(self.body(survey, truth), self.result.provenance)

    def body(self, survey: Survey | None, truth: Truth | None) -> list[str]:
        """Return what a section says in words, the chart, and the numbers behind it."""
        return [elements.table(self.result)]

    def trend_section(self, trend: Trend[R], survey: Survey | None) -> str:
        """Return a trend of which this result is one part: one section per period."""
        return "".join(
            elements.title(f"{trend.by} of {period}") + view_of(part).section(survey)
            for period, part in zip(trend.periods, trend.parts, strict=True)
        )


def shows(kind: type[Result]) -> Callable[[V], V]:
    """Register a class as the view of a type of result."""

    def register(view: V) -> V:
        View._types[kind] = view
        return view

    return register


def view_of(result: R) -> View[R]:
    """Return the view of a result."""
    return View._types.get(type(result), View)(result)
