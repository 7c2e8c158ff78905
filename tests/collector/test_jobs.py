"""Test jobs: a complete one over HTTP, cancellation, failures, and the limit of kept jobs."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from deniable import simulate, store
from deniable.collector import keys
from deniable.collector.api.problems import BAD_JOB, BUSY, NO_RESULT, UNKNOWN_JOB, Problem
from deniable.collector.app import Collector
from deniable.collector.ingest.catalogue import Catalogue
from deniable.collector.jobs import job_process as work
from deniable.collector.jobs import runner as jobs
from deniable.collector.jobs.limits import JobLimits
from deniable.collector.jobs.requests import JobRequest
from deniable.collector.jobs.runner import Job, Jobs
from deniable.columns.batch import to_wire
from deniable.errors import InputError
from deniable.store.clock import Today, today
from tests import gateway
from tests.collecting import collect, upload
from tests.faults.crowd import SURVEY, batch
from tests.surveys import make_survey

REQUEST = JobRequest("decode", "faults", ("q",), candidates={"q": ("=a", "b")})
HANG = (
    'import sys, time; sys.stdin.readline(); print(\'{"stage": "x", "done": 0.5}\', flush=True); '
)
FOREVER = HANG + "time.sleep(600)"
AMPLE = JobLimits(1 << 40, 600)


def started(script: str, limits: JobLimits = AMPLE, **options: Any) -> tuple[Jobs, Job]:
    found = Jobs(limits, (sys.executable, "-c", script), **options)
    return found, found.start(REQUEST, "sqlite:///none.db", SURVEY)


def until(done: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end
        time.sleep(0.01)


def refused(kind: Any, work: Callable[..., Any], *args: Any) -> str:
    with pytest.raises(Problem) as caught:
        work(*args)
    assert caught.value.kind is kind
    return caught.value.detail


@pytest.mark.slow
def test_a_job_from_order_to_files(tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    headers = {"authorization": "Bearer " + keys.add(file, "ann", "analyst")}

    async def ended(client: httpx.AsyncClient, order: dict[str, Any]) -> dict[str, Any]:
        got = await client.post("/v1/jobs", json=order, headers=headers)
        assert got.status_code == 202, got.text
        for _ in range(1200):
            job = (await client.get(got.headers["location"], headers=headers)).json()
            if job["state"] != "running":
                return dict(job)
            await asyncio.sleep(0.05)
        raise AssertionError(job)

    async def scenario(collector: Collector, client: httpx.AsyncClient) -> None:
        order = {"verb": "decode", "survey": "faults", "questions": ["q"]}
        assert (await upload(client, batch(0, 1000), **gateway.HEADERS)).status_code == 202
        early = await ended(client, {**order, "candidates": {"q": ["=a"]}})
        assert early["state"] == "failed", "nothing is shuffled yet"
        assert "1,000 reports of it wait to be shuffled with others" in early["detail"]
        assert (await upload(client, batch(1000, 1000), **gateway.HEADERS)).status_code == 202
        collector.maintain_store()
        job = await ended(client, {**order, "candidates": {"q": ["=a", "<b>"]}})
        assert (job["state"], job["detail"]) == ("done", "")
        where = f"/v1/jobs/{job['id']}/result"
        got = await client.get(where, headers=headers)
        assert "&lt;b&gt;" in got.text and "<b>&" not in got.text
        assert "sandbox" in got.headers["content-security-policy"]
        files = {form: await client.get(f"{where}.{form}", headers=headers)
                 for form in ("json", "csv", "html", "svg")}  # fmt: skip
        assert job["formats"] == ["json", "csv", "html", "svg"]
        for form, answer in files.items():
            assert (
                answer.headers["content-disposition"] == f'attachment; filename="decode-q.{form}"'
            )
        assert files["json"].json()["reports"] == 2000
        assert "\n'=a," in files["csv"].text, "a spreadsheet would run it"
        assert files["html"].text.startswith("<!doctype html>")
        assert (await client.get(f"{where}.exe", headers=headers)).status_code == 404
        # What the survey or its reports cannot give is said by the job.
        failed = await ended(client, {**order, "verb": "discover"})
        assert failed["state"] == "failed" and "whole values only" in failed["detail"]
        got = await client.get(f"/v1/jobs/{failed['id']}/result", headers=headers)
        assert got.status_code == 409
        listed = (await client.get("/v1/jobs", headers=headers)).json()
        assert [j["id"] for j in listed] == [failed["id"], job["id"], early["id"]]
        assert (await client.delete(f"/v1/jobs/{job['id']}", headers=headers)).status_code == 204
        assert (await client.get(f"/v1/jobs/{job['id']}", headers=headers)).status_code == 404
        got = await client.post("/v1/jobs", json={**order, "survey": "none"}, headers=headers)
        assert got.status_code == 404
        large = b" " * (collector.settings.max_body + 1)
        got = await client.post("/v1/jobs", content=large, headers=headers)
        assert got.status_code == 413

    collect(tmp_path, scenario, keys=str(file))


WORDS = make_survey(
    """
[questions.word]
kind = "string"
mechanism = "localhash"
epsilon = 4.0
[questions.word.dictionary]
protocol = "prefixes"
max_length = 5
alphabet = "elnortxy"
""",
    name="words",
)


@pytest.mark.slow
def test_what_one_job_discovered_another_decodes(tmp_path: Path) -> None:
    """Ids of jobs are replaced by their results; a job reads the store while others write it."""
    url = f"sqlite:///{tmp_path / 'words.db'}"
    rng = np.random.default_rng(5)
    words = ["otter"] * 3000 + ["lynx"] * 2000
    sent = [to_wire(simulate(WORDS, {"word": words[i::2]}, rng=rng)) for i in range(2)]
    with store.open(url, create=True) as opened:
        opened.add_survey(WORDS)
        opened.append(
            [
                Catalogue([WORDS]).upload(s, bytes([i] * 16), Today(today()))
                for i, s in enumerate(sent)
            ]
        )
        opened.compact()

        def done(found: Mapping[str, str], asked: JobRequest) -> dict[str, str]:
            line = json.loads(asked.to_json_line(url, WORDS, found))
            with work._opened(url) as reports:
                return work.render(work.perform(line, WORDS, reports), WORDS)

        strings = done({}, JobRequest("discover", "words", ("word",), accept="[a-z]+"))
        assert json.loads(strings["json"])["strings"] == ["otter", "lynx"]
        order = JobRequest("decode", "words", ("word",), candidates={"word": "the id of a job"})
        shares = json.loads(done({"word": strings["json"]}, order)["json"])
    assert shares["reports"] == 5000
    assert shares["estimate"] == pytest.approx([0.6, 0.4], abs=0.1)  # ten standard errors


MODES = make_survey(
    """
[questions.browser]
kind = "choice"
options = ["Firefox", "Safari"]
epsilon = 4.0
[questions.dark]
kind = "boolean"
epsilon = 3.0
""",
    name="modes",
)


def test_trends_and_subgroups(tmp_path: Path) -> None:
    """Dark mode is used by 80% of Firefox's and 20% of Safari's users; on day 2 all use Firefox."""
    url, day = f"sqlite:///{tmp_path / 'modes.db'}", date(2026, 3, 2)
    rng = np.random.default_rng(6)
    with store.open(url, create=True) as opened:
        opened.add_survey(MODES)
        for i, share in enumerate((0.5, 1.0)):
            firefox = rng.random(4000) < share
            dark = rng.random(4000) < np.where(firefox, 0.8, 0.2)
            names = np.where(firefox, "Firefox", "Safari").tolist()
            answers = {"browser": names, "dark": dark.tolist()}
            for half in range(2):
                part = {question: values[half::2] for question, values in answers.items()}
                sent = to_wire(simulate(MODES, part, rng=rng))
                key = bytes([2 * i + half] * 16)
                later = Today(day + timedelta(days=i))
                opened.append([Catalogue([MODES]).upload(sent, key, later)])
        opened.compact()

    def done(asked: JobRequest) -> dict[str, str]:
        line = json.loads(asked.to_json_line(url, MODES, {}))
        with work._opened(url) as reports:
            return work.render(work.perform(line, MODES, reports), MODES)

    trend = done(JobRequest("decode", "modes", ("browser",), by="day"))
    assert json.loads(trend["json"])["periods"] == ["2026-03-02", "2026-03-03"]
    firefox = [row[0] for row in json.loads(trend["json"])["estimate"]]
    assert firefox == pytest.approx([0.5, 1.0], abs=0.1)  # eight standard errors
    assert "<polyline" in trend["svg"] and str(tmp_path) not in "".join(trend.values())
    where = {"browser": ("Safari",)}
    subgroup = done(JobRequest("decode", "modes", ("dark",), where=where, until=day))
    assert json.loads(subgroup["json"])["where"] == {"browser": ["Safari"]}
    assert json.loads(subgroup["json"])["estimate"][0] == pytest.approx(0.2, abs=0.15)
    weeks = done(JobRequest("associate", "modes", ("browser", "dark"), by="week"))
    assert "svg" not in weeks and "Week of 2026-03-02" in weeks["section"]
    with pytest.raises(InputError, match="no reports of survey modes version 1 since") as caught:
        done(JobRequest("decode", "modes", ("dark",), since=date(2999, 1, 1)))
    assert str(tmp_path) not in work._reason(caught.value) and "<" not in work._reason(caught.value)
    assert "ValueError" in work._reason(ValueError("<Survey>"))
    with pytest.raises(InputError, match="store cannot be read"), work._opened(f"{url}x"):
        pass


def test_cancelling_is_a_kill_and_lets_the_next_one_start() -> None:
    found, job = started(FOREVER)
    until(lambda: job.done == 0.5)
    assert "running" in refused(BUSY, found.start, REQUEST, "", SURVEY)
    refused(NO_RESULT, job.result, "json")
    found.remove(job.id)
    assert job.process.wait(30) != 0
    assert job.to_dict()["state"] == "cancelled"
    again = found.start(REQUEST, "", SURVEY)
    found.stop()
    assert again.process.wait(30) != 0
    refused(BUSY, found.start, REQUEST, "", SURVEY)


@pytest.mark.parametrize(
    ("script", "detail"),
    [
        (HANG + "sys.exit(3)", "exit status 3"),
        (HANG + "import os; os.kill(os.getpid(), 9)", "ran out of memory"),
        (HANG + 'print(\'{"error": "no reports"}\')', "no reports"),
        (HANG + "print('not JSON')", "without a result"),
        (HANG + "print('x' * 1000)", "too large"),
    ],
)
def test_every_failure_is_told(script: str, detail: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "MAX_RESULT_BYTES", 500)
    _, job = started(script)
    until(lambda: job.state != "running")
    assert job.state == "failed"
    assert detail in job.detail
    job.process.wait(30)


@pytest.mark.parametrize(
    ("script", "limits", "detail"),
    [
        (
            HANG + "held = bytearray(64 << 20); time.sleep(600)",
            JobLimits(32 << 20, 600),
            "needed more than 0.0312 GiB of memory, the limit of this collector: try fewer cand",
        ),
        (FOREVER, JobLimits(1 << 40, 0.3), "took longer than 0.005 minutes, the limit"),
    ],
    ids=["memory", "time"],
)
def test_a_job_that_needs_too_much_is_killed(script: str, limits: JobLimits, detail: str) -> None:
    """The next one may start at once."""
    found, job = started(script, limits)
    until(lambda: job.state != "running")
    assert (job.state, detail in job.detail) == ("failed", True), job.detail
    assert job.process.wait(30) == -9
    found.start(REQUEST, "", SURVEY)
    found.stop()


def test_a_result_that_is_too_large_says_how_large() -> None:
    code = (
        "from contextlib import nullcontext; "
        "from deniable.collector.jobs import job_process as work; "
        "work._opened, work.perform = nullcontext, lambda *_: None; "
        "work.render = lambda *_: {'json': 'x' * (20 << 20)}; work.main()"
    )
    found = Jobs(AMPLE, (sys.executable, "-c", code))
    job = found.start(REQUEST, "", SURVEY)
    until(lambda: job.state != "running")
    wanted = "the result has 20 MiB in all its formats, more than 16, the limit of this collector"
    assert (job.state, wanted in job.detail) == ("failed", True), job.detail


def test_few_are_kept() -> None:
    script = HANG + 'print(\'{"result": {"json": "{}"}}\')'
    found, first = started(script, max_kept=2)
    until(lambda: first.state == "done")
    for _ in range(2):
        last = found.start(REQUEST, "", SURVEY)
        until(lambda job=last: job.state == "done")  # type: ignore[misc]
    assert len(found.all()) == 2 and found.all()[0] is last
    refused(UNKNOWN_JOB, found.get, first.id)
    found.stop()
    assert last.state == "done", "an ending is not undone"


def test_a_job_ends_with_the_collector() -> None:
    """A job does not outlive a killed collector: its process ends when its input is closed."""
    code = (
        "import time; from deniable.collector.jobs import job_process as work; "
        "work.perform = lambda *_: time.sleep(600); work.main()"
    )
    process = subprocess.Popen(
        (sys.executable, "-c", code), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(REQUEST.to_json_line("sqlite:///none.db", SURVEY, {}))
    process.stdin.flush()
    assert json.loads(process.stdout.readline()) == {"stage": "starting", "done": None}
    assert process.poll() is None
    process.stdin.close()
    assert process.wait(60) == 1
    process.stdout.close()


def test_orders_are_checked() -> None:
    good = {"verb": "decode", "survey": "faults", "questions": ["q"]}
    assert JobRequest.read(json.dumps(good).encode()) == JobRequest("decode", "faults", ("q",))
    bad: list[Any] = [
        [], {}, "x", good | {"verb": "delete"}, good | {"questions": []}, good | {"extra": 1},
        good | {"questions": ["q", "r"]}, good | {"questions": "q"}, good | {"alpha": 2.0},
        good | {"verb": "associate"}, good | {"verb": "associate", "questions": ["q", "q"]},
        good | {"since": "today"}, good | {"version": "1"}, good | {"candidates": ["x"]},
        good | {"candidates": {"q": "x"}}, good | {"candidates": {"q": [1]}},
        good | {"by": "month"}, good | {"where": ["r"]}, good | {"where": {"r": []}},
        good | {"where": {"r": 1}}, good | {"since": "2026-03-02", "until": "2026-03-01"},
        good | {"verb": "discover", "where": {"r": "x"}},
        good | {"candidates": {"q": ["a"] * 25_001, "r": ["a"] * 25_000}},
    ]  # fmt: skip
    for order in bad:
        refused(BAD_JOB, JobRequest.read, json.dumps(order).encode())
    refused(BAD_JOB, JobRequest.read, b"{")
    refused(BAD_JOB, JobRequest.read, b"[" * 100_000)
    refused(BAD_JOB, JobRequest("decode", "faults", ("z",)).to_json_line, "", SURVEY, {})
    for candidates in (None, {"q": ()}):
        request = JobRequest("decode", "faults", ("q",), candidates=candidates)
        assert "needs candidates" in refused(BAD_JOB, request.to_json_line, "", SURVEY, {})
    for where in ({"q": ("=a",)}, {"z": ("x",)}):
        refused(BAD_JOB, replace(REQUEST, where=where).to_json_line, "", SURVEY, {})
    given = good | {"where": {"r": "x", "s": [True, "y"]}, "by": "week", "since": "2026-03-01"}
    read = JobRequest.read(json.dumps(given).encode())
    assert (
        read.where == {"r": ("x",), "s": (True, "y")} and read.file_name == "decode-q-r-s-by-week"
    )
    assert read.options == {"where": read.where, "by": "week", "since": "2026-03-01"}
