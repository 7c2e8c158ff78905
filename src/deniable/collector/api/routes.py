"""Every route but the upload itself: surveys for clients, reports for analysts, health; jobs and
pages have files of their own.

A route that reads results is wrapped in `require("analyst")`; nothing else decides who may what.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import date
from importlib.resources import files
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.concurrency import iterate_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from deniable.collector import metrics
from deniable.collector.api import page_routes
from deniable.collector.api.guards import collector_of, refusal, require, shared
from deniable.collector.api.problems import (
    BAD_QUERY,
    BUSY,
    FAILED,
    UNAVAILABLE,
    UNKNOWN_SURVEY,
    Problem,
    of_status,
)
from deniable.collector.ingest.body import soon
from deniable.collector.ingest.upload_route import log
from deniable.collector.jobs import job_routes
from deniable.columns.wire import to_wire
from deniable.errors import StoreError

if TYPE_CHECKING:
    from deniable.collector.app import Collector
    from deniable.survey import Survey

EXPORTS = 2
"""Exports that may run at once."""
EXPORT_ROWS = 1 << 16


# --- for clients ------------------------------------------------------------------------------


@shared
async def surveys(request: Request) -> Response:
    """Every survey that is collected."""
    collector = collector_of(request)
    content = [
        {
            "name": s.name, "version": s.version, "digest": s.digest.hex(),
            "expires": s.expires.isoformat(),
        }
        for s in collector.catalogue.all()
    ]  # fmt: skip
    headers = {"cache-control": f"public, max-age={collector.settings.cache}"}
    return JSONResponse(content, headers=headers)


@shared
async def survey(request: Request) -> Response:
    """A published survey, byte for byte: its newest version, or the one asked for."""
    collector = collector_of(request)
    found = collector.catalogue.find(
        request.path_params["name"], request.path_params.get("version")
    )
    tag = f'"{found.digest.hex()}"'
    headers = {"etag": tag, "cache-control": f"public, max-age={collector.settings.cache}"}
    known = request.headers.get("if-none-match", "")
    if known.strip() == "*" or tag in [t.strip().removeprefix("W/") for t in known.split(",")]:
        return Response(status_code=304, headers=headers)
    return Response(found.canonical + b"\n", media_type="application/json", headers=headers)


# --- for analysts -----------------------------------------------------------------------------


@require("analyst")
async def counts(request: Request) -> Response:
    """How many reports there are of each version and day."""
    collector = collector_of(request)
    versions = await asyncio.to_thread(_kept, collector, request.path_params["name"])
    days = [await asyncio.to_thread(collector.store.days, s) for s in versions]
    content = [
        {
            "version": s.version, "digest": s.digest.hex(),
            "days": {day.isoformat(): n for day, n in found.items()},
        }
        for s, found in zip(versions, days, strict=True)
    ]  # fmt: skip
    return JSONResponse(content, headers={"cache-control": "no-store"})


@require("analyst")
async def reports(request: Request) -> Response:
    """All reports of one version, or those of some days, as wire batches one after another."""
    collector = collector_of(request)
    since, until = (_day(request, name) for name in ("since", "until"))
    kept = await asyncio.to_thread(_kept, collector, request.path_params["name"])
    chosen = [s for s in kept if s.version == request.path_params["version"]]
    if not chosen:
        raise Problem(UNKNOWN_SURVEY, "the store has no survey of this version")
    running = request.app.state.exports
    if running.locked():
        raise Problem(BUSY, f"{EXPORTS} exports are running: try again later", soon())

    def stream() -> Iterator[bytes]:
        for batch in collector.store.scan(chosen[0], since=since, until=until, rows=EXPORT_ROWS):
            yield to_wire(batch)

    async def content() -> AsyncIterator[bytes]:
        async with running:
            async for chunk in iterate_in_threadpool(stream()):
                yield chunk

    headers = {"cache-control": "no-store"}
    return StreamingResponse(content(), media_type="application/octet-stream", headers=headers)


def _kept(collector: Collector, name: str) -> list[Survey]:
    """Every version of the survey in the store, collected now or not."""
    found = [s for s in collector.store.surveys() if s.name == name]
    if not found:
        raise Problem(UNKNOWN_SURVEY, f"the store has no survey {name!r}")
    return found


def _day(request: Request, name: str) -> date | None:
    if (text := request.query_params.get(name)) is None:
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise Problem(BAD_QUERY, f"expected {name} as YYYY-MM-DD, got {text!r:.40}") from None


# --- for whoever operates it ------------------------------------------------------------------


async def healthz(request: Request) -> Response:
    """The process answers."""
    return JSONResponse({"status": "ok"}, headers={"cache-control": "no-store"})


async def readyz(request: Request) -> Response:
    """Whether an upload would be taken now."""
    trouble = await asyncio.to_thread(collector_of(request).trouble)
    if trouble is not None:
        raise Problem(UNAVAILABLE, trouble, soon())
    return JSONResponse({"status": "ready"}, headers={"cache-control": "no-store"})


async def prometheus(request: Request) -> Response:
    """Counters and gauges."""
    collector = collector_of(request)
    text = collector.metrics.text(collector.gauges())
    return Response(text, headers={"content-type": metrics.CONTENT_TYPE})


async def openapi(request: Request) -> Response:
    """This interface, described by hand; a test ties it to the routes."""
    text = files("deniable.collector").joinpath("openapi.json").read_bytes()
    return Response(text, media_type="application/json")


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
    *page_routes.ROUTES,
]


def application(collector: Collector) -> Starlette:
    """The routes, with every refusal and failure as a problem."""
    app = Starlette(
        routes=ROUTES,
        exception_handlers={
            Problem: _refused, HTTPException: _http, StoreError: _no_store, Exception: _failed,
        },
    )  # fmt: skip
    app.state.collector = collector
    app.state.exports = asyncio.Semaphore(EXPORTS)
    return app


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Problem)
    return refusal(error)


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    response = refusal(Problem(of_status(error.status_code), str(error.detail)))
    response.headers.update(error.headers or {})
    return response


async def _no_store(request: Request, error: Exception) -> Response:
    return refusal(Problem(UNAVAILABLE, "the store cannot be reached: try again later", soon()))


async def _failed(request: Request, error: Exception) -> Response:
    log.error("a request failed: %s", type(error).__name__)
    return refusal(Problem(FAILED, "this is our mistake: try again later", soon()))
