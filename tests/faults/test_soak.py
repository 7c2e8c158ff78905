"""Run every fault at once for some seconds, and test that a soak test would notice each defect."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from tests.faults.results import write_json
from tests.faults.server import MAIN
from tests.faults.soak.clock import main_with_clock
from tests.faults.soak.collector import Plan, SoakedCollector
from tests.faults.soak.observed import Observations, Sample, undocumented
from tests.faults.soak.plot import draw
from tests.faults.soak.report import results
from tests.faults.soak.run import OPERATIONS, soak
from tests.faults.soak.trend import trend
from tests.faults.soak.uploads import SPAN, Uploads, serials_of
from tests.faults.soak.verdict import FILES_LIMIT, MEMORY_LIMIT, MIB, judge

SHORT = Plan(seconds=20, rate=60)
FORGETS = """
from deniable.store import Outcome
from deniable.store.base import Store
real = Store.append
def append(self, uploads):
    real(self, [upload for upload in uploads if upload.key[0] > 12])
    return [Outcome.STORED] * len(uploads)
Store.append = append
"""
"""A store that acknowledges one upload in twenty without storing it."""


def soaked(folder: Path, plan: Plan, main: str = "") -> SoakedCollector:
    run = SoakedCollector(folder, plan, main)
    asyncio.run(soak(run, print))
    judge(run)
    return run


def test_soak(tmp_path: Path) -> None:
    run = soaked(tmp_path, SHORT)
    assert not run.seen.faults, run.seen.faults
    happened = Counter(event.kind for event in run.seen.events)
    assert happened["kill"] + happened["stop"] > 0
    assert not OPERATIONS.keys() - happened.keys(), "something never happened"
    assert {202, 400} <= {status for _, status in run.seen.answers}
    file = tmp_path / "soak.json"
    write_json(file, results(run))
    data = json.loads(file.read_text())
    assert data["parameters"]["seed"] == 1 and data["conditions"]["version"]
    assert len(draw(data).axes) == 5


def test_a_lost_upload_is_noticed(tmp_path: Path) -> None:
    """Broken twin: the run is the same, and the store is not."""
    run = soaked(tmp_path, Plan(seconds=4, rate=60), FORGETS + MAIN)
    assert any("acknowledged uploads lost" in fault for fault in run.seen.faults)


# --- what is compared ----------------------------------------------------------------------------


def numbered() -> tuple[Uploads, bytes]:
    """Return a single upload and a batch, both acknowledged, and their reports in a file."""
    uploads = Uploads(seed=1)
    for one in (uploads.create(), uploads.create(is_batch=True)):
        one.acknowledged = True
    uploads.create()
    return uploads, uploads[1].body


def test_every_difference_is_noticed() -> None:
    uploads, wire = numbered()
    stored = np.concatenate([serials_of(wire), np.array([0], np.uint64)])
    state = bytes(uploads.state)
    assert uploads.differences(stored, state) == []
    assert "lost" in uploads.differences(stored[:-1], state)[0]
    assert "in part" in uploads.differences(stored[1:])[0]
    assert "more than once" in uploads.differences(np.append(stored, stored[:1]))[0]
    for stranger in (1, SPAN * 3):
        strange = np.append(stored, np.uint64(stranger))
        assert "nobody sent" in uploads.differences(strange)[0]


def test_keys_follow_from_seed_and_number() -> None:
    keys = {Uploads(seed)[number].key for seed in (1, 2) for number in range(3)}
    assert len(keys) == 6 and Uploads(1)[2].key in keys


def test_undocumented_answers_are_noticed() -> None:
    route = "POST /v1/reports"
    assert undocumented(route, 202, b"{}") is None
    problem = {"type": "urn:deniable:problem:malformed", "status": 400}
    assert undocumented(route, 400, json.dumps(problem).encode()) is None
    assert undocumented(route, 418, b"") is not None
    assert undocumented(route, 400, b"<html>") is not None
    assert undocumented(route, 503, json.dumps(problem).encode()) is not None


def test_a_connection_that_breaks_without_a_restart_is_noticed() -> None:
    seen = Observations()
    with seen.event("kill") as kill:
        pass
    kill.start, kill.end = 10.0, 12.0
    seen.broken += [(9.0, 10.1), (11.0, 11.0), (12.2, 12.3)]
    assert seen.unexplained() == 0
    seen.broken.append((20.0, 20.1))
    assert seen.unexplained() == 1


# --- trends --------------------------------------------------------------------------------------


def lives(rng: np.random.Generator, per_hour: float = 0.0) -> list[tuple[list[float], list[float]]]:
    """Return three lives of a quarter of an hour: a level, noise that lasts, and a trend."""
    found = []
    for _ in range(3):
        seconds = np.arange(0, 900, 5.0)
        noise = np.zeros(len(seconds))
        for i, step in enumerate(rng.normal(size=len(seconds)), 0):
            noise[i] = 0.7 * noise[i - 1] + step if i else step
        warm_up = -20 * np.exp(-seconds / 60)
        values = 100 + warm_up + noise + per_hour * seconds / 3600
        found.append((seconds.tolist(), values.tolist()))
    return found


def test_a_leak_is_noticed_and_noise_is_not() -> None:
    """The limit of 1 % for false alarms, in 400 series: more than 12 has probability 0.0006."""
    rng = np.random.default_rng(1)
    alarms = [trend(lives(rng)) for _ in range(400)]
    assert sum(found.p_value < 0.01 for found in alarms) <= 12
    assert not any(found.grows(MEMORY_LIMIT) for found in alarms)
    leaks = [trend(lives(rng, per_hour=2 * MEMORY_LIMIT)) for _ in range(50)]
    assert all(found.grows(MEMORY_LIMIT) for found in leaks)
    assert abs(np.mean([found.per_hour for found in leaks]) - 2 * MEMORY_LIMIT) < 2


def test_files_left_open_are_noticed() -> None:
    """One per minute; restarts do not hide it."""
    seconds = [float(s) for s in range(0, 600, 5)]
    leaking = (seconds, [30 + s // 60 for s in seconds])
    assert trend([leaking, leaking]).grows(FILES_LIMIT)
    assert not trend([(seconds, [30.0] * len(seconds))]).grows(FILES_LIMIT)
    short = (seconds[:10], [30.0 + i for i in range(10)])
    assert trend([short]).lives == 0


def test_too_much_memory_is_noticed(tmp_path: Path) -> None:
    run = SoakedCollector(tmp_path, SHORT)
    run.seen.samples.append(Sample(1.0, 0, 99 * MIB, 30))
    judge(run)
    assert not run.seen.faults
    run.seen.samples.append(Sample(2.0, 0, 500 * MIB, 30))
    judge(run)
    assert "used 500 MiB" in run.seen.faults[0]


# --- the clock -----------------------------------------------------------------------------------


@pytest.mark.parametrize("days", [-400, 0, 3])
def test_the_clock_of_one_process_is_wrong(days: int, tmp_path: Path) -> None:
    (tmp_path / "clock").write_text(str(days))
    program = main_with_clock(tmp_path / "clock").removesuffix(MAIN)
    program += """
import datetime, sys
from deniable.store import clock
assert isinstance(datetime.date(2025, 3, 9), clock.date)
print(clock.today())
"""
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
    shown = date.fromisoformat(done.stdout.decode().strip())
    assert abs(shown - (datetime.now(UTC).date() + timedelta(days=days))) <= timedelta(days=1)
