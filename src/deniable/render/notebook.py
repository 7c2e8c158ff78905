"""Pictures of results in notebooks: a chart, and the style of the chart and the table.

A notebook has its own theme, light or dark, which need not be that of the browser. The style
therefore uses the notebook's text colour, and colours that can be read on both.
"""

from __future__ import annotations

from deniable.formatting import TextTable
from deniable.render.colours import DARK, LIGHT, LINES
from deniable.render.html.static_files import static
from deniable.render.svg_marks import WIDE
from deniable.render.view import view_of
from deniable.results import Result

USED = {
    **{name: name for name in ("sure", "unsure", "truth", *(f"s{i}" for i in range(LINES)))},
    "more": "more3",
    "less": "less3",
}
"""Variables of `notebook.css` and `chart.css`, and the colours of pages that they come from."""


def style() -> str:
    """Return the style of results, as an element."""
    colours = "".join(f"--{name}: {_between(colour)}; " for name, colour in USED.items())
    charts = static("chart.css")
    return f"<style>{static('notebook.css')}.deniable-result {{ {colours}{charts} }}</style>"


def _between(name: str) -> str:
    """Return the colour half way between those of light and of dark pages."""
    pairs = zip(bytes.fromhex(LIGHT[name][1:]), bytes.fromhex(DARK[name][1:]), strict=True)
    return "#" + bytes((light + dark) // 2 for light, dark in pairs).hex()


def picture(result: Result) -> str:
    """Return the chart of a result, to be shown before its table; empty if it has none."""
    chart = view_of(result).chart(WIDE)
    return chart and f'<div class="chart">{chart}</div>'


def table(result: Result) -> TextTable:
    """Return the table of a result with all rows that the picture shows."""
    return view_of(result).table()
