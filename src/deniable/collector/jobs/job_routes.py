"""Routes for analysts to start, watch and cancel jobs, and to fetch their results."""

from __future__ import annotations

import asyncio

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from deniable.collector.api.guards import NO_STORE, analyst_only, collector_of
from deniable.collector.api.problems import NOT_FOUND, Problem
from deniable.collector.ingest.body import IncomingBody
from deniable.collector.jobs.requests import JobRequest

RESULT_MEDIA_TYPES = {
    "json": "application/json",
    "csv": "text/csv; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "svg": "image/svg+xml",
}
RESULT_HEADERS = {
    **NO_STORE,
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'; sandbox",
    "x-content-type-options": "nosniff",
}
"""Headers of results: decoded strings are hostile input, so browsers must not run them here."""


# There is one route per path, so that a refusal of a method lists all allowed methods.


@analyst_only
async def jobs(request: Request) -> Response:
    """List all jobs, the newest first, or start a new one."""
    if request.method == "POST":
        return await _start(request)
    content = [job.to_dict() for job in collector_of(request).jobs.all()]
    return JSONResponse(content, headers=NO_STORE)


@analyst_only
async def job(request: Request) -> Response:
    """Return the state of a job; or cancel a running job, or forget one that has ended."""
    jobs, id = collector_of(request).jobs, request.path_params["id"]
    if request.method == "DELETE":
        jobs.remove(id)
        return Response(status_code=204, headers=NO_STORE)
    return JSONResponse(jobs.get(id).to_dict(), headers=NO_STORE)


async def _start(request: Request) -> Response:
    """Start a job."""
    collector = collector_of(request)
    with IncomingBody(request.receive, collector.limits) as incoming:
        job_request = JobRequest.read(await incoming.read())
    job = await asyncio.to_thread(collector.start_job, job_request)
    headers = {**NO_STORE, "location": f"/v1/jobs/{job.id}"}
    return JSONResponse(job.to_dict(), status_code=202, headers=headers)


@analyst_only
async def section(request: Request) -> Response:
    """Return the result as a section of a page."""
    text = collector_of(request).jobs.get(request.path_params["id"]).result("section")
    return Response(text, media_type="text/html", headers=RESULT_HEADERS)


@analyst_only
async def download(request: Request) -> Response:
    """Return the result as a file."""
    job = collector_of(request).jobs.get(request.path_params["id"])
    form = request.path_params["form"]
    if form not in RESULT_MEDIA_TYPES:
        formats = ", ".join(RESULT_MEDIA_TYPES)
        raise Problem(NOT_FOUND, f"results have the formats {formats}; got {form!r:.40}")
    name = f"{job.request.file_name}.{form}"
    headers = {**RESULT_HEADERS, "content-disposition": f'attachment; filename="{name}"'}
    return Response(job.result(form), media_type=RESULT_MEDIA_TYPES[form], headers=headers)


ROUTES = [
    Route("/v1/jobs", jobs, methods=["GET", "POST"]),
    Route("/v1/jobs/{id}", job, methods=["GET", "DELETE"]),
    Route("/v1/jobs/{id}/result", section),
    Route("/v1/jobs/{id}/result.{form}", download),
]
