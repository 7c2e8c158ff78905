"""Files of the pages: styles, scripts, HTML, and the browser client."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import Path

CLIENT = "deniable.js"


@cache
def static(name: str) -> str:
    """Return the text of a file in `static/`.

    The browser client is kept in `clients/js`; a wheel has a copy in `static/`.
    """
    path = files("deniable.render.html") / "static" / name
    if name == CLIENT and not path.is_file():
        return (Path(__file__).parents[4] / "clients" / "js" / CLIENT).read_text(encoding="utf-8")
    return path.read_text(encoding="utf-8")
