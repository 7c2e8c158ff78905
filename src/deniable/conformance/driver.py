"""Replay test vectors in a program, through its standard input and output.

docs/how-to/other-languages.md describes the JSON objects, one per line in each direction. The
program may reply to each line at once or to all lines at the end, in any order. If it ends or stops
replying, the first vector without a reply has failed, and a new process replays the others.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any, Literal

from deniable.conformance.cases import Case
from deniable.errors import InputError

Verdict = Literal["passed", "failed", "unsupported"]
MAX_LINE_BYTES = 1 << 20
MAX_STARTS = 20
MAX_STARTS_WITHOUT_REPLY = 3


@dataclass(frozen=True)
class CaseResult:
    """Result of one test vector.

    Parameters
    ----------
    case : Case
        The vector.
    verdict : {"passed", "failed", "unsupported"}
        Whether the output of the program was correct.
    detail : str, default ""
        Reason, unless it passed.
    """

    case: Case
    verdict: Verdict
    detail: str = ""


def replay(
    command: Sequence[str], cases: Sequence[Case], *, timeout: float
) -> Iterator[CaseResult]:
    """Replay test vectors in a program, and yield the results as they arrive.

    Parameters
    ----------
    command : sequence of str
        Program with its arguments.
    cases : sequence of Case
        Vectors to replay.
    timeout : float
        Maximum seconds without a reply.

    Yields
    ------
    CaseResult
        One per vector, in the order of the replies.

    Raises
    ------
    InputError
        If the program cannot be started.
    """
    left = dict(enumerate(cases))
    starts = without_reply = 0
    while left:
        if starts == MAX_STARTS or without_reply == MAX_STARTS_WITHOUT_REPLY:
            why = f"not tried: the program was started {starts} times and failed each time"
            yield from (CaseResult(case, "failed", why) for case in left.values())
            return
        before = len(left)
        starts += 1
        yield from _replay_in_process(command, left, timeout)
        # The last result of a process that failed is the failure, not a reply.
        without_reply = without_reply + 1 if before - len(left) <= 1 else 0


def _replay_in_process(
    command: Sequence[str], left: dict[int, Case], timeout: float
) -> Iterator[CaseResult]:
    """Replay the vectors in `left` in one process, and remove them, until it fails."""
    with tempfile.TemporaryFile() as errors, _Process(command, left, errors) as process:
        while left:
            try:
                line = process.lines.get(timeout=timeout)
            except queue.Empty:
                yield _fail_first(left, f"no reply within {timeout:g} s")
                return
            if line is None:
                yield _fail_first(left, f"the program {process.ended()}{_stderr_tail(errors)}")
                return
            reply = _parse_reply(line)
            if reply is None:
                yield _fail_first(
                    left, f"a reply must be a JSON object with an id, not {line!r:.120}"
                )
            elif reply["id"] in left:
                yield _compare(left.pop(reply["id"]), reply)


def _fail_first(left: dict[int, Case], why: str) -> CaseResult:
    """Return a failure of the first vector without a reply, and remove the vector."""
    return CaseResult(left.pop(next(iter(left))), "failed", why)


def _parse_reply(line: bytes) -> dict[str, Any] | None:
    """Return the JSON object in a line; None if there is none or it has no id."""
    try:
        reply = json.loads(line)
    except (ValueError, RecursionError):
        return None
    fine = isinstance(reply, dict) and type(reply.get("id")) is int
    return reply if fine else None


def _compare(case: Case, reply: dict[str, Any]) -> CaseResult:
    """Compare the reply of the program with the expected output."""
    if "unsupported" in reply:
        return CaseResult(case, "unsupported", str(reply["unsupported"])[:200])
    if "error" in reply:
        return CaseResult(case, "failed", f"the program reports: {str(reply['error'])[:200]}")
    output = reply.get("output")
    if not isinstance(output, dict):
        return CaseResult(case, "failed", f"the output must be a JSON object, not {output!r:.120}")
    for key, expected in case.expected.items():
        if key not in output:
            return CaseResult(case, "failed", f"the output has no {key}, only {sorted(output)}")
        # Compared as JSON, because 1 == True in Python.
        if json.dumps(output[key]) != json.dumps(expected):
            return CaseResult(case, "failed", f"{key} must be {expected!r}, not {output[key]!r}")
    return CaseResult(case, "passed")


def _stderr_tail(errors: IO[bytes]) -> str:
    """Return the end of what the program wrote to its standard error."""
    errors.seek(0)
    words = errors.read()[-400:].decode(errors="replace").strip()
    return f"; it wrote: {words}" if words else ""


class _Process:
    """A running program, with threads that write its input and read its output."""

    def __init__(self, command: Sequence[str], ask: dict[int, Case], errors: IO[bytes]) -> None:
        self.lines: queue.Queue[bytes | None] = queue.Queue()
        self._asked = [
            json.dumps({"id": number, "vector": case.file, "input": case.given}).encode() + b"\n"
            for number, case in ask.items()
        ]
        try:
            self._process = subprocess.Popen(  # noqa: S603 - the user asked to run it
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )
        except OSError as error:
            raise InputError(f"cannot run {command[0]!r}: {error.strerror}") from None

    def __enter__(self) -> _Process:
        for work in (self._write, self._read):
            threading.Thread(target=work, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        """Kill the program and its children, which may still be running."""
        if os.name == "posix":
            with suppress(OSError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()
        self._process.wait()

    def ended(self) -> str:
        """Return how the program ended, in words."""
        try:
            status = self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            return "closed its output"
        return f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"

    def _write(self) -> None:
        """Write all inputs, one JSON object per line."""
        stdin = self._process.stdin
        assert stdin is not None
        with suppress(OSError), stdin:
            for line in self._asked:
                stdin.write(line)
                stdin.flush()

    def _read(self) -> None:
        """Queue the lines of the output, then None."""
        stdout = self._process.stdout
        assert stdout is not None
        with suppress(OSError), stdout:
            while line := stdout.readline(MAX_LINE_BYTES):
                self.lines.put(line)
        self.lines.put(None)
