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
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from threading import Thread
from typing import TYPE_CHECKING, Any, BinaryIO

from deniable import store as stores
from deniable.collector.jobs.limits import ADVICE, check_result
from deniable.compute.progress import listening
from deniable.errors import DeniableError, InputError, StoreError
from deniable.extras import needs_packages
from deniable.store import Store
from deniable.survey import Survey

if TYPE_CHECKING:
    from deniable.analysis.source import Stored
    from deniable.results import Result

JsonObject = dict[str, Any]
NICENESS = 10
"""Added to the process's niceness, because uploads have priority."""
STORE_NAME = "the collector's store"
"""What results and messages call the store."""
PROGRESS_SECONDS = 0.2
"""Shortest time between two lines of progress within a stage."""


def perform(request: JsonObject, survey: Survey, store: Store) -> Result:
    """Run the requested analysis, of all days together or of each day or week."""
    from deniable.analysis import by_period
    from deniable.analysis.source import Stored

    first, last = request["since"], request["until"]
    if not request["by"]:
        return analyse(request, survey, Stored(store, first, last))
    # Questions cannot be decoded on some days only: what is wrong on one is wrong on all.
    strict = request["verb"] == "decode"
    work = partial(analyse, request, survey)
    return by_period(survey, store, work, by=request["by"], since=first, until=last, strict=strict)


def analyse(request: JsonObject, survey: Survey, reports: Stored) -> Result:
    """Run the requested analysis of some days."""
    from deniable.analysis import associate, decode
    from deniable.discovery import discover
    from deniable.results import Discovery

    candidates = {q: Discovery.from_json(text) for q, text in request["discoveries"].items()}
    candidates |= request["candidates"]
    names, alpha = request["questions"], request["alpha"]
    if request["verb"] == "associate":
        return associate(survey, reports, names, candidates=candidates, alpha=alpha)
    if request["verb"] == "discover":
        return discover(survey, reports, names[0], accept=request["accept"], alpha=alpha)
    if where := request["where"]:
        return decode(survey, reports, names[0], candidates, where=where, alpha=alpha)
    return decode(survey, reports, names[0], candidates.get(names[0]), alpha=alpha)


def render(result: Result, survey: Survey) -> dict[str, str]:
    """Return the result in every format; "section" is HTML to insert into a page.

    A result without a chart has no SVG.
    """
    from deniable.columns.spreadsheet import csv_text
    from deniable.render import view_of
    from deniable.render.html import report
    from deniable.render.svg_marks import WIDE, standalone

    columns, view = result.columns(), view_of(result)
    chart = view.chart(WIDE)
    rows = zip(*columns.values(), strict=True)
    return {
        "json": result.to_json(),
        "csv": csv_text([list(columns), *map(list, rows)]),
        "html": report([result], survey=survey),
        "section": view.section(survey),
        **({"svg": standalone(chart)} if chart else {}),
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
        with _opened(request["store"]) as store, listening(write_progress):
            with needs_packages("the analysis"):
                result = perform(request, survey, store)
            write_progress("writing the result", None)
            # The store is still open: tests of a joint table may read the reports again.
            line = {"result": render(result, survey)}
            check_result(len(json.dumps(line)))
            _write_line(out, line)
    except Exception as error:
        _write_line(out, {"error": _reason(error)})


@contextmanager
def _opened(url: str) -> Iterator[Store]:
    """Open the store, to read only shuffled reports.

    Results and messages do not name its address, which is the operator's.
    """
    try:
        opened = stores.open(url, compacted_only=True)
    except StoreError:
        raise InputError("the collector's store cannot be read at the moment") from None
    with opened as store:
        store.url = STORE_NAME
        yield store


def _reason(error: Exception) -> str:
    """Return why an analysis failed, for analysts."""
    if isinstance(error, DeniableError):
        return str(error)
    if isinstance(error, MemoryError):
        return f"there is not enough memory: {ADVICE}"
    return (
        f"the analysis failed because of a defect ({type(error).__name__}): the same analysis on "
        "the command line shows more"
    )


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
