"""Pictures of results in notebooks: a chart, and the style of the chart and the table.

A notebook has its own theme, light or dark, which need not be that of the browser. The style
therefore uses the notebook's text colour, and colours that can be read on both.
"""

from __future__ import annotations

from deniable.render.html.static_files import static
from deniable.render.svg_marks import WIDE
from deniable.render.view import view_of
from deniable.results import Result


def style() -> str:
    """Return the style of results, as an element."""
    charts = static("chart.css")
    return f"<style>{static('notebook.css')}.deniable-result {{ {charts} }}</style>"


def picture(result: Result) -> str:
    """Return the chart of a result, to be shown before its table; empty if it has none."""
    return view_of(result).chart(WIDE)
