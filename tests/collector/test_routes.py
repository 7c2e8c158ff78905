"""Test every route: its answers, access, and the OpenAPI description."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from datetime import timedelta
from importlib.resources import files
from pathlib import Path
from typing import Any

import httpx
import pytest

import deniable.store
from deniable.collector import keys
from deniable.collector.api import problems
from deniable.collector.api.routes import ROUTES
from deniable.collector.app import Collector
from deniable.collector.ingest import upload_route as ingest
from deniable.columns import scan
from deniable.errors import StoreUnavailable
from deniable.store import Outcome, Upload
from deniable.store.clock import today
from tests import gateway
from tests.collecting import collect, upload
from tests.faults.crowd import SURVEY, batch, bodies, serials, single

OPENAPI = json.loads(files("deniable.collector").joinpath("openapi.json").read_text())


# --- surveys --------------------------------------------------------------------------------------


def test_the_published_survey(tmp_path: Path) -> None:
    async def scenario(collector: Collector, client: httpx.AsyncClient) -> None:
        listed = (await client.get("/v1/surveys")).json()
        assert listed == [
            {
                "name": "faults", "version": 1, "digest": SURVEY.digest.hex(),
                "expires": "2999-12-31",
            }
        ]  # fmt: skip
        for path in ("/v1/surveys/faults", "/v1/surveys/faults/1"):
            got = await client.get(path)
            assert got.content == SURVEY.canonical + b"\n"
            assert got.headers["etag"] == f'"{SURVEY.digest.hex()}"'
            assert got.headers["cache-control"] == "public, max-age=3600"
            for known in (got.headers["etag"], f'W/{got.headers["etag"]}, "x"', "*"):
                again = await client.get(path, headers={"if-none-match": known})
                assert (again.status_code, again.content) == (304, b"")
            other = await client.get(path, headers={"if-none-match": '"x"'})
            assert other.status_code == 200
            assert (await client.options(path)).status_code == 204
        for path in ("/v1/surveys/none", "/v1/surveys/faults/2", "/v1/surveys/faults/x"):
            assert (await client.get(path)).status_code == 404

    collect(tmp_path, scenario)


def test_nothing_here(tmp_path: Path) -> None:
    async def scenario(collector: Collector, client: httpx.AsyncClient) -> None:
        for method, path, status in (
            ("GET", "/none", 404), ("GET", "/v1/reports", 405), ("DELETE", "/v1/reports", 405),
            ("POST", "/v1/surveys", 405), ("GET", "/v1/reports/", 404),
            ("GET", "/v1/surveys/faults/" + "1" * 5000, 404), ("GET", "/healthz/", 404),
        ):  # fmt: skip
            got = await client.request(method, path, headers={"host": "evil.example"})
            assert got.status_code == status, path[:80]
            assert "evil" not in f"{got.headers} {got.text}"
            assert got.headers["content-type"] == "application/problem+json"
            assert got.json()["status"] == status
            if status == 405:
                assert "allow" in got.headers
            if path == "/none":
                assert "POST reports to /v1/reports" in got.json()["detail"]

    collect(tmp_path, scenario)


# --- who may call what ----------------------------------------------------------------------------

EVERYBODY = {"nobody", "ingest", "gateway", "analyst", "stranger"}
ALLOWED = {
    ("GET", "/v1/surveys"): EVERYBODY,
    ("GET", "/v1/surveys/faults"): EVERYBODY,
    ("GET", "/v1/surveys/faults/1"): EVERYBODY,
    ("GET", "/v1/surveys/faults/counts"): {"analyst"},
    ("GET", "/v1/surveys/faults/1/reports"): {"analyst"},
    ("GET", "/healthz"): EVERYBODY,
    ("GET", "/readyz"): EVERYBODY,
    ("GET", "/metrics"): EVERYBODY,
    ("GET", "/openapi.json"): EVERYBODY,
    ("GET", "/v1/jobs"): {"analyst"},
    ("POST", "/v1/jobs"): {"analyst"},
    ("GET", "/v1/jobs/0"): {"analyst"},
    ("DELETE", "/v1/jobs/0"): {"analyst"},
    ("GET", "/v1/jobs/0/result"): {"analyst"},
    ("GET", "/v1/jobs/0/result.json"): {"analyst"},
    ("GET", "/"): EVERYBODY,
    ("GET", "/try"): EVERYBODY,
    ("GET", "/static/style.css"): EVERYBODY,
    ("POST", "/v1/reports"): {"ingest", "gateway"},
}
"""Roles that may call each route if keys are required; otherwise uploads need no token."""


@pytest.mark.parametrize("require_key", [True, False])
def test_every_route_and_every_role(require_key: bool, tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    tokens = {role: keys.add(file, role, role) for role in keys.ROLES}
    tokens["stranger"] = "dn_00000000_" + "A" * 43
    passed: dict[tuple[str, str], set[str]] = {route: set() for route in ALLOWED}
    refusals = {401, 403}

    async def scenario(collector: Collector, client: httpx.AsyncClient) -> None:
        for method, path in ALLOWED:
            for role in ("nobody", *tokens):
                headers = {"authorization": f"Bearer {tokens[role]}"} if role in tokens else {}
                if path == ingest.UPLOAD_PATH:
                    got = await upload(client, single(len(passed[method, path])), **headers)
                else:
                    got = await client.request(method, path, headers=headers)
                # Whoever is let in is told that there is no job 0, and that an order is missing.
                if got.status_code in (200, 202) or (
                    got.status_code in (400, 404) and "job" in path
                ):
                    passed[method, path].add(role)
                else:
                    expected = 403 if role in keys.ROLES else 401
                    assert got.status_code == expected, (path, role)
                    assert got.status_code in refusals
                    assert ("www-authenticate" in got.headers) == (expected == 401)

    collect(tmp_path, scenario, keys=str(file), require_key=require_key)
    expected = dict(ALLOWED)
    if not require_key:
        expected["POST", "/v1/reports"] = {"ingest", "gateway", "nobody"}
    assert passed == expected


def test_the_matrix_has_every_route() -> None:
    named = {
        "faults": "{name}", "/1": "/{version:version}", "/0": "/{id}", "t.json": "t.{form}",
        "style.css": "{name}",
    }  # fmt: skip
    routes = set()
    for method, path in ALLOWED:
        for value, name in named.items():
            path = path.replace(value, name)
        routes.add((method, path))
    real = {
        (method, route.path)
        for route in ROUTES
        for method in (route.methods or set()) - {"HEAD", "OPTIONS"}
    }
    assert routes == real | {("POST", ingest.UPLOAD_PATH)}


def test_without_a_file_of_keys_nobody_reads_results(tmp_path: Path) -> None:
    async def scenario(collector: Collector, client: httpx.AsyncClient) -> None:
        got = await client.get("/v1/surveys/faults/counts", headers={"authorization": "Bearer "})
        assert got.status_code == 401
        # A token in a query ends in somebody's log, so analysts cannot use one there.
        got = await client.get("/v1/surveys/faults/counts?token=x")
        assert got.status_code == 401

    collect(tmp_path, scenario)


# --- results --------------------------------------------------------------------------------------


def test_counts_and_export(tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    headers = {"authorization": "Bearer " + keys.add(file, "ann", "analyst")}

    async def scenario(collector: Collector, client: httpx.AsyncClient) -> bytes:
        async def get(path: str, **query: str) -> httpx.Response:
            return await client.get(path, params=query, headers=headers)

        assert (await upload(client, batch(0, 500), **gateway.HEADERS)).status_code == 202
        assert (await upload(client, batch(500, 500), **gateway.HEADERS)).status_code == 202
        path = "/v1/surveys/faults/1/reports"
        identity = {"version": 1, "digest": SURVEY.digest.hex()}
        (counts,) = (await get("/v1/surveys/faults/counts")).json()
        warning = counts.pop("warning")
        assert counts == {**identity, "days": {}, "waiting": 1000, "minimum_batch": 501}
        assert "for development only: analysts see batches of 501 reports" in warning
        assert (await get(path)).content == b"", "not shuffled yet"
        collector.maintain_store()
        (counts,) = (await get("/v1/surveys/faults/counts")).json()
        days = {today().isoformat(): 1000}
        assert counts == {**identity, "days": days, "waiting": 0, "minimum_batch": 501} | {
            "warning": warning
        }
        headers_sent = (await get(path)).headers
        assert headers_sent["deniable-minimum-batch"] == "501"
        assert headers_sent["deniable-warning"] == warning
        yesterday = (today() - timedelta(days=1)).isoformat()
        assert (await get(path, until=yesterday)).content == b""
        assert (await get(path, since="yesterday")).status_code == 400
        assert (await get("/v1/surveys/none/counts")).status_code == 404
        assert (await get("/v1/surveys/faults/9/reports")).status_code == 404
        return (await get(path, since=yesterday)).content

    sent = collect(tmp_path, scenario, keys=str(file), at_least=500)
    (tmp_path / "export.dn").write_bytes(sent)
    assert sorted(serials(scan(tmp_path / "export.dn", survey=SURVEY))) == list(range(1000))


def differences(tmp_path: Path) -> list[int]:
    """Return how many reports each of 20 clients adds to what an analyst can export.

    Before and after every upload of one report, the collector compacts and the analyst exports.
    """
    file = tmp_path / "keys.json"
    headers = {"authorization": "Bearer " + keys.add(file, "ann", "analyst")}

    async def scenario(collector: Collector, client: httpx.AsyncClient) -> list[int]:
        async def exported() -> Counter[int]:
            got = await client.get("/v1/surveys/faults/1/reports", headers=headers)
            (tmp_path / "export.dn").write_bytes(got.content)
            return Counter(serials(scan(tmp_path / "export.dn", survey=SURVEY)))

        for i in range(3):
            sent = batch(1000 + 50 * i, 50)
            assert (await upload(client, sent, **gateway.HEADERS)).status_code == 202
        collector.maintain_store()
        before, added = await exported(), []
        for i in range(120):
            assert (await upload(client, single(i))).status_code == 202
            collector.maintain_store()
            if i % 6 == 0:
                now = await exported()
                assert not before - now, "what was exported once stays"
                added.append((now - before).total())
                before = now
        return added

    return collect(tmp_path, scenario, keys=str(file), at_least=50)


def test_the_difference_of_two_exports_is_a_whole_batch(tmp_path: Path) -> None:
    added = differences(tmp_path)
    assert all(count == 0 or count >= 51 for count in added) and sum(added) >= 51


def test_exports_of_staged_reports_would_name_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The broken twin: the analyst reads the store as the operator does.
    monkeypatch.setattr(
        deniable.store, "open", lambda url, create=False, **_: deniable.store._opened(url, create)
    )
    assert set(differences(tmp_path)[1:]) == {6}


def test_a_store_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "keys.json"
    headers = {"authorization": "Bearer " + keys.add(file, "ann", "analyst")}

    def gone() -> Any:
        raise StoreUnavailable("marker")

    async def scenario(collector: Collector, client: httpx.AsyncClient) -> None:
        monkeypatch.setattr(collector.store, "surveys", gone)
        got = await client.get("/v1/surveys/faults/counts", headers=headers)
        assert (got.status_code, "marker" in got.text) == (503, False)
        collector.writer.failing = True
        assert (await client.get("/readyz")).status_code == 503
        assert (await client.get("/healthz")).status_code == 200

    collect(tmp_path, scenario, keys=str(file))


@pytest.mark.parametrize("replaced", [False, True])
def test_a_store_whose_file_is_gone_is_not_ready(replaced: bool, tmp_path: Path) -> None:
    async def scenario(collector: Collector, client: httpx.AsyncClient) -> None:
        assert (await upload(client, single(1))).status_code == 202
        database = tmp_path / "reports.db"
        database.rename(tmp_path / "away.db")
        if replaced:
            shutil.copy(tmp_path / "away.db", database)
        ready = await client.get("/readyz")
        assert (ready.status_code, "deleted or replaced" in ready.text) == (503, True)
        got = await upload(client, single(2))
        assert (got.status_code, got.json()["type"]) == (
            503,
            "urn:deniable:problem:store-unavailable",
        )
        assert (await client.get("/readyz")).status_code == 503

    collect(tmp_path, scenario)


# --- operation ------------------------------------------------------------------------------------

SAMPLE = re.compile(r'[a-z_]+(\{[a-z]+="[^"]*"\})? [0-9.e+]+|# (HELP|TYPE) [a-z_]+ .+')


def test_metrics_are_prometheus_text(tmp_path: Path) -> None:
    async def scenario(collector: Collector, client: httpx.AsyncClient) -> None:
        await upload(client, single(1))
        await upload(client, b"")
        got = await client.get("/metrics")
        assert got.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
        for line in got.text.splitlines():
            assert SAMPLE.fullmatch(line), line
        for line in ('deniable_uploads_total{status="202"} 1', "deniable_reports_total 1",
                     'deniable_uploads_total{status="400"} 1',
                     'deniable_commit_seconds_bucket{le="+Inf"} 1'):  # fmt: skip
            assert line in got.text.splitlines()
        assert "faults" not in got.text, "no survey is named"

    collect(tmp_path, scenario)


def test_maintenance_compacts_forgets_and_deletes(tmp_path: Path) -> None:
    long_ago = today() - timedelta(days=31)
    old = Upload(bytes(16), SURVEY.digest, 5, bodies(0, 5), long_ago, bytes(16))

    async def scenario(collector: Collector, client: httpx.AsyncClient) -> None:
        assert collector.store.append([old, old]) == [Outcome.STORED, Outcome.REPEATED]
        for i in range(4):
            got = await upload(client, batch(100 * i, 100), f"{i + 1:032x}", **gateway.HEADERS)
            assert got.status_code == 202
        collector.maintain_store()
        totals = collector.metrics.totals
        assert (totals["compacted_reports"], totals["deleted_reports"]) == (400, 5)
        assert collector.store.days(SURVEY) == {today(): 400}
        assert list(tmp_path.glob("**/*.parquet"))
        assert collector.store.append([old]) == [Outcome.STORED], "its key is forgotten"
        got = await upload(client, batch(0, 99), f"{1:032x}", **gateway.HEADERS)
        assert got.status_code == 409

    collect(tmp_path, scenario, at_least=100, keep_days=30)


# --- the published description --------------------------------------------------------------------


def test_the_description_has_every_route_and_method() -> None:
    described = {
        (path, method.upper())
        for path, item in OPENAPI["paths"].items()
        for method in item.keys() - {"parameters"}
    }
    real = {
        (route.path.replace(":version", ""), method)
        for route in ROUTES
        for method in (route.methods or set()) - {"HEAD", "OPTIONS"}
    }
    assert described == real | {(ingest.UPLOAD_PATH, "POST")}


def test_the_description_says_who_may() -> None:
    for route in ROUTES:
        for method in (route.methods or set()) - {"HEAD", "OPTIONS"}:
            described = OPENAPI["paths"][route.path.replace(":version", "")][method.lower()]
            needed = {"analyst": [{"analystToken": []}]}.get(getattr(route.endpoint, "role", ""))
            assert described.get("security") == needed, (route.path, method)


def test_the_description_has_every_refusal_of_an_upload() -> None:
    described = OPENAPI["paths"][ingest.UPLOAD_PATH]["post"]["responses"]
    every = {v for v in vars(problems).values() if isinstance(v, problems.ProblemKind)}
    elsewhere = {problems.BAD_QUERY, problems.NOT_FOUND}
    elsewhere |= {problems.BAD_JOB, problems.UNKNOWN_JOB, problems.NO_RESULT}
    assert {str(kind.status) for kind in every - elsewhere} == described.keys() - {"202"}
