"""The routes of jobs, for analysts: start, look at, cancel, and fetch what came out."""

from __future__ import annotations

import asyncio

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from deniable.collector.api.guards import NO_STORE, analyst_only, collector_of
from deniable.collector.api.problems import BAD_JOB, NOT_FOUND, Problem
from deniable.collector.ingest.body import Disconnected
from deniable.collector.jobs.requests import JobRequest

FORMS = {
    "json": "application/json",
    "csv": "text/csv; charset=utf-8",
    "html": "text/html; charset=utf-8",
}
HARMLESS = {
    **NO_STORE,
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'; sandbox",
    "x-content-type-options": "nosniff",
}
"""Decoded strings are hostile input: an answer made of them is never a page of this origin."""


# One route a path, so that a refused method is told all that are taken.


@analyst_only
async def jobs(request: Request) -> Response:
    """List all jobs that are kept, the newest first, or start a new one."""
    if request.method == "POST":
        return await _start(request)
    content = [job.shown() for job in collector_of(request).jobs.all()]
    return JSONResponse(content, headers=NO_STORE)


@analyst_only
async def job(request: Request) -> Response:
    """Tell how far a job is; or cancel one that runs, forget one that has ended."""
    jobs, id = collector_of(request).jobs, request.path_params["id"]
    if request.method == "DELETE":
        jobs.remove(id)
        return Response(status_code=204, headers=NO_STORE)
    return JSONResponse(jobs.get(id).shown(), headers=NO_STORE)


async def _start(request: Request) -> Response:
    """Start a job."""
    collector = collector_of(request)
    with collector.incoming(request.receive) as incoming:
        try:
            asked = JobRequest.read(await incoming.read())
        except Disconnected:
            raise Problem(BAD_JOB, "the body ended too early") from None
    survey = (await asyncio.to_thread(collector.kept, asked.survey, asked.version))[-1]
    job = await asyncio.to_thread(collector.jobs.start, asked, collector.settings.store, survey)
    headers = {**NO_STORE, "location": f"/v1/jobs/{job.id}"}
    return JSONResponse(job.shown(), status_code=202, headers=headers)


@analyst_only
async def section(request: Request) -> Response:
    """The result as a part of a page."""
    text = collector_of(request).jobs.get(request.path_params["id"]).result("section")
    return Response(text, media_type="text/html", headers=HARMLESS)


@analyst_only
async def download(request: Request) -> Response:
    """The result as a file."""
    found = collector_of(request).jobs.get(request.path_params["id"])
    form = request.path_params["form"]
    if form not in FORMS:
        raise Problem(NOT_FOUND, f"expected a result as {', '.join(FORMS)}; got {form!r:.40}")
    name = f"{found.request.verb}-{'-'.join(found.request.questions)}.{form}"
    headers = {**HARMLESS, "content-disposition": f'attachment; filename="{name}"'}
    return Response(found.result(form), media_type=FORMS[form], headers=headers)


ROUTES = [
    Route("/v1/jobs", jobs, methods=["GET", "POST"]),
    Route("/v1/jobs/{id}", job, methods=["GET", "DELETE"]),
    Route("/v1/jobs/{id}/result", section),
    Route("/v1/jobs/{id}/result.{form}", download),
]
