"""What runs in a job's own process: one request in, progress and one result out, as lines of JSON.

The process ends when its standard input does, so that no job outlives the collector that started
it, however that ended. All that is shown later is made here: the collector never loads the
analysis, and a table of tests needs the reports themselves.
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
from deniable.survey import Survey

if TYPE_CHECKING:
    from deniable.results import Result

Line = dict[str, Any]
"""A line of JSON."""
NICE = 10
"""Uploads come first."""
PROGRESS_SECONDS = 0.2


def perform(request: Line, survey: Survey) -> Result:
    """Run the verb that was asked for."""
    from deniable.analysis import associate, decode
    from deniable.analysis.source import Stored
    from deniable.discovery import discover
    from deniable.results import Discovery

    first, last = (date.fromisoformat(d) if (d := request[k]) else None for k in ("since", "until"))
    reports = Stored(request["store"], first, last)
    candidates = {q: Discovery.from_json(text) for q, text in request["found"].items()}
    candidates |= request["candidates"]
    names, alpha = request["questions"], request["alpha"]
    if request["verb"] == "associate":
        return associate(survey, reports, names, candidates=candidates, alpha=alpha)
    if request["verb"] == "discover":
        return discover(survey, reports, names[0], accept=request["accept"], alpha=alpha)
    return decode(survey, reports, names[0], candidates.get(names[0]), alpha=alpha)


def render(result: Result, survey: Survey) -> dict[str, str]:
    """The result in every form that it is fetched in."""
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
    """Read the request, run it, write what came out."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints is not ours
    with suppress(AttributeError, OSError):
        os.nice(NICE)
    request = json.loads(sys.stdin.buffer.readline())
    Thread(target=_end_with, args=(sys.stdin.buffer,), daemon=True).start()
    last = 0.0

    def tell(stage: str, done: float | None) -> None:
        nonlocal last
        if done in (None, 0, 1) or time.monotonic() - last > PROGRESS_SECONDS:
            last = time.monotonic()
            _say(out, {"stage": stage, "done": done})

    try:
        survey = Survey.from_json(request["survey"].encode())
        tell("starting", None)
        with listening(tell):
            result = perform(request, survey)
        tell("writing", None)
        _say(out, {"result": render(result, survey)})
    except DeniableError as error:
        _say(out, {"error": str(error)})
    except ModuleNotFoundError as error:
        _say(out, {"error": f"analysis needs {error.name}: pip install 'deniable[analysis]'"})
    except MemoryError:
        _say(out, {"error": "there was not enough memory: try fewer candidates or fewer days"})


def _say(out: BinaryIO, content: Line) -> None:
    out.write(json.dumps(content).encode() + b"\n")
    out.flush()


def _end_with(stream: BinaryIO) -> None:
    while stream.read(1 << 16):
        pass
    os._exit(1)


if __name__ == "__main__":
    main()
