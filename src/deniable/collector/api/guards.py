"""Decorators and helpers of all routes except uploads: access, CORS and refusals."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response

from deniable.collector.api.problems import Problem, to_problem
from deniable.collector.ingest.upload_route import bearer, preflight

if TYPE_CHECKING:
    from deniable.collector.app import Collector

Endpoint = Callable[[Request], Awaitable[Response]]

READ_METHODS = "GET, HEAD, OPTIONS"
NO_STORE = {"cache-control": "no-store"}


def analyst_only(endpoint: Endpoint) -> Endpoint:
    """Require an analyst key for a route."""

    @wraps(endpoint)
    async def guarded(request: Request) -> Response:
        token = bearer(request.headers.get("authorization", ""))
        collector_of(request).keyring.authorise(token, "analyst")
        return await endpoint(request)

    guarded.role = "analyst"  # type: ignore[attr-defined]
    return guarded


def cross_origin(endpoint: Endpoint) -> Endpoint:
    """Allow pages of other origins to call a route and to read its refusals."""

    @wraps(endpoint)
    async def with_cors_headers(request: Request) -> Response:
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

    return with_cors_headers


def collector_of(request: Request) -> Collector:
    """Return the collector that serves a request."""
    collector: Collector = request.app.state.collector
    return collector


async def refuse(request: Request, error: Exception) -> Response:
    """Answer a request that was refused or failed."""
    problem = to_problem(error)
    return Response(problem.body(), status_code=problem.status, headers=problem.headers)
