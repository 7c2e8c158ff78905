"""The pages: static files, the same for everybody. Whatever they show is asked for by their script,
with the token that a person types in."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from deniable.collector.api.problems import NOT_FOUND, Problem
from deniable.render.html.static_files import static

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-cache",
}
KINDS = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
FILES = (
    "analyst.js", "answers.js", "api.js", "asking.js", "charts.js", "crowd.js", "deniable.js",
    "icon.svg", "page.css", "report.js", "sections.js", "style.css", "surveys.js", "try.js",
)  # fmt: skip


async def analyst(request: Request) -> Response:
    """The analyst's page; its data needs a token."""
    return _file("analyst.html")


async def try_it(request: Request) -> Response:
    """The page on which anybody can try it; nothing leaves it."""
    return _file("try.html")


async def file(request: Request) -> Response:
    """A file of the pages."""
    name = request.path_params["name"]
    if name not in FILES:
        raise Problem(NOT_FOUND, f"no page has a file {name!r:.40}")
    return _file(name)


def _file(name: str) -> Response:
    return Response(static(name), media_type=KINDS[name.rpartition(".")[2]], headers=HEADERS)


ROUTES = [
    Route("/", analyst),
    Route("/try", try_it),
    Route("/static/{name}", file),
]
