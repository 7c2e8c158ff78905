"""Parts of charts as SVG text: marks, shapes, axes; without scripts and styles.

Colours are classes of `static/chart.css`, for light, dark and print. Every mark carries its numbers
as a <title> and can be reached by keyboard. Labels are decoded strings, which may be hostile: all
text is escaped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from deniable.formatting import html_text
from deniable.render.colours import LIGHT, in_light
from deniable.render.html.static_files import static


@dataclass(frozen=True)
class Layout:
    """The size of a chart, in user units, which are pixels unless the page scales the chart.

    width : width of the chart; label : width of the labels on its left, 0 if labels stand above
    their rows; longest : maximum number of characters of a label
    """

    width: float
    label: float
    longest: int

    @property
    def narrow(self) -> bool:
        """Whether labels stand above their rows."""
        return not self.label


WIDE = Layout(740, 190, 24)
NARROW = Layout(360, 0, 40)
"""For windows that are too narrow for `WIDE`, such as those of phones."""
Chart = Callable[[Layout], str]
"""Draws a chart as SVG for a layout."""


def frame(width: float, height: float, text: str, body: Sequence[str]) -> str:
    """Return an SVG image with its alternative text.

    It is scaled to the width of the page; one that is wider than every layout keeps its size.
    """
    size = f' width="{width:.0f}" height="{height:.0f}"'
    return (
        f'<svg viewBox="0 0 {width:.0f} {height:.0f}"'
        f'{size if width not in (WIDE.width, NARROW.width) else ""} role="img" '
        f'aria-label="{html_text(text)}" xmlns="http://www.w3.org/2000/svg">{"".join(body)}</svg>'
    )


def responsive(chart: Chart) -> str:
    """Return a chart for pages, drawn for wide and for narrow windows; the style hides one.

    If there is nothing to draw, the text is empty.
    """
    if not (wide := chart(WIDE)):
        return ""
    parts = f'<div class="wide">{wide}</div><div class="narrow">{chart(NARROW)}</div>'
    return f'<div class="chart">{parts}</div>'


def standalone(chart: str) -> str:
    """Return a chart as a file of its own, with its style and a white background."""
    head, body = chart.split(">", 1)
    background = f'<rect width="100%" height="100%" fill="{LIGHT["paper"]}"/>'
    return f"{head}><style>{in_light(static('chart.css'))}</style>{background}{body}\n"


def mark(title: str, body: str) -> str:
    """Return a mark whose title is shown when it is pointed at or reached by keyboard."""
    return f'<g class="mark" tabindex="0"><title>{html_text(title)}</title>{body}</g>'


def shape(name: str, kind: str, **places: float) -> str:
    """Return an element with its class and coordinates."""
    where = "".join(f' {key}="{value:.1f}"' for key, value in places.items())
    return f'<{name} class="{kind}"{where}/>'


def text(x: float, y: float, content: str, kind: str = "", anchor: str = "start") -> str:
    """Return escaped text at a position."""
    place = f'x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}"'
    return f"<text {place}>{html_text(content)}</text>"


def text_within(x: float, y: float, content: str, ends: tuple[float, float]) -> str:
    """Return small text, centred at x unless it would leave the range `ends`."""
    half = 3.2 * len(content)  # a character is about 6.4 wide
    if x - half < ends[0]:
        return text(ends[0], y, content, "small", "start")
    if x + half > ends[1]:
        return text(ends[1], y, content, "small", "end")
    return text(x, y, content, "small", "middle")


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Return round numbers from low to high.

    >>> ticks(0, 1)
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    """
    span = max(high - low, 1e-12)
    raw = span / count
    power = 10.0 ** math.floor(math.log10(raw))
    step = power * next(m for m in (1, 2, 5, 10) if m * power >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(i * step, 15) + 0.0 for i in range(first, last + 1)]


def tick_label(share: float) -> str:
    """Return the label of a tick.

    >>> tick_label(0.07), tick_label(0.0)
    ('7%', '0%')
    """
    return f"{100 * share:g}%"
