"""Who may call a route, and how it is refused: every route but the upload is wrapped here."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response

from deniable.collector.api.problems import Problem, problem_of
from deniable.collector.ingest.upload_route import bearer, preflight

if TYPE_CHECKING:
    from deniable.collector.app import Collector

Endpoint = Callable[[Request], Awaitable[Response]]

READ_METHODS = "GET, HEAD, OPTIONS"
NO_STORE = {"cache-control": "no-store"}


def analyst_only(endpoint: Endpoint) -> Endpoint:
    """Let a route be called only with an analyst token."""

    @wraps(endpoint)
    async def guarded(request: Request) -> Response:
        token = bearer(request.headers.get("authorization", ""))
        collector_of(request).keyring.demand(token, "analyst")
        return await endpoint(request)

    guarded.role = "analyst"  # type: ignore[attr-defined]
    return guarded


def shared(endpoint: Endpoint) -> Endpoint:
    """Let pages of other origins call a route, and read its refusals."""

    @wraps(endpoint)
    async def answered(request: Request) -> Response:
        origin = collector_of(request).settings.cors
        if request.method == "OPTIONS":
            return Response(status_code=204, headers=preflight(origin, READ_METHODS))
        try:
            response = await endpoint(request)
        except Problem as problem:
            response = await refuse(request, problem)
        if origin:
            response.headers["access-control-allow-origin"] = origin
            response.headers["access-control-expose-headers"] = "etag"
        return response

    return answered


def collector_of(request: Request) -> Collector:
    """Return the collector that serves this request."""
    collector: Collector = request.app.state.collector
    return collector


async def refuse(request: Request, error: Exception) -> Response:
    """Answer a request that was refused, or that failed."""
    problem = problem_of(error)
    return Response(problem.body(), status_code=problem.status, headers=problem.headers)
