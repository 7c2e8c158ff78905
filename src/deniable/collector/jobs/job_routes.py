"""The routes of jobs, for analysts: start, look at, cancel, and fetch what came out."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from deniable.collector.api.guards import collector_of, require
from deniable.collector.api.problems import BAD_ORDER, NOT_FOUND, UNKNOWN_SURVEY, Problem
from deniable.collector.ingest.body import Disconnected, Incoming
from deniable.collector.jobs.requests import Order

if TYPE_CHECKING:
    from deniable.collector.app import Collector
    from deniable.survey import Survey

FRESH = {"cache-control": "no-store"}
FORMS = {
    "json": "application/json",
    "csv": "text/csv; charset=utf-8",
    "html": "text/html; charset=utf-8",
}
HARMLESS = {
    **FRESH,
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'; sandbox",
    "x-content-type-options": "nosniff",
}
"""Decoded strings are hostile input: an answer made of them is never a page of this origin."""


# One route a path, so that a refused method is told all that are taken.


@require("analyst")
async def jobs(request: Request) -> Response:
    """All jobs, or a new one."""
    return await (_start if request.method == "POST" else _list)(request)


@require("analyst")
async def job(request: Request) -> Response:
    """One job, or its end."""
    return await (_remove if request.method == "DELETE" else _look)(request)


async def _list(request: Request) -> Response:
    """All jobs that are kept, the newest first."""
    found = [job.shown() for job in collector_of(request).jobs.all()]
    return JSONResponse(found, headers=FRESH)


async def _start(request: Request) -> Response:
    """Start a job."""
    collector = collector_of(request)
    incoming = Incoming(request.receive, collector.deadlines, collector.settings.max_body)
    with collector.budget.share() as share:
        try:
            order = Order.read(await incoming.read(share))
        except Disconnected:
            raise Problem(BAD_ORDER, "the body ended too early") from None
    started = await asyncio.to_thread(_begin, collector, order)
    headers = {**FRESH, "location": f"/v1/jobs/{started['id']}"}
    return JSONResponse(started, status_code=202, headers=headers)


def _begin(collector: Collector, order: Order) -> dict[str, object]:
    survey = _survey(collector, order)
    return collector.jobs.start(order, collector.settings.store, survey).shown()


def _survey(collector: Collector, order: Order) -> Survey:
    kept = [s for s in collector.store.surveys() if s.name == order.survey]
    chosen = [s for s in kept if order.version in (None, s.version)]
    if not chosen:
        raise Problem(UNKNOWN_SURVEY, f"the store has no survey {order.survey!r:.80}, or not this")
    return max(chosen, key=lambda s: s.version)


async def _look(request: Request) -> Response:
    """How far a job is."""
    found = collector_of(request).jobs.get(request.path_params["id"])
    return JSONResponse(found.shown(), headers=FRESH)


async def _remove(request: Request) -> Response:
    """Cancel a job that runs; forget one that has ended."""
    collector_of(request).jobs.remove(request.path_params["id"])
    return Response(status_code=204, headers=FRESH)


@require("analyst")
async def section(request: Request) -> Response:
    """The result as a part of a page."""
    text = collector_of(request).jobs.get(request.path_params["id"]).result("section")
    return Response(text, media_type="text/html", headers=HARMLESS)


@require("analyst")
async def download(request: Request) -> Response:
    """The result as a file."""
    found = collector_of(request).jobs.get(request.path_params["id"])
    form = request.path_params["form"]
    if form not in FORMS:
        raise Problem(NOT_FOUND, f"expected a result as {', '.join(FORMS)}; got {form!r:.40}")
    name = f"{found.order.verb}-{'-'.join(found.order.questions)}.{form}"
    headers = {**HARMLESS, "content-disposition": f'attachment; filename="{name}"'}
    return Response(found.result(form), media_type=FORMS[form], headers=headers)


ROUTES = [
    Route("/v1/jobs", jobs, methods=["GET", "POST"]),
    Route("/v1/jobs/{id}", job, methods=["GET", "DELETE"]),
    Route("/v1/jobs/{id}/result", section),
    Route("/v1/jobs/{id}/result.{form}", download),
]
