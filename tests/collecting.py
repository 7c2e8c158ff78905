"""A collector in this process, called through ASGI."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import httpx

from deniable.collector.app import Collector
from deniable.collector.settings import Settings
from tests import gateway
from tests.faults.crowd import SURVEY

T = TypeVar("T")
Scenario = Callable[[Collector, httpx.AsyncClient], Awaitable[T]]


def settings(folder: Path, **changed: Any) -> Settings:
    """A store, the numbered survey and a gateway key in this folder; no upkeep unless asked for."""
    SURVEY.publish(folder / "survey.json")
    changed.setdefault("keys", str(folder / "keys.json"))
    if changed["keys"]:
        gateway.add_to(Path(changed["keys"]))
    given = {
        "store": f"sqlite:///{folder / 'reports.db'}", "surveys": (str(folder / "survey.json"),),
        "compact": 86_400, "log": 0, "reserve": 0,
    }  # fmt: skip
    return Settings(**given | changed)


def collect(folder: Path, scenario: Scenario[T], **changed: Any) -> T:
    """Start a collector, play the scenario, stop it."""

    async def run() -> T:
        async with Collector(settings(folder, **changed)) as collector:
            transport = httpx.ASGITransport(app=collector)  # type: ignore[arg-type]
            async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
                return await scenario(collector, client)

    return asyncio.run(run())


async def upload(
    client: httpx.AsyncClient, body: bytes, key: str | None = None, **headers: str
) -> httpx.Response:
    """POST the body; keywords are headers, with _ for -."""
    sent = {
        "content-type": "application/octet-stream",
        "idempotency-key": secrets.token_hex(16) if key is None else key,
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    return await client.post("/v1/reports", content=body, headers=sent)
