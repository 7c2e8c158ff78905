"""The log: one line per event with a stable name, and nothing that libraries say of a request."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

import deniable.collector
from deniable.collector.app import Collector
from deniable.collector.logs import EVENTS, FORMATS, log_event, start_logging
from deniable.collector.metrics import Metrics
from deniable.errors import StoreUnavailable
from deniable.store import Store
from tests.collecting import collect, upload
from tests.faults.crowd import single

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "operate.md"


@pytest.fixture
def restored() -> Iterator[None]:
    """Undo what a test does to the root of all loggers."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def lines(form: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Log events of ours and of a library, and return what is written."""
    start_logging(form)
    metrics = Metrics()
    metrics.answers[202] = 3
    metrics.totals["reports"] = 3
    metrics.log_totals()
    log_event("maintenance-failed", "task \x1bx failed", logging.ERROR, task="x", error="OSError")
    library = logging.getLogger("_granian.serve")
    try:
        raise ValueError("marker-of-a-request")
    except ValueError:
        library.exception("while answering %s", "marker-address")
    library.info("marker-info")
    return capsys.readouterr().err.splitlines()


@pytest.mark.usefixtures("restored")
def test_text_is_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    assert lines("text", capsys) == [
        "INFO 3 reports stored in 0 commits; uploads by HTTP status: 202: 3",
        "ERROR task \N{REPLACEMENT CHARACTER}x failed",
        "ERROR _granian.serve reported a problem",
    ]


@pytest.mark.usefixtures("restored")
def test_json_is_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    written = [json.loads(line) for line in lines("json", capsys)]
    assert written[0] == {
        "level": "info", "event": "totals", "reports": 3, "commits": 0, "uploads": {"202": 3},
        "message": "3 reports stored in 0 commits; uploads by HTTP status: 202: 3",
    }  # fmt: skip
    assert written[1]["task"] == "x" and written[1]["event"] == "maintenance-failed"
    assert written[2] == {
        "level": "error", "event": "library-message", "source": "_granian.serve",
        "message": "_granian.serve reported a problem",
    }  # fmt: skip


@pytest.mark.usefixtures("restored")
def test_json_is_readable(capsys: pytest.CaptureFixture[str]) -> None:
    start_logging("json")
    log_event("batch-privacy", "ε ≤ 0.2", survey="größe")
    assert '"message": "ε ≤ 0.2", "survey": "größe"' in capsys.readouterr().err


def test_only_changes_of_a_state_are_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(collector: Collector, client: httpx.AsyncClient) -> None:
        def fail(self: Store, uploads: object) -> None:
            raise StoreUnavailable("marker-of-the-store")

        collector.settings.__dict__["reserve"] = 10
        for free in (5, 5, 20, 20):
            monkeypatch.setattr(collector.store, "room", lambda free=free: free)
            collector._check_free_space()
        with monkeypatch.context() as broken:
            broken.setattr(type(collector.store), "append", fail)
            for number in range(3):
                assert (await upload(client, single(number))).status_code == 503
        for number in range(3):
            assert (await upload(client, single(number))).status_code == 202

    with caplog.at_level(logging.INFO, "deniable.collector"):
        collect(tmp_path, scenario)
    assert [record.event for record in caplog.records if hasattr(record, "event")] == [
        "disk-low", "disk-recovered", "commits-failing", "commits-recovered",
    ]  # fmt: skip
    assert "marker" not in caplog.text


def test_every_event_is_declared_used_and_documented() -> None:
    """Nothing else is logged: a plain message would have no name, and might quote a request."""
    page, used = PAGE.read_text(), set[str]()
    for path in Path(deniable.collector.__file__).parent.rglob("*.py"):
        text = path.read_text()
        used |= set(re.findall(r'(?:log_event|log_totals)\(\s*"([\w-]+)"', text))
        if path.stem != "logs":
            assert "getLogger" not in text, f"{path.name}: use log_event"
    assert used | {"totals", "library-message"} == set(EVENTS)
    for event, meaning in EVENTS.items():
        assert f"| `{event}` | {meaning} |" in page, f"docs/how-to/operate.md lacks {event}"
    assert FORMATS == ("text", "json")
