"""The program of a job's process: read one request, write progress and one result, as JSON lines.

The process ends when its standard input is closed, so that no job outlives its collector, even if
the collector is killed. It renders the result in every format, so that the collector never imports
the analysis.
"""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import suppress
from datetime import date
from threading import Thread
from typing import TYPE_CHECKING, Any, BinaryIO

from deniable.compute.progress import listening
from deniable.errors import DeniableError
from deniable.extras import needs_packages
from deniable.survey import Survey

if TYPE_CHECKING:
    from deniable.results import Result

JsonObject = dict[str, Any]
NICENESS = 10
"""Added to the process's niceness, because uploads have priority."""
PROGRESS_SECONDS = 0.2
"""Shortest time between two lines of progress within a stage."""


def perform(request: JsonObject, survey: Survey) -> Result:
    """Run the requested analysis."""
    from deniable.analysis import associate, decode
    from deniable.analysis.source import Stored
    from deniable.discovery import discover
    from deniable.results import Discovery

    first, last = (date.fromisoformat(d) if (d := request[k]) else None for k in ("since", "until"))
    reports = Stored(request["store"], first, last)
    candidates = {q: Discovery.from_json(text) for q, text in request["discoveries"].items()}
    candidates |= request["candidates"]
    names, alpha = request["questions"], request["alpha"]
    if request["verb"] == "associate":
        return associate(survey, reports, names, candidates=candidates, alpha=alpha)
    if request["verb"] == "discover":
        return discover(survey, reports, names[0], accept=request["accept"], alpha=alpha)
    return decode(survey, reports, names[0], candidates.get(names[0]), alpha=alpha)


def render(result: Result, survey: Survey) -> dict[str, str]:
    """Return the result in every format; "section" is HTML to insert into a page."""
    from deniable.columns.spreadsheet import csv_text
    from deniable.render import view_of
    from deniable.render.html import report

    columns = result.columns()
    rows = zip(*columns.values(), strict=True)
    return {
        "json": result.to_json(),
        "csv": csv_text([list(columns), *map(list, rows)]),
        "html": report([result], survey=survey),
        "section": view_of(result).section(survey),
    }


def main() -> None:
    """Read a request from standard input, run it, and write the result to standard output."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # output of libraries must not mix with the lines of JSON
    with suppress(AttributeError, OSError):
        os.nice(NICENESS)
    request = json.loads(sys.stdin.buffer.readline())
    Thread(target=_exit_at_end_of, args=(sys.stdin.buffer,), daemon=True).start()
    last_time = 0.0

    def write_progress(stage: str, done: float | None) -> None:
        nonlocal last_time
        if done in (None, 0, 1) or time.monotonic() - last_time > PROGRESS_SECONDS:
            last_time = time.monotonic()
            _write_line(out, {"stage": stage, "done": done})

    try:
        survey = Survey.from_json(request["survey"].encode())
        write_progress("starting", None)
        with listening(write_progress), needs_packages("the analysis"):
            result = perform(request, survey)
        write_progress("writing the result", None)
        _write_line(out, {"result": render(result, survey)})
    except DeniableError as error:
        _write_line(out, {"error": str(error)})
    except MemoryError:
        _write_line(out, {"error": "not enough memory: try fewer candidates or fewer days"})


def _write_line(out: BinaryIO, content: JsonObject) -> None:
    """Write one line of JSON."""
    out.write(json.dumps(content).encode() + b"\n")
    out.flush()


def _exit_at_end_of(stream: BinaryIO) -> None:
    """End this process when the stream is closed."""
    while stream.read(1 << 16):
        pass
    os._exit(1)


if __name__ == "__main__":
    main()
