"""Asking a program to replay the vectors, over its standard input and output.

docs/how-to/other-languages.md describes the JSON objects, one per line each way. The program may
answer each line as it comes or all at the end, in any order. When it dies or falls silent,
the first vector without an answer is to blame, and a new process is asked the rest.
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
LONGEST_LINE = 1 << 20
MOST_STARTS = 20
MOST_FRUITLESS = 3


@dataclass(frozen=True)
class CaseResult:
    """How a program did on one vector, and why."""

    case: Case
    verdict: Verdict
    detail: str = ""


def replay(
    command: Sequence[str], cases: Sequence[Case], *, timeout: float
) -> Iterator[CaseResult]:
    """One finding for each case, as they come. `timeout` is seconds without an answer."""
    left = dict(enumerate(cases))
    starts = fruitless = 0
    while left:
        if starts == MOST_STARTS or fruitless == MOST_FRUITLESS:
            why = f"not asked: the program was started {starts} times and failed every time"
            yield from (CaseResult(case, "failed", why) for case in left.values())
            return
        before = len(left)
        starts += 1
        yield from _one_process(command, left, timeout)
        # The last finding of a process that failed is the failure itself, no answer.
        fruitless = fruitless + 1 if before - len(left) <= 1 else 0


def _one_process(
    command: Sequence[str], left: dict[int, Case], timeout: float
) -> Iterator[CaseResult]:
    """Ask one process all that is left, until all is answered or it fails; takes from `left`."""
    with tempfile.TemporaryFile() as errors, _Process(command, left, errors) as process:
        while left:
            try:
                line = process.lines.get(timeout=timeout)
            except queue.Empty:
                yield _blame(left, f"no answer within {timeout:g} s")
                return
            if line is None:
                yield _blame(left, f"the program {process.ended()}{_last_words(errors)}")
                return
            reply = _parsed(line)
            if reply is None:
                yield _blame(left, f"expected a reply, a JSON object with an id; got {line!r:.120}")
            elif reply["id"] in left:
                yield _compare(left.pop(reply["id"]), reply)


def _blame(left: dict[int, Case], why: str) -> CaseResult:
    return CaseResult(left.pop(next(iter(left))), "failed", why)


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        reply = json.loads(line)
    except (ValueError, RecursionError):
        return None
    fine = isinstance(reply, dict) and type(reply.get("id")) is int
    return reply if fine else None


def _compare(case: Case, reply: dict[str, Any]) -> CaseResult:
    if "unsupported" in reply:
        return CaseResult(case, "unsupported", str(reply["unsupported"])[:200])
    if "error" in reply:
        return CaseResult(case, "failed", f"the program says: {str(reply['error'])[:200]}")
    output = reply.get("output")
    if not isinstance(output, dict):
        return CaseResult(case, "failed", f"expected an output, an object; got {output!r:.120}")
    for key, expected in case.expected.items():
        if key not in output:
            return CaseResult(case, "failed", f"expected {key} in the output; got {sorted(output)}")
        # As JSON: in Python alone 1 == True.
        if json.dumps(output[key]) != json.dumps(expected):
            return CaseResult(case, "failed", f"{key}: expected {expected!r}, got {output[key]!r}")
    return CaseResult(case, "passed")


def _last_words(errors: IO[bytes]) -> str:
    errors.seek(0)
    words = errors.read()[-400:].decode(errors="replace").strip()
    return f"; it wrote: {words}" if words else ""


class _Process:
    """A running program, its input being written and its output being read meanwhile."""

    def __init__(self, command: Sequence[str], ask: dict[int, Case], errors: IO[bytes]) -> None:
        self.lines: queue.Queue[bytes | None] = queue.Queue()
        self._asked = [
            json.dumps({"id": number, "vector": case.file, "input": case.given}).encode() + b"\n"
            for number, case in ask.items()
        ]
        try:
            self._process = subprocess.Popen(  # noqa: S603 - running it is what was asked for
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )
        except OSError as error:
            raise InputError(f"cannot run {command[0]!r}: {error}") from None

    def __enter__(self) -> _Process:
        for work in (self._write, self._read):
            threading.Thread(target=work, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        """It may still be writing, or asleep, or have children: none outlives the question."""
        if os.name == "posix":
            with suppress(OSError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()
        self._process.wait()

    def ended(self) -> str:
        """How, in words."""
        try:
            status = self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            return "closed its output"
        return f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"

    def _write(self) -> None:
        stdin = self._process.stdin
        assert stdin is not None
        with suppress(OSError), stdin:
            for line in self._asked:
                stdin.write(line)
                stdin.flush()

    def _read(self) -> None:
        stdout = self._process.stdout
        assert stdout is not None
        with suppress(OSError), stdout:
            while line := stdout.readline(LONGEST_LINE):
                self.lines.put(line)
        self.lines.put(None)
