"""The data of a run: parameters, a table for people, series, and events."""

from __future__ import annotations

from dataclasses import asdict
from itertools import pairwise
from typing import Any

import numpy as np

from tests.faults.results import Conditions, text_of
from tests.faults.soak.collector import JUMPS, SoakedCollector
from tests.faults.soak.observed import Observations
from tests.faults.soak.table import rows
from tests.faults.soak.verdict import MIB

BINS = 60
"""Periods for which latency and throughput are given: minutes, if a run takes an hour."""


def results(run: SoakedCollector) -> dict[str, Any]:
    """Return the data of a run: parameters, tables, series and events."""
    plan, seen = run.plan, run.seen
    minutes, conditions = plan.seconds / 60, Conditions(round(seen.now(), 1), plan.seed)
    return {
        "parameters": {**asdict(plan), "at_least": plan.at_least, "jumps": str(JUMPS)},
        "conditions": vars(conditions),
        "tables": {
            "soak": {
                "command": f"python -m tests.faults.soak --minutes {minutes:g} --seed {plan.seed}",
                "conditions": text_of([vars(conditions)]),
                "columns": {"what": "What", "seen": "Seen"},
                "rows": {name: list(row) for name, row in rows(run).items()},
            }
        },
        "series": {"latency": latency(run), "process": process(seen)},
        "events": [
            {**asdict(event), "start": round(event.start, 1), "end": round(event.end, 1)}
            for event in seen.events
        ],
        "faults": seen.faults,
    }


def latency(run: SoakedCollector) -> dict[str, list[Any]]:
    """Return median and 99th percentile of latency, and uploads per second, of each period."""
    at, took = np.asarray(run.seen.at), 1000 * np.asarray(run.seen.latency)
    edges = np.linspace(0, run.plan.seconds, BINS + 1)
    columns: dict[str, list[Any]] = {"seconds": [], "p50_ms": [], "p99_ms": [], "per_second": []}
    for start, end in pairwise(edges):
        inside = took[(at >= start) & (at < end)]
        p50, p99 = np.quantile(inside, [0.5, 0.99]).round(2).tolist() if len(inside) else [None] * 2
        values = (round((start + end) / 2, 1), p50, p99, round(len(inside) / (end - start), 1))
        for column, value in zip(columns.values(), values, strict=True):
            column.append(value)
    return columns


def process(seen: Observations) -> dict[str, list[float]]:
    """Return the samples of the process."""
    return {
        "seconds": [round(sample.seconds, 1) for sample in seen.samples],
        "life": [sample.life for sample in seen.samples],
        "memory_mib": [round(sample.memory / MIB, 1) for sample in seen.samples],
        "files": [sample.files for sample in seen.samples],
    }
