"""The pages: static files, the same for everybody. Whatever they show is asked for by their script,
with the token that a person types in."""

from __future__ import annotations

from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from deniable.collector.api.problems import NOT_FOUND, Problem
from deniable.render.html.static_files import CLIENT, static

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
KINDS = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
FOLDER = files("deniable.render.html") / "static"
FILES = {CLIENT} | {f.name for f in FOLDER.iterdir() if f.name.rpartition(".")[2] in KINDS}


async def analyst(request: Request) -> Response:
    """Serve the analyst's page; its data needs a token."""
    return Response(static("analyst.html"), media_type="text/html", headers=HEADERS)


async def try_it(request: Request) -> Response:
    """Serve the page on which anybody can try it; nothing leaves it."""
    return Response(static("try.html"), media_type="text/html", headers=HEADERS)


async def file(request: Request) -> Response:
    """Serve a file of the pages."""
    name = request.path_params["name"]
    if name not in FILES:
        raise Problem(NOT_FOUND, f"no page has a file {name!r:.40}")
    return Response(static(name), media_type=KINDS[name.rpartition(".")[2]], headers=HEADERS)


ROUTES = [Route("/", analyst), Route("/try", try_it), Route("/static/{name}", file)]
