"""Results, drawn. `result.plot()` comes here."""

from __future__ import annotations

from typing import Any

from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from deniable.errors import InputError
from deniable.render.plots.discovery_plot import draw_discovery, draw_graph
from deniable.render.plots.joint_plot import draw_joint
from deniable.render.plots.marginal_plot import draw_marginal
from deniable.render.plots.plan_plot import draw_plan
from deniable.render.plots.series_plot import draw_series
from deniable.render.plots.trend_plot import draw_trend
from deniable.results import Discovery, Joint, Marginal, Plan, Result, Trend

__all__ = [
    "draw",
    "draw_discovery",
    "draw_graph",
    "draw_joint",
    "draw_marginal",
    "draw_plan",
    "draw_series",
    "draw_trend",
]


def draw(result: Result, ax: Axes | None = None, **options: Any) -> Axes:
    """Draw a result onto axes, or onto new ones of a fitting size."""
    if isinstance(result, Marginal):
        return draw_marginal(
            result, ax or _axes(6.4, 0.24 * _rows(result, options) + 1.4), **options
        )
    if isinstance(result, Joint):
        rows, columns = result.table.shape[0], result.table.shape[-1]
        return draw_joint(result, ax or _axes(0.7 * columns + 2.6, 0.45 * rows + 1.6), **options)
    if isinstance(result, Discovery):
        if options.pop("graph", False):
            return draw_graph(result, ax or _axes(6.4, 4.0))
        rows = min(len(result.strings), int(options.get("most", 30)))
        return draw_discovery(result, ax or _axes(6.4, 0.24 * rows + 1.4), **options)
    if isinstance(result, Plan):
        return draw_plan(result, ax or _axes(6.4, 4.4), **options)
    if isinstance(result, Trend):
        function = draw_trend if result.of_marginals else draw_series
        return function(result, ax or _axes(7.2, 3.6), **options)
    raise InputError(f"there is no picture of a {type(result).__name__}")


def _rows(result: Marginal, options: dict[str, Any]) -> int:
    return min(len(result.estimate), int(options.get("most", 30)))


def _axes(width: float, height: float) -> Axes:
    return plt.subplots(figsize=(width, height), layout="constrained")[1]
