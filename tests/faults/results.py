"""Tables of campaigns in a data file, which the documentation shows; see tools/facts.py."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deniable.version import __version__

PROGRESS_SECONDS = 10.0
"""Shortest time between two lines of progress."""


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write data with a line per object or list of plain values, so that changes are readable."""
    path.write_text(_text(content, 0) + "\n")


def _text(value: Any, depth: int) -> str:
    """Return a value as JSON; what holds objects or lists spans several lines."""
    named = isinstance(value, Mapping)
    parts = value.values() if named else value if isinstance(value, list) else ()
    if not any(isinstance(part, Mapping | list) for part in parts):
        return json.dumps(value, ensure_ascii=False)
    texts = [_text(part, depth + 1) for part in parts]
    if named:
        texts = [f"{json.dumps(key)}: {text}" for key, text in zip(value, texts, strict=True)]
    inner, outer = "\n" + " " * (depth + 1), "\n" + " " * depth
    return f"{'{' if named else '['}{inner}{f',{inner}'.join(texts)}{outer}{'}' if named else ']'}"


@dataclass(frozen=True)
class Conditions:
    """The machine and the version that a row was measured with.

    seconds : how long it took; seed : seed of the random numbers, None if the operating system
    draws them; load : load average at the end
    """

    seconds: float
    seed: int | None = None
    version: str = __version__
    python: str = field(default_factory=platform.python_version)
    processors: int = field(default_factory=lambda: os.cpu_count() or 1)
    load: float = field(default_factory=lambda: round(os.getloadavg()[0], 1))


def text_of(runs: Iterable[Mapping[str, Any]]) -> str:
    """Return the conditions of several rows, for people."""
    runs = list(runs)

    def every(name: str) -> str:
        return ", ".join(sorted({str(run[name]) for run in runs if run[name] is not None}))

    loads = [run["load"] for run in runs]
    load = f"{min(loads)} to {max(loads)}" if min(loads) < max(loads) else f"{loads[0]}"
    minutes = sum(run["seconds"] for run in runs) / 60
    seed = f"seed {every('seed')}, " if every("seed") else ""
    return (
        f"deniable {every('version')}, Python {every('python')}, {every('processors')} processors, "
        f"{seed}load average {load}, {minutes:.0f} minutes in all"
    )


def write_rows(
    file: Path, name: str, rows: Mapping[str, list[Any]], runs: Mapping[str, Conditions]
) -> None:
    """Replace some rows of a table, or add them, with the conditions of each."""
    data = json.loads(file.read_text())
    table = data["tables"][name]
    table["rows"].update(rows)
    table["runs"] = {
        **{row: run for row, run in table.get("runs", {}).items() if row in table["rows"]},
        **{row: vars(run) for row, run in runs.items()},
    }
    table["conditions"] = text_of(table["runs"].values())
    write_json(file, data)


class ProgressLines:
    """Prints how far a fault is, now and then; a listener of `deniable.compute.progress`."""

    def __init__(self, name: str) -> None:
        self.name, self._start = name, time.monotonic()
        self._printed = self._start

    def __call__(self, stage: str, done: float) -> None:
        now = time.monotonic()
        if now - self._printed > PROGRESS_SECONDS:
            self._printed = now
            print(f"{self.name}: {done:.0%} of {stage} ({now - self._start:.0f} s)", flush=True)
