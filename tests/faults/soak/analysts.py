"""What analysts ask of a running collector over HTTP, and the check of what it answers."""

from __future__ import annotations

import http.client
import json
import random
import time
from typing import Any

from tests.faults.crowd import SURVEY
from tests.faults.soak.collector import SoakedCollector
from tests.faults.soak.uploads import serials_of

JOB_SECONDS = 120
"""Most seconds that a job may take."""
POLL_SECONDS = 0.5
LOST = (OSError, http.client.HTTPException)


class Interrupted(Exception):
    """The collector was restarted meanwhile, or was busy."""


class Analyst:
    """Sends requests to a collector, as long as it is not restarted."""

    def __init__(self, run: SoakedCollector) -> None:
        self.run, self.life = run, run.life

    def ask(self, method: str, route: str, content: Any = None, **parts: str) -> bytes:
        """Return the answer to a request, which must succeed; raise Interrupted if it cannot."""
        seen, start = self.run.seen, self.run.seen.now()
        port = self.run.server.port
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        try:
            headers = {"Authorization": f"Bearer {self.run.analyst_token}"}
            data = None if content is None else json.dumps(content).encode()
            connection.request(method, route.format(**parts), data, headers)
            answer = connection.getresponse()
            status, body = answer.status, answer.read()
        except LOST:
            seen.broken.append((start, seen.now()))
            raise Interrupted from None
        finally:
            connection.close()
        seen.answer(f"{method} {route}", status, body)
        if self.run.life != self.life or status == 503:
            raise Interrupted
        assert status < 400, f"{method} {route} was answered {status}: {body[:200]!r}"
        return body

    def compacted(self) -> int:
        """Return the number of reports that analysts see."""
        versions = json.loads(self.ask("GET", "/v1/surveys/{name}/counts", name=SURVEY.name))
        return sum(sum(version["days"].values()) for version in versions)


def export_over_http(run: SoakedCollector, rng: random.Random) -> str:
    """Export reports: analysts see compacted ones, each once."""
    analyst = Analyst(run)
    least = analyst.compacted()
    route = "/v1/surveys/{name}/{version}/reports"
    serials = serials_of(analyst.ask("GET", route, name=SURVEY.name, version="1"))
    for wrong in run.uploads.differences(serials):
        run.seen.fault(f"export over HTTP: {wrong}")
    assert len(serials) >= least, f"{len(serials)} reports exported of {least}"
    return f"{len(serials):,} reports"


def job(run: SoakedCollector, rng: random.Random) -> str:
    """Start an analysis, and wait for its result, or cancel it."""
    analyst = Analyst(run)
    least = analyst.compacted()
    if not least:
        return "no reports yet"
    wanted = {"verb": "decode", "survey": SURVEY.name, "questions": ["q"]}
    candidates = {"candidates": {"q": ["one", "two"]}}
    id = json.loads(analyst.ask("POST", "/v1/jobs", wanted | candidates))["id"]
    if rng.random() < 0.2:
        time.sleep(rng.uniform(0, 2))
        analyst.ask("DELETE", "/v1/jobs/{id}", id=id)
        return "cancelled"
    deadline = time.monotonic() + JOB_SECONDS
    while (state := json.loads(analyst.ask("GET", "/v1/jobs/{id}", id=id)))["state"] == "running":
        assert time.monotonic() < deadline, f"a job takes more than {JOB_SECONDS} s"
        time.sleep(POLL_SECONDS)
    assert state["state"] == "done", f"a job {state['state']}: {state['detail']}"
    result = json.loads(analyst.ask("GET", "/v1/jobs/{id}/result.{form}", id=id, form="json"))
    reports, most = result["reports"], analyst.compacted()
    assert least <= reports <= most, f"a job counts {reports}, not {least} to {most} reports"
    return f"{reports:,} reports"
