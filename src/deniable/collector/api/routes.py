"""All routes except uploads and jobs: surveys for clients, reports for analysts, health, pages.

`analyst_only` marks the routes that need an analyst key; nothing else decides about access.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from datetime import date
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.concurrency import iterate_in_threadpool
from starlette.convertors import IntegerConvertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from deniable.collector.api.guards import NO_STORE, analyst_only, collector_of, cross_origin, refuse
from deniable.collector.api.problems import BAD_QUERY, BUSY, NOT_FOUND, UNAVAILABLE, Problem
from deniable.collector.jobs import job_routes
from deniable.collector.logs import log_event
from deniable.columns.batch import to_wire
from deniable.errors import StoreError
from deniable.render.html.static_files import CLIENT, static

if TYPE_CHECKING:
    from deniable.collector.app import Collector
    from deniable.survey import Survey

MAX_EXPORTS = 2
"""Largest number of exports that run at once."""
EXPORT_BATCH_ROWS = 1 << 16
"""Largest number of reports per wire batch of an export."""
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
PAGE_HEADERS = {
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-cache",
}
MEDIA_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
STATIC = files("deniable.render.html") / "static"
PAGE_FILES = {CLIENT} | {f.name for f in STATIC.iterdir() if Path(f.name).suffix in MEDIA_TYPES}


# --- for clients ------------------------------------------------------------------------------


@cross_origin
async def surveys(request: Request) -> Response:
    """List every survey that is collected."""
    collector = collector_of(request)
    content = [
        {"name": s.name, **_identity(s), "expires": s.expires.isoformat()}
        | ({"testing": True} if s.testing else {})
        for s in collector.catalogue.all()
    ]
    return JSONResponse(content, headers=_cache_headers(collector))


@cross_origin
async def published_survey(request: Request) -> Response:
    """Serve a published survey byte for byte: its newest version, or the requested one."""
    collector, params = collector_of(request), request.path_params
    survey = collector.catalogue.find(params["name"], params.get("version"))
    tag = f'"{survey.digest.hex()}"'
    headers = {"etag": tag, **_cache_headers(collector)}
    known = request.headers.get("if-none-match", "")
    if known.strip() == "*" or tag in [t.strip().removeprefix("W/") for t in known.split(",")]:
        return Response(status_code=304, headers=headers)
    return Response(survey.canonical + b"\n", media_type="application/json", headers=headers)


def _identity(survey: Survey) -> dict[str, object]:
    """Return the JSON fields that identify a version of a survey."""
    return {"version": survey.version, "digest": survey.digest.hex()}


def _cache_headers(collector: Collector) -> dict[str, str]:
    """Return headers that allow clients to cache a survey."""
    return {"cache-control": f"public, max-age={collector.settings.cache}"}


# --- for analysts -----------------------------------------------------------------------------


@analyst_only
async def counts(request: Request) -> Response:
    """Return the number of shuffled reports per version and day, and how many are not shuffled."""
    collector = collector_of(request)
    content = []
    for s in await asyncio.to_thread(collector.stored_surveys, request.path_params["name"]):
        days = await asyncio.to_thread(collector.store.days, s)
        content.append(
            {
                **_identity(s),
                "days": {day.isoformat(): n for day, n in days.items()},
                "waiting": await asyncio.to_thread(collector.store.waiting, s),
                **_batches(collector),
            }
        )
    return JSONResponse(content, headers=NO_STORE)


@analyst_only
async def reports(request: Request) -> Response:
    """Send the shuffled reports of one version, from all or some days, as wire batches."""
    collector, params = collector_of(request), request.path_params
    since, until = (_day(request, name) for name in ("since", "until"))
    (survey,) = await asyncio.to_thread(collector.stored_surveys, params["name"], params["version"])
    running = request.app.state.exports
    if running.locked():
        raise Problem(BUSY, f"{MAX_EXPORTS} exports are already running: try again later")

    def stream() -> Iterator[bytes]:
        days = {"since": since, "until": until}
        try:
            snapshot = collector.store.snapshot(survey, **days)
            for batch in snapshot.batches(EXPORT_BATCH_ROWS):
                yield to_wire(batch)
        except StoreError as error:
            log_event("store-damaged", f"an export failed: {error}", logging.ERROR)
            raise

    chunks = stream()
    async with running:  # a missing segment is noticed before the response starts
        first = await asyncio.to_thread(next, chunks, b"")

    async def content() -> AsyncIterator[bytes]:
        async with running:
            yield first
            async for chunk in iterate_in_threadpool(chunks):
                yield chunk

    said = {f"deniable-{name.replace('_', '-')}": str(v) for name, v in _batches(collector).items()}
    headers = {**NO_STORE, **said}
    return StreamingResponse(content(), media_type="application/octet-stream", headers=headers)


def _batches(collector: Collector) -> dict[str, object]:
    """Return the smallest batch of reports that becomes visible at once, and a warning if any."""
    settings = collector.settings
    warning = {"warning": settings.batch_warning} if settings.batch_warning else {}
    return {"minimum_batch": settings.at_least + 1, **warning}


def _day(request: Request, name: str) -> date | None:
    """Return a day of the query string, or None if it is missing."""
    if (text := request.query_params.get(name)) is None:
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise Problem(BAD_QUERY, f"expected {name} as YYYY-MM-DD, got {text!r:.40}") from None


# --- for operators ----------------------------------------------------------------------------


async def healthz(request: Request) -> Response:
    """Confirm that the process is running."""
    return JSONResponse({"status": "ok"}, headers=NO_STORE)


async def readyz(request: Request) -> Response:
    """Return whether uploads are accepted now."""
    reason = await asyncio.to_thread(collector_of(request).reason_not_ready)
    if reason is not None:
        raise Problem(UNAVAILABLE, reason)
    return JSONResponse({"status": "ready"}, headers=NO_STORE)


async def metrics(request: Request) -> Response:
    """Return counters and gauges in Prometheus' text format."""
    collector = collector_of(request)
    text = collector.metrics.text(collector.gauges())
    return Response(text, headers={"content-type": "text/plain; version=0.0.4; charset=utf-8"})


async def openapi(request: Request) -> Response:
    """Return the OpenAPI description; it is hand-written, and a test compares it to the routes."""
    text = files("deniable.collector").joinpath("openapi.json").read_bytes()
    return Response(text, media_type="application/json")


# --- pages: static files, whose script fetches data with the token that the user enters -----------


async def analyst_page(request: Request) -> Response:
    """Serve the page for analysts; its data requires an analyst key."""
    return Response(static("analyst.html"), media_type="text/html", headers=PAGE_HEADERS)


async def try_page(request: Request) -> Response:
    """Serve the demonstration page, which sends nothing."""
    return Response(static("try.html"), media_type="text/html", headers=PAGE_HEADERS)


async def page_file(request: Request) -> Response:
    """Serve a script, style or image of the pages."""
    name = request.path_params["name"]
    if name not in PAGE_FILES:
        raise Problem(NOT_FOUND, f"there is no file {name!r:.40}")
    return Response(static(name), media_type=MEDIA_TYPES[Path(name).suffix], headers=PAGE_HEADERS)


class VersionConvertor(IntegerConvertor):
    """A version in a path; Python refuses to read numbers with thousands of digits."""

    regex = "[0-9]{1,9}"


register_url_convertor("version", VersionConvertor())
ROUTES = [
    Route("/v1/surveys", surveys, methods=["GET", "OPTIONS"]),
    Route("/v1/surveys/{name}", published_survey, methods=["GET", "OPTIONS"]),
    Route("/v1/surveys/{name}/counts", counts),
    Route("/v1/surveys/{name}/{version:version}", published_survey, methods=["GET", "OPTIONS"]),
    Route("/v1/surveys/{name}/{version:version}/reports", reports),
    Route("/healthz", healthz),
    Route("/readyz", readyz),
    Route("/metrics", metrics),
    Route("/openapi.json", openapi),
    *job_routes.ROUTES,
    Route("/", analyst_page),
    Route("/try", try_page),
    Route("/static/{name}", page_file),
]


def application(collector: Collector) -> Starlette:
    """Return the Starlette application, which answers every failure with problem details."""
    handlers = dict.fromkeys((Problem, HTTPException, StoreError, Exception), refuse)
    app = Starlette(routes=ROUTES, exception_handlers=handlers)
    # A redirect would name the host of the request, which the client chose.
    app.router.redirect_slashes = False
    app.state.collector = collector
    app.state.exports = asyncio.Semaphore(MAX_EXPORTS)
    return app
