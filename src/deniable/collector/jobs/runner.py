"""Analyses started over HTTP: each in a process of its own, so that uploads never wait for one and
cancelling is a kill. Few run at once, few are kept, in memory only."""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from threading import Lock, Thread

from deniable.collector.api.problems import BUSY, NO_RESULT, UNKNOWN_JOB, Problem
from deniable.collector.jobs.requests import JobRequest
from deniable.survey import Survey

MAX_RUNNING = 1
"""Jobs that run at once: one uses every core."""
KEPT = 20
"""Jobs remembered; with one more, the first that ended is forgotten."""
MAX_RESULT_BYTES = 16 << 20
"""Bytes of a result in all its forms; a larger one is for the command line."""
COMMAND = (sys.executable, "-m", "deniable.collector.jobs.job_process")


class Job:
    """One analysis, running or ended. Its follower's thread changes it, others only read."""

    def __init__(
        self, request: JobRequest, survey: Survey, process: subprocess.Popen[bytes]
    ) -> None:
        self.id = secrets.token_hex(8)
        self.request, self.survey, self.process = request, survey, process
        self.state = "running"
        self.stage, self.done = "starting", None
        self.detail = ""
        self.forms: dict[str, str] = {}
        self._began = time.monotonic()
        self._took: float | None = None

    def hear(self, line: bytes) -> None:
        """Take in one line that the process wrote."""
        message = json.loads(line)
        if "result" in message:
            self.forms = message["result"]
            self.end("done")
        elif "error" in message:
            self.end("failed", message["error"])
        else:
            self.stage, self.done = message["stage"], message["done"]

    def end(self, state: str, detail: str = "") -> None:
        """The first ending counts: what a killed process leaves behind changes nothing."""
        if self.state == "running":
            self._took = time.monotonic() - self._began
            self.state, self.detail = state, detail

    def cancel(self) -> None:
        """End the process, and the job unless it has ended."""
        self.end("cancelled")
        self.process.kill()

    def result(self, form: str) -> str:
        """The result in one of its forms, or raise Problem."""
        if self.state != "done":
            raise Problem(NO_RESULT, f"the job is {self.state}: only one that is done has a result")
        return self.forms[form]

    def shown(self) -> dict[str, object]:
        """Return what is told of it."""
        seconds = time.monotonic() - self._began if self._took is None else self._took
        return {
            "id": self.id,
            "verb": self.request.verb,
            "survey": self.survey.name,
            "version": self.survey.version,
            "questions": self.request.questions,
            "state": self.state,
            "stage": self.stage,
            "done": self.done,
            "seconds": round(seconds, 1),
            "detail": self.detail,
        }


class Jobs:
    """All of them. Any thread may call any method."""

    def __init__(self, command: Sequence[str] = COMMAND, *, kept: int = KEPT) -> None:
        self._command, self._kept = command, kept
        self._jobs: dict[str, Job] = {}
        self._lock = Lock()
        self._stopped = False

    def start(self, request: JobRequest, store: str, survey: Survey) -> Job:
        """Begin, unless too many run already."""
        named = {q: c for q, c in (request.candidates or {}).items() if isinstance(c, str)}
        found = {q: self.get(id).result("json") for q, id in named.items()}
        line = request.to_json_line(store, survey, found)
        with self._lock:
            running = sum(job.state == "running" for job in self._jobs.values())
            if self._stopped or running >= MAX_RUNNING:
                raise Problem(BUSY, "another job is running: cancel it, or wait")
            process = subprocess.Popen(  # noqa: S603 - the command is ours, requests go to its input
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
            job = Job(request, survey, process)
            self._jobs[job.id] = job
            for old in list(self._jobs)[: -self._kept]:
                del self._jobs[old]
        # A daemon: a stopping collector kills the process, and waits for nothing.
        Thread(target=_follow, args=(job, line), name="deniable-job", daemon=True).start()
        return job

    def get(self, id: str) -> Job:
        """The job of this id, or raise Problem."""
        try:
            return self._jobs[id]
        except KeyError:
            raise Problem(UNKNOWN_JOB, f"no job {id!r:.40} is kept here") from None

    def all(self) -> list[Job]:
        """The newest first."""
        with self._lock:
            return list(self._jobs.values())[::-1]

    def remove(self, id: str) -> None:
        """Cancel a job that runs, forget one that has ended."""
        job = self.get(id)
        if job.state == "running":
            job.cancel()
            return
        with self._lock:
            self._jobs.pop(id, None)

    def stop(self) -> None:
        """End every process; start none any more."""
        with self._lock:
            self._stopped = True
            jobs = list(self._jobs.values())
        for job in jobs:
            job.cancel()


def _follow(job: Job, line: bytes) -> None:
    """Give the process its request and hear it to its end. Nothing of what it says is logged."""
    process = job.process
    assert process.stdin is not None and process.stdout is not None
    try:
        with suppress(OSError):  # it has ended before it heard everything
            process.stdin.write(line)
            process.stdin.flush()
        with suppress(ValueError, KeyError):  # it was killed in the middle of a line
            while line := process.stdout.readline(MAX_RESULT_BYTES):
                if len(line) == MAX_RESULT_BYTES:
                    job.end("failed", "the result is too large for a page: use the command line")
                    break
                job.hear(line)
    finally:
        process.kill()
        process.wait()
        with suppress(OSError):
            process.stdin.close()
        process.stdout.close()
        job.end("failed", "the job ended without a result; perhaps memory ran out")
