"""Test that a collector logs damage, shows it in its metrics, and goes on."""

from __future__ import annotations

import logging
import sqlite3
from contextlib import closing
from pathlib import Path

import httpx
import pytest

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
        collector.maintain_store()
        assert "a damaged upload (99 reports of faults v1" in caplog.text
        assert "deniable_store_damage 1" in (await client.get("/metrics")).text.splitlines()
        assert sum(collector.store.days(SURVEY).values()) == 300
        collector.store.accept_damage()
        collector.maintain_store()
        assert "deniable_store_damage 0" in (await client.get("/metrics")).text.splitlines()

    with caplog.at_level(logging.ERROR, "deniable.collector"):
        collect(tmp_path, scenario, at_least=100)
