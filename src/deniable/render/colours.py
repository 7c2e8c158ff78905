"""The colours of plots and of charts that are saved as files: those of the pages.

`html/static/colours.css` defines every colour once, for light and for dark pages.
"""

from __future__ import annotations

import re
from typing import Final

from deniable.render.html.static_files import static

LINES = 6
"""Number of different colours of lines."""
STEPS = 4
"""Steps of a heat map in each direction: 1 standard error each, the last one open."""


def _defined(text: str) -> dict[str, str]:
    """Return the variables of a style sheet: name → colour."""
    return dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", text))


_light, _dark = static("colours.css").split("@media")
LIGHT: Final = _defined(_light)
"""Colours on a white page, and of plots."""
DARK: Final = _defined(_dark)
"""Colours on a dark page."""
SERIES: Final = [LIGHT[f"s{i}"] for i in range(LINES)]
"""Colours of lines."""
DIVERGING: Final = [
    *(LIGHT[f"less{step}"] for step in range(STEPS, 0, -1)),
    LIGHT["none"],
    *(LIGHT[f"more{step}"] for step in range(1, STEPS + 1)),
]
"""Colours of a heat map, from much less to much more than expected."""


def in_light(style: str) -> str:
    """Return a style sheet with the colours of a white page instead of variables.

    >>> in_light("circle { fill: var(--paper); }")
    'circle { fill: #ffffff; }'
    """
    return re.sub(r"var\(--(\w+)\)", lambda found: LIGHT[found[1]], style)
