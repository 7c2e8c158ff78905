"""Cases of the collector: its interface, its answers and its metrics."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx

from tests.golden import freezing
from tests.golden.commands import output, said, write_reports
from tests.golden.crowds import survey, survey_path
from tests.golden.imports import Collector, Settings, scan, to_wire
from tests.golden.registry import case

PROSE = frozenset({"description", "summary", "example", "examples", "title"})
DAY = re.compile(r"\d{4}-\d\d-\d\d")
KEY = "00112233445566778899aabbccddeeff"
Scenario = Callable[[httpx.AsyncClient], Awaitable[Any]]


def collect(folder: Path, scenario: Scenario, **changed: Any) -> Any:
    """Start a collector of the survey in this folder, play the scenario, and stop it."""
    output("check", survey_path("habits"), "-o", folder / "survey.json")
    settings = Settings(
        store=f"sqlite:///{folder / 'collected.db'}",
        surveys=(str(folder / "survey.json"),),
        compact=0,
        log=0,
        reserve=0,
        **changed,
    )

    async def play() -> Any:
        async with Collector(settings) as collector:
            transport = httpx.ASGITransport(app=collector)
            async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
                return await scenario(client)

    return asyncio.run(play())


async def shuffled(folder: Path, call: Awaitable[Any]) -> Any:
    """Compact the collector's store, as its maintenance does, and wait for a call."""
    output("compact", folder / "collected.db", "--at-least", 1, "--keep-keys", 36500)
    return await call


def shape(value: Any) -> Any:
    """Describe JSON by its keys and types; a day that is a key stands for any day."""
    if isinstance(value, dict):
        return {DAY.sub("DAY", key): shape(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [shape(inner) for inner in value[:1]]
    return type(value).__name__


def answer(got: httpx.Response) -> dict[str, Any]:
    """Freeze an answer: its status, its type, the shape of its JSON, and which problem it names."""
    kind = got.headers.get("content-type", "")
    found: dict[str, Any] = {"status": got.status_code, "type": kind}
    if "json" in kind and "openapi" not in str(got.url):
        data = got.json()
        found["json"] = shape(data)
        if "problem" in kind:
            found["problem"] = data["type"]
    return found


def without_prose(value: Any) -> Any:
    """Drop descriptions, titles and examples from an OpenAPI document."""
    if isinstance(value, dict):
        return {
            key: without_prose(inner)
            for key, inner in value.items()
            if key not in PROSE or not isinstance(inner, str)
        }
    if isinstance(value, list):
        return [without_prose(inner) for inner in value]
    return value


@case
def collector_interface(folder: Path) -> Any:
    """Paths, methods, parameters and schemas of the OpenAPI document, and names of metrics."""

    async def scenario(client: httpx.AsyncClient) -> Any:
        document = (await client.get("/openapi.json")).json()
        metrics = (await client.get("/metrics")).text
        return {
            "openapi": without_prose(document),
            "metrics": re.findall(r"^# TYPE (\w+) (\w+)$", metrics, re.MULTILINE),
            "samples": sorted(set(re.findall(r"^(deniable_(?!build)\S*) ", metrics, re.M))),
        }

    return collect(folder, scenario)


@case
def collector_answers(folder: Path) -> Any:
    """Statuses and JSON of the main routes, with good requests and with bad ones."""
    body = write_reports(folder / "batch.dn", "habits", 1, 40).read_bytes()
    other = write_reports(folder / "other.dn", "habits", 2, 30).read_bytes()
    unknown = write_reports(folder / "unknown.dn", "filters", 1, 5).read_bytes()
    keys = ("--keys", folder / "keys.json")
    token = said("keys", "add", "ann", "--role", "analyst", *keys)["token"]
    ingest = said("keys", "add", "phones", "--role", "ingest", *keys)["token"]
    gateway = said("keys", "add", "relay", "--role", "gateway", *keys)["token"]
    analyst = {"authorization": f"Bearer {token}"}
    binary = {
        "content-type": "application/octet-stream",
        "idempotency-key": KEY,
        "authorization": f"Bearer {gateway}",
    }
    name = "/v1/surveys/habits"

    async def scenario(client: httpx.AsyncClient) -> Any:
        async def send(data: bytes, **headers: str) -> httpx.Response:
            sent = binary | {key.replace("_", "-"): value for key, value in headers.items()}
            return await client.post("/v1/reports", content=data, headers=sent)

        async def get(path: str, **headers: str) -> httpx.Response:
            return await client.get(path, headers=headers)

        survey_file = await get(name)
        tag = survey_file.headers["etag"]
        found = {
            "stored": await send(body),
            "repeated": await send(body),
            "key reused": await send(other),
            "second": await send(other, idempotency_key=KEY[::-1]),
            "with a token": await send(unknown, idempotency_key="0" * 32),
            "no key": await send(body, idempotency_key=""),
            "no report": await send(b"none", idempotency_key="1" * 32),
            "cut": await send(body[:-1], idempotency_key="2" * 32),
            "trailing": await send(body + b"x", idempotency_key="3" * 32),
            "wrong type": await send(body, content_type="text/plain"),
            "wrong encoding": await send(body, content_encoding="br"),
            "wrong token": await send(body, authorization="Bearer none"),
            "batch without a key": await send(body, authorization=""),
            "batch with ingest key": await send(body, authorization=f"Bearer {ingest}"),
            "get reports": await get("/v1/reports"),
            "surveys": await get("/v1/surveys"),
            "survey": survey_file,
            "version": await get(f"{name}/1"),
            "unchanged": await get(name, **{"if-none-match": tag}),
            "no such version": await get(f"{name}/2"),
            "no such survey": await get("/v1/surveys/none"),
            "counts": await shuffled(folder, get(f"{name}/counts", **analyst)),
            "counts without token": await get(f"{name}/counts"),
            "counts with ingest key": await get(f"{name}/counts", authorization=f"Bearer {ingest}"),
            "reports": await get(f"{name}/1/reports", **analyst),
            "reports of no day": await get(f"{name}/1/reports?since=x", **analyst),
            "jobs": await get("/v1/jobs", **analyst),
            "jobs without token": await get("/v1/jobs"),
            "no such job": await get("/v1/jobs/none", **analyst),
            "no order": await client.post("/v1/jobs", content=b"none", headers=analyst),
            "wrong order": await client.post("/v1/jobs", json={"verb": "x"}, headers=analyst),
            "deleted": await client.delete("/v1/jobs", headers=analyst),
            "healthz": await get("/healthz"),
            "readyz": await get("/readyz"),
            "metrics": await get("/metrics"),
            "openapi": await get("/openapi.json"),
            "analyst page": await get("/"),
            "try page": await get("/try"),
            "script": await get("/static/deniable.js"),
            "no file": await get("/static/none.js"),
            "nothing": await get("/none"),
        }
        counters = re.findall(r"^(deniable_\w+_total(?:\{\S+\})?) (\d+)$", found["metrics"].text,
                              re.MULTILINE)  # fmt: skip
        counted = found["counts"].json()[0]
        sent = {body[24 + i * size : 24 + (i + 1) * size] for i in range(40)}
        kept = found["reports"].content
        return {
            "answers": {key: answer(got) for key, got in found.items()},
            "counters": dict(counters),
            "digest": [each["digest"] for each in found["surveys"].json()],
            "survey": hashlib.sha256(survey_file.content).hexdigest(),
            "counted": [counted["version"], counted["digest"], sum(counted["days"].values())],
            "exported": [len(kept), sum(kept.count(row) for row in sent)],
        }

    size = survey("habits").body_size
    return collect(folder, scenario, keys=str(folder / "keys.json"))


@case
def collector_jobs(folder: Path) -> Any:
    """An analysis that is started over HTTP gives the numbers that decode gives."""
    file = write_reports(folder / "batch.dn", "habits", 1, 2000)
    (body,) = scan(file, survey=survey("habits"))
    keys = ("--keys", folder / "keys.json")
    token = said("keys", "add", "ann", "--role", "analyst", *keys)["token"]
    gateway = said("keys", "add", "relay", "--role", "gateway", *keys)["token"]
    analyst = {"authorization": f"Bearer {token}"}
    binary = {
        "content-type": "application/octet-stream",
        "authorization": f"Bearer {gateway}",
    }

    async def ended(client: httpx.AsyncClient, order: dict[str, Any]) -> str:
        got = await client.post("/v1/jobs", json=order, headers=analyst)
        assert got.status_code == 202, got.text
        where = got.headers["location"]
        for _ in range(2400):
            job = (await client.get(where, headers=analyst)).json()
            if job["state"] != "running":
                break
            await asyncio.sleep(0.05)
        assert job["state"] == "done", job
        return str(where)

    async def scenario(client: httpx.AsyncClient) -> Any:
        for i, part in enumerate((slice(0, 1000), slice(1000, 2000))):
            headers = {**binary, "idempotency-key": f"{i:032x}"}
            await client.post("/v1/reports", content=to_wire(body.select(part)), headers=headers)
        order = {"verb": "decode", "survey": "habits", "questions": ["browser"], "alpha": 0.01}
        where = await shuffled(folder, ended(client, order))
        forms = {
            form: await client.get(f"{where}/result{form}", headers=analyst)
            for form in ("", ".json", ".csv", ".html", ".exe")
        }
        (folder / "page.html").write_text(forms[".html"].text)
        return {
            "job": shape((await client.get(where, headers=analyst)).json()),
            "answers": {form: answer(got)["status"] for form, got in forms.items()},
            "json": freezing.plain(json.loads(forms[".json"].text)),
            "csv": freezing.table(forms[".csv"].text),
            "html": freezing.page(folder / "page.html"),
            "removed": (await client.delete(where, headers=analyst)).status_code,
            "gone": answer(await client.get(where, headers=analyst)),
        }

    return collect(folder, scenario, keys=str(folder / "keys.json"))
