"""Test that a collector logs damage, shows it in its metrics, and goes on."""

from __future__ import annotations

import logging
import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

from deniable.collector import keys
from deniable.collector.app import Collector
from deniable.store.calendar import today
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
        collector.maintain_store()
        assert "a damaged upload (99 reports of faults v1" in caplog.text
        assert "deniable_store_damage 1" in (await client.get("/metrics")).text.splitlines()
        assert sum(collector.store.days(SURVEY).values()) == 300
        collector.store.accept_clock(today() + timedelta(days=31))
        collector.maintain_store()
        assert collector.damage == [], "what was set aside is deleted after keep_days, too"
        assert "deniable_store_damage 0" in (await client.get("/metrics")).text.splitlines()

    with caplog.at_level(logging.ERROR, "deniable.collector"):
        collect(tmp_path, scenario, at_least=100, keep_days=30)


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
