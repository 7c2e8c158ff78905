"""Every route but uploads and jobs: surveys for clients, reports for analysts, health, and pages.

A route that reads results is wrapped in `analyst_only`; nothing else decides who may what.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import date
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.concurrency import iterate_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from deniable.collector.api.guards import NO_STORE, analyst_only, collector_of, refuse, shared
from deniable.collector.api.problems import BAD_QUERY, BUSY, NOT_FOUND, UNAVAILABLE, Problem
from deniable.collector.jobs import job_routes
from deniable.columns.batch import to_wire
from deniable.errors import StoreError
from deniable.render.html.static_files import CLIENT, static

if TYPE_CHECKING:
    from deniable.collector.app import Collector
    from deniable.survey import Survey

MAX_EXPORTS = 2
"""Exports that may run at once."""
EXPORT_ROWS = 1 << 16
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
PAGE_HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-cache",
}
MEDIA_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
STATIC = files("deniable.render.html") / "static"
PAGE_FILES = {CLIENT} | {f.name for f in STATIC.iterdir() if Path(f.name).suffix in MEDIA_TYPES}


# --- for clients ------------------------------------------------------------------------------


@shared
async def surveys(request: Request) -> Response:
    """List every survey that is collected."""
    collector = collector_of(request)
    content = [
        {"name": s.name, **_identity(s), "expires": s.expires.isoformat()}
        for s in collector.catalogue.all()
    ]
    return JSONResponse(content, headers=_cached(collector))


@shared
async def survey(request: Request) -> Response:
    """Serve a published survey, byte for byte: its newest version, or the one asked for."""
    collector, asked = collector_of(request), request.path_params
    found = collector.catalogue.find(asked["name"], asked.get("version"))
    tag = f'"{found.digest.hex()}"'
    headers = {"etag": tag, **_cached(collector)}
    known = request.headers.get("if-none-match", "")
    if known.strip() == "*" or tag in [t.strip().removeprefix("W/") for t in known.split(",")]:
        return Response(status_code=304, headers=headers)
    return Response(found.canonical + b"\n", media_type="application/json", headers=headers)


def _identity(survey: Survey) -> dict[str, object]:
    return {"version": survey.version, "digest": survey.digest.hex()}


def _cached(collector: Collector) -> dict[str, str]:
    return {"cache-control": f"public, max-age={collector.settings.cache}"}


# --- for analysts -----------------------------------------------------------------------------


@analyst_only
async def counts(request: Request) -> Response:
    """Tell how many reports there are of each version and day."""
    collector = collector_of(request)
    content = []
    for s in await asyncio.to_thread(collector.kept, request.path_params["name"]):
        days = await asyncio.to_thread(collector.store.days, s)
        content.append({**_identity(s), "days": {day.isoformat(): n for day, n in days.items()}})
    return JSONResponse(content, headers=NO_STORE)


@analyst_only
async def reports(request: Request) -> Response:
    """Send all reports of one version, or those of some days, as wire batches."""
    collector, asked = collector_of(request), request.path_params
    since, until = (_day(request, name) for name in ("since", "until"))
    (kept,) = await asyncio.to_thread(collector.kept, asked["name"], asked["version"])
    running = request.app.state.exports
    if running.locked():
        raise Problem(BUSY, f"{MAX_EXPORTS} exports are running: try again later")

    def stream() -> Iterator[bytes]:
        for batch in collector.store.scan(kept, since=since, until=until, rows=EXPORT_ROWS):
            yield to_wire(batch)

    async def content() -> AsyncIterator[bytes]:
        async with running:
            async for chunk in iterate_in_threadpool(stream()):
                yield chunk

    return StreamingResponse(content(), media_type="application/octet-stream", headers=NO_STORE)


def _day(request: Request, name: str) -> date | None:
    if (text := request.query_params.get(name)) is None:
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise Problem(BAD_QUERY, f"expected {name} as YYYY-MM-DD, got {text!r:.40}") from None


# --- for whoever operates it ------------------------------------------------------------------


async def healthz(request: Request) -> Response:
    """Answer that the process runs."""
    return JSONResponse({"status": "ok"}, headers=NO_STORE)


async def readyz(request: Request) -> Response:
    """Answer whether an upload would be taken now."""
    trouble = await asyncio.to_thread(collector_of(request).trouble)
    if trouble is not None:
        raise Problem(UNAVAILABLE, trouble)
    return JSONResponse({"status": "ready"}, headers=NO_STORE)


async def prometheus(request: Request) -> Response:
    """Show counters and gauges."""
    collector = collector_of(request)
    text = collector.metrics.text(collector.gauges())
    return Response(text, headers={"content-type": "text/plain; version=0.0.4; charset=utf-8"})


async def openapi(request: Request) -> Response:
    """Describe this interface; it is written by hand, and a test ties it to the routes."""
    text = files("deniable.collector").joinpath("openapi.json").read_bytes()
    return Response(text, media_type="application/json")


# --- pages: static files, whose script asks for data with the token that a person types in --------


async def analyst_page(request: Request) -> Response:
    """Serve the analyst's page; its data needs a token."""
    return Response(static("analyst.html"), media_type="text/html", headers=PAGE_HEADERS)


async def try_page(request: Request) -> Response:
    """Serve the page on which anybody can try it; nothing leaves it."""
    return Response(static("try.html"), media_type="text/html", headers=PAGE_HEADERS)


async def page_file(request: Request) -> Response:
    """Serve a file of the pages."""
    name = request.path_params["name"]
    if name not in PAGE_FILES:
        raise Problem(NOT_FOUND, f"no page has a file {name!r:.40}")
    return Response(static(name), media_type=MEDIA_TYPES[Path(name).suffix], headers=PAGE_HEADERS)


ROUTES = [
    Route("/v1/surveys", surveys, methods=["GET", "OPTIONS"]),
    Route("/v1/surveys/{name}", survey, methods=["GET", "OPTIONS"]),
    Route("/v1/surveys/{name}/counts", counts),
    Route("/v1/surveys/{name}/{version:int}", survey, methods=["GET", "OPTIONS"]),
    Route("/v1/surveys/{name}/{version:int}/reports", reports),
    Route("/healthz", healthz),
    Route("/readyz", readyz),
    Route("/metrics", prometheus),
    Route("/openapi.json", openapi),
    *job_routes.ROUTES,
    Route("/", analyst_page),
    Route("/try", try_page),
    Route("/static/{name}", page_file),
]


def application(collector: Collector) -> Starlette:
    """Return the routes, with every refusal and failure as a problem."""
    refused = dict.fromkeys((Problem, HTTPException, StoreError, Exception), refuse)
    app = Starlette(routes=ROUTES, exception_handlers=refused)
    app.state.collector = collector
    app.state.exports = asyncio.Semaphore(MAX_EXPORTS)
    return app
