"""Test that a collector logs damage, shows it in its metrics, and goes on."""

from __future__ import annotations

import logging
import sqlite3
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from deniable.collector import keys
from deniable.collector.app import Collector
from tests import gateway
from tests.collecting import collect, upload
from tests.faults.crowd import SURVEY, batch


def test_a_damaged_upload_is_logged_and_does_not_stop_the_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(collector: Collector, client: httpx.AsyncClient) -> None:
        for i in range(4):
            assert (await upload(client, batch(100 * i, 100), **gateway.HEADERS)).status_code == 202
        with closing(sqlite3.connect(tmp_path / "reports.db")) as db, db:
            db.execute("UPDATE staged SET reports = 99 WHERE id = 2")
        for _ in range(2):
            collector.maintain_store()
            assert "deniable_store_damage 1" in (await client.get("/metrics")).text.splitlines()
        assert caplog.text.count("staged upload 2 (99 reports of faults v1") == 2
        assert sum(collector.store.days(SURVEY).values()) == 300
        assert (await upload(client, batch(400, 100), **gateway.HEADERS)).status_code == 202
        collector.store.delete_damaged()
        collector.maintain_store()
        assert "deniable_store_damage 0" in (await client.get("/metrics")).text.splitlines()

    with caplog.at_level(logging.ERROR, "deniable.collector"):
        collect(tmp_path, scenario, at_least=100)


def test_an_export_with_a_missing_segment_is_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "keys.json"
    headers = {"authorization": "Bearer " + keys.add(file, "ann", "analyst")}

    async def scenario(collector: Collector, client: httpx.AsyncClient) -> None:
        for i in range(2):
            await upload(client, batch(100 * i, 100), **gateway.HEADERS)
        collector.maintain_store()
        (segment,) = (tmp_path / "reports.segments").rglob("*.parquet")
        segment.unlink()
        got = await client.get("/v1/surveys/faults/1/reports", headers=headers)
        assert got.status_code == 503
        assert got.json()["type"] == "urn:deniable:problem:store-unavailable"
        assert "deniable store check" in got.json()["detail"]
        assert f"{segment.name} is missing" in caplog.text and str(segment) not in got.text

    with caplog.at_level(logging.ERROR, "deniable.collector"):
        collect(tmp_path, scenario, keys=str(file), at_least=100)
