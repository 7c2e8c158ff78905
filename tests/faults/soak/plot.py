"""Draw a run from its data: python -m tests.faults.soak.plot docs/results/data/soak.json PICTURE"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

ROWS = {
    "killed": ("kill",),
    "stopped": ("stop",),
    "clock wrong": ("jump",),
    "compaction": ("compaction", "compact"),
    "analysis": ("job", "decode"),
    "export": ("export", "export over HTTP"),
    "backup, check": ("backup", "check", "final check"),
    "old reports": ("import",),
}
"""Rows of the panel of events, and the kinds of events in each."""
COLOURS = {"killed": "#b03030", "stopped": "#d08030", "clock wrong": "#7a5fa8"}
INK, LIGHT = "#2f5d8a", "#9db8d2"
LEAST_WIDTH = 0.002
"""Smallest width of an event, as a share of the run, so that it can be seen."""


def draw(data: dict[str, Any]) -> Figure:
    """Return the picture of a run: latency, throughput, memory, open files and events."""
    length = data["parameters"]["seconds"]
    unit, name = (60, "minutes") if length >= 180 else (1, "seconds")
    figure = Figure(figsize=(9, 9), layout="constrained")
    panels = figure.subplots(5, 1, sharex=True, height_ratios=[3, 2, 2, 2, 3])
    latency, process = data["series"]["latency"], data["series"]["process"]
    times = np.array(latency["seconds"]) / unit
    _line(panels[0], times, latency["p99_ms"], INK, "99th percentile")
    _line(panels[0], times, latency["p50_ms"], LIGHT, "median")
    panels[0].set(yscale="log", ylabel="latency of\nuploads (ms)")
    panels[0].legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, frameon=False)
    _line(panels[1], times, latency["per_second"], INK)
    panels[1].set(ylabel="uploads\nper second", ylim=(0, None))
    for panel, column, label in (
        (panels[2], "memory_mib", "memory of the\ncollector (MiB)"),
        (panels[3], "files", "open files of\nthe collector"),
    ):
        for life in sorted(set(process["life"])):
            chosen = np.array(process["life"]) == life
            at = np.array(process["seconds"])[chosen] / unit
            panel.plot(at, np.array(process[column])[chosen], color=INK, lw=1)
        panel.set(ylabel=label, ylim=(0, None))
    _events(panels[4], data["events"], length, unit)
    panels[4].set(xlabel=name, xlim=(0, length / unit))
    for panel in panels:
        panel.spines[["top", "right"]].set_visible(False)
        for event in data["events"]:
            if event["kind"] == "kill":
                panel.axvline(event["start"] / unit, color=COLOURS["killed"], lw=0.4, alpha=0.5)
    return figure


def _line(panel: Axes, times: Any, values: list[float | None], colour: str, name: str = "") -> None:
    panel.plot(times, np.array(values, float), color=colour, lw=1.2, label=name)


def _events(panel: Axes, events: list[dict[str, Any]], length: float, unit: float) -> None:
    """Draw a bar per event, in a row per kind."""
    for row, (name, kinds) in enumerate(ROWS.items()):
        bars = [
            (e["start"] / unit, max(e["end"] - e["start"], LEAST_WIDTH * length) / unit)
            for e in events
            if e["kind"] in kinds
        ]
        panel.broken_barh(bars, (row - 0.35, 0.7), color=COLOURS.get(name, INK))
    panel.set(yticks=range(len(ROWS)), yticklabels=list(ROWS), ylim=(len(ROWS) - 0.5, -0.5))


def main(source: str, target: str) -> None:
    mpl.use("Agg")
    draw(json.loads(Path(source).read_text())).savefig(target, dpi=130)


if __name__ == "__main__":
    main(*sys.argv[1:])
