"""Files that come with the package: styles, scripts, pages, and the browser client itself."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import Path

CLIENT = "deniable.js"


@cache
def static(name: str) -> str:
    """The text of a file in `static/`.

    The browser client has one copy, in `clients/js`; building a wheel puts it beside the others.
    """
    found = files("deniable.render.html") / "static" / name
    if name == CLIENT and not found.is_file():
        return (Path(__file__).parents[4] / "clients" / "js" / CLIENT).read_text(encoding="utf-8")
    return found.read_text(encoding="utf-8")
