"""Run analyses that were started over HTTP, each in a separate process.

Uploads therefore never wait for an analysis, and cancelling kills the process. One job runs
at a time, and the last few are remembered in memory.
"""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from threading import Event, Lock, Thread

from deniable.collector.api.problems import BAD_JOB, BUSY, NO_RESULT, UNKNOWN_JOB, Problem
from deniable.collector.jobs.limits import ADVICE, CHECK_SECONDS, MAX_RESULT_BYTES, JobLimits
from deniable.collector.jobs.requests import JobRequest
from deniable.survey import Survey

MAX_KEPT_JOBS = 20
"""Largest number of jobs that are remembered; the oldest is forgotten first."""
KILLED = -9
"""Status of a process that the operating system killed, as it does if memory runs out."""
EXIT_SECONDS = 2.0
"""How long a process that closed its output may take to end."""
COMMAND = (sys.executable, "-m", "deniable.collector.jobs.job_process")


class Job:
    """One analysis, running or ended.

    Only the threads that follow and watch its process change it; others read or cancel it.

    state : "running", "done", "failed" or "cancelled"; stage : what the process is doing;
    done : completed share of the stage, or None; detail : why the job failed;
    formats : the result, by name of its format; outcomes : counts ended jobs by state
    """

    def __init__(
        self,
        request: JobRequest,
        survey: Survey,
        process: subprocess.Popen[bytes],
        outcomes: Counter[str],
    ) -> None:
        self.id = secrets.token_hex(8)
        self.request, self.survey, self.process = request, survey, process
        self._outcomes = outcomes
        self.state = "running"
        self.stage, self.done = "starting", None
        self.detail = ""
        self.formats: dict[str, str] = {}
        self._started = time.monotonic()
        self._duration: float | None = None
        self.ended, self._ending = Event(), Lock()

    def handle_line(self, line: bytes) -> None:
        """Handle one line of JSON that the process wrote: progress, a result or an error."""
        message = json.loads(line)
        if "result" in message:
            self.formats = message["result"]
            self.end("done")
        elif "error" in message:
            self.end("failed", message["error"])
        else:
            self.stage, self.done = message["stage"], message["done"]

    def end(self, state: str, detail: str = "") -> None:
        """End the job; later calls change nothing, such as one after the process was killed."""
        with self._ending:
            if self.state == "running":
                self._duration = self.seconds
                self.state, self.detail = state, detail
                self._outcomes[state] += 1
                self.ended.set()

    def cancel(self, state: str = "cancelled", detail: str = "") -> None:
        """Kill the process, and end the job if it is running."""
        self.end(state, detail)
        self.process.kill()

    @property
    def seconds(self) -> float:
        """Seconds for which the job has been running, or ran."""
        return time.monotonic() - self._started if self._duration is None else self._duration

    def result(self, form: str) -> str:
        """Return the result in one format, or raise Problem if there is none."""
        if self.state != "done":
            raise Problem(NO_RESULT, f"the job is {self.state}, so it has no result")
        if form not in self.formats:
            raise Problem(NO_RESULT, f"this result has no {form}: it has no chart")
        return self.formats[form]

    def discovered(self) -> str:
        """Return the discovery as JSON, or raise Problem if the job is none."""
        if self.request.verb != "discover" or self.request.by:
            detail = f"job {self.id} is no discovery of all its days, so it has no candidates"
            raise Problem(BAD_JOB, detail)
        return self.result("json")

    def to_dict(self) -> dict[str, object]:
        """Return the JSON object that describes the job."""
        downloads = [form for form in self.formats if form != "section"]
        return {
            "id": self.id,
            "verb": self.request.verb,
            "survey": self.survey.name,
            "version": self.survey.version,
            "questions": self.request.questions,
            "state": self.state,
            "stage": self.stage,
            "done": self.done,
            "seconds": round(self.seconds, 1),
            "detail": self.detail,
            **self.request.options,
            **({"formats": downloads} if self.state == "done" else {}),
        }


class Jobs:
    """All jobs of a collector. Every method may be called from any thread."""

    def __init__(
        self,
        limits: JobLimits,
        command: Sequence[str] = COMMAND,
        *,
        max_kept: int = MAX_KEPT_JOBS,
        outcomes: Counter[str] | None = None,
    ) -> None:
        self._limits, self._command, self._max_kept = limits, command, max_kept
        self._outcomes = Counter[str]() if outcomes is None else outcomes
        self._jobs: dict[str, Job] = {}
        self._lock = Lock()
        self._stopped = False

    def start(self, request: JobRequest, store: str, survey: Survey) -> Job:
        """Start a job, or raise Problem if another one is running."""
        job_ids = {q: c for q, c in (request.candidates or {}).items() if isinstance(c, str)}
        discoveries = {q: self.get(id).discovered() for q, id in job_ids.items()}
        line = request.to_json_line(store, survey, discoveries)
        with self._lock:
            # One job at a time, because it uses every core.
            if self._stopped or any(job.state == "running" for job in self._jobs.values()):
                raise Problem(BUSY, "another job is running: wait for it, or cancel it")
            process = subprocess.Popen(  # noqa: S603 - a fixed command, which reads the request from its input
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
            job = Job(request, survey, process, self._outcomes)
            self._jobs[job.id] = job
            for old in list(self._jobs)[: -self._max_kept]:
                del self._jobs[old]
        # Daemon threads: a stopping collector kills the process and does not wait.
        for work in (partial(_follow_process, job, line), partial(_watch, job, self._limits)):
            Thread(target=work, name="deniable-job", daemon=True).start()
        return job

    def get(self, id: str) -> Job:
        """Return a job by its id, or raise Problem."""
        try:
            return self._jobs[id]
        except KeyError:
            raise Problem(UNKNOWN_JOB, f"there is no job {id!r:.40}, or it was forgotten") from None

    def all(self) -> list[Job]:
        """Return all jobs, the newest first."""
        with self._lock:
            return list(self._jobs.values())[::-1]

    def running(self) -> int:
        """Return the number of running jobs."""
        return sum(job.state == "running" for job in self.all())

    def remove(self, id: str) -> None:
        """Cancel a running job, or forget one that has ended."""
        job = self.get(id)
        if job.state == "running":
            job.cancel()
            return
        with self._lock:
            self._jobs.pop(id, None)

    def stop(self) -> None:
        """Kill every process, and start no more jobs."""
        with self._lock:
            self._stopped = True
            jobs = list(self._jobs.values())
        for job in jobs:
            job.cancel()


def _watch(job: Job, limits: JobLimits) -> None:
    """Kill the process of a job that exceeds a limit."""
    while not job.ended.wait(CHECK_SECONDS):
        if reason := limits.exceeded(job.process.pid, job.seconds):
            job.cancel("failed", reason)


def _follow_process(job: Job, line: bytes) -> None:
    """Send the request to the process, and handle its output until it ends. Log nothing of it."""
    process = job.process
    assert process.stdin is not None and process.stdout is not None
    try:
        with suppress(OSError):  # the process ended before it read the request
            process.stdin.write(line)
            process.stdin.flush()
        with suppress(ValueError, KeyError):  # the process was killed within a line
            while line := process.stdout.readline(MAX_RESULT_BYTES):
                if len(line) == MAX_RESULT_BYTES:
                    job.end("failed", f"the result is too large: {ADVICE}")
                    break
                job.handle_line(line)
    finally:
        with suppress(subprocess.TimeoutExpired):  # a process that has ended leaves its status
            process.wait(EXIT_SECONDS if job.state == "running" else 0)
        status = process.poll()
        process.kill()
        process.wait()
        with suppress(OSError):
            process.stdin.close()
        process.stdout.close()
        job.end("failed", _why_ended(status))


def _why_ended(status: int | None) -> str:
    """Return why a process ended without a result, from its exit status."""
    if status == KILLED:
        cause = "most likely because the machine ran out of memory"
        return f"the analysis was killed, {cause}: {ADVICE}"
    how = "it wrote what cannot be read"
    if status is not None:
        how = f"signal {-status}" if status < 0 else f"exit status {status}"
    return (
        f"the analysis stopped without a result ({how}). This is a defect: the same analysis on "
        "the command line shows more"
    )
