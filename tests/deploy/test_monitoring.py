"""Alerts and dashboard: they use metrics that exist, and lead to what to do."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from deniable.collector.app import Collector
from deniable.collector.settings import Settings
from tests.collecting import collect, upload
from tests.deploy.files import DEPLOY, ROOT, documents, has_route
from tests.faults.crowd import single
from tests.test_links import anchors

((ALERTS,),) = (document["groups"] for document in documents("alerts.yaml"))
RULES = ALERTS["rules"]
DASHBOARD = json.loads((DEPLOY / "dashboard.json").read_text())
UNIT_TESTS = Path(__file__).with_name("alerts_test.yaml")
OF_PROMETHEUS = {"up"}
PUBLISHED = "https://docs.example/"
"""Where the alerts suppose that the documentation is; operators replace it."""


@cache
def metrics() -> str:
    """Return what /metrics says after an accepted upload and a refused one."""

    async def scenario(collector: Collector, client: httpx.AsyncClient) -> str:
        await upload(client, single(1))
        await upload(client, b"")
        return (await client.get("/metrics")).text

    with TemporaryDirectory() as folder:
        return collect(Path(folder), scenario)


def series() -> dict[str, set[str]]:
    """Return the labels of each series that Prometheus reads, by its name."""
    found = {
        sample.name: set(sample.labels)
        for family in text_string_to_metric_families(metrics())
        for sample in family.samples
    }
    return {name: labels | {"instance", "job"} for name, labels in found.items()}


def queries() -> dict[str, list[str]]:
    """Return the queries of each alert and each panel."""
    alerts = {rule["alert"]: [rule["expr"]] for rule in RULES}
    panels = {p["title"]: [t["expr"] for t in p["targets"]] for p in DASHBOARD["panels"]}
    return alerts | panels


@pytest.mark.parametrize("name", queries())
def test_queries_name_metrics_and_labels_that_exist(name: str) -> None:
    known = series()
    for query in queries()[name]:
        used = set(re.findall(r"\b(?:deniable|process)_\w+|\bup\b", query))
        assert used, "a query without a metric"
        assert used <= known.keys() | OF_PROMETHEUS, query
        grouped = {
            label for text in re.findall(r"by \(([^)]*)\)", query) for label in text.split(", ")
        }
        assert grouped <= set().union(*(known.get(name, {"instance"}) for name in used)), query


def test_every_metric_is_shown_or_watched() -> None:
    text = " ".join(query for some in queries().values() for query in some)
    unused = {n for n in series() if n.startswith("deniable_") and n not in text}
    assert unused <= {"deniable_commit_seconds_sum", "deniable_commit_seconds_count"}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_an_alert_leads_to_its_section(rule: dict[str, Any]) -> None:
    assert rule["labels"]["severity"] in ("warning", "critical")
    address, _, anchor = rule["annotations"]["runbook_url"].partition("#")
    assert address.startswith(PUBLISHED)
    page = ROOT / "docs" / f"{address.removeprefix(PUBLISHED).strip('/')}.md"
    assert anchor in anchors(page), f"{page} has no section #{anchor}"
    assert f"`{rule['alert']}`" in page.read_text(), f"{page} does not name the alert"
    assert rule["annotations"]["summary"].endswith(".")


def test_prometheus_asks_the_collector_under_the_name_that_alerts_expect() -> None:
    (configuration,) = documents("prometheus.yaml")
    (job,) = configuration["scrape_configs"]
    assert has_route(job.get("metrics_path", "/metrics"))
    named = set(
        re.findall(r'job="(\w+)"', " ".join(q for some in queries().values() for q in some))
    )
    assert named == {job["job_name"]}
    assert job["static_configs"][0]["targets"] == [f"127.0.0.1:{Settings().port}"]


def test_every_alert_has_a_unit_test() -> None:
    tested = UNIT_TESTS.read_text()
    for rule in RULES:
        named = re.findall(rf"alertname: {rule['alert']}\b", tested)
        assert len(named) >= 2, "one test in which it fires, and one in which it does not"


def test_panels_do_not_overlap() -> None:
    cells = [
        (x, y)
        for position in (panel["gridPos"] for panel in DASHBOARD["panels"])
        for x in range(position["x"], position["x"] + position["w"])
        for y in range(position["y"], position["y"] + position["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24
    identifiers = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(identifiers) == len(set(identifiers))


# --- with Prometheus' own tool --------------------------------------------------------------------


@pytest.fixture
def promtool() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Prometheus' tool; without it, a skip or in CI a failure."""
    program = shutil.which("promtool")
    if program is None:
        missing = "promtool is not installed: bash .ci/setup"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(missing)

    def run(*arguments: str | Path, **options: str) -> subprocess.CompletedProcess[str]:
        command = [program, *arguments]
        return subprocess.run(command, capture_output=True, text=True, **options)  # type: ignore[call-overload]

    return run


def test_prometheus_accepts_the_configuration_and_the_rules(promtool: Callable[..., Any]) -> None:
    done = promtool("check", "config", DEPLOY / "prometheus.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(RULES)} rules found" in done.stdout


@pytest.mark.slow
def test_alerts_fire_when_they_should(promtool: Callable[..., Any], tmp_path: Path) -> None:
    cases = tmp_path / "cases.yaml"
    cases.write_text(UNIT_TESTS.read_text().replace("RULES", str(DEPLOY / "alerts.yaml")))
    done = promtool("test", "rules", cases)
    assert done.returncode == 0, done.stdout + done.stderr


def test_prometheus_accepts_the_metrics(promtool: Callable[..., Any]) -> None:
    done = promtool("check", "metrics", input=metrics())
    assert done.returncode == 0, done.stdout + done.stderr
