"""Trials of `discover` with simulated reports, and the line that summarises them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from deniable import Survey, discover, simulate
from deniable.simulation import Population
from experiments.paper.records import Record, Row


def trial(
    survey: Survey,
    population: Population,
    clients: int,
    rng: np.random.Generator,
    words: Mapping[str, float] | None = None,
    executor: str | None = None,
) -> dict[str, float]:
    """Return the numbers of true and false strings, and the coverage of the intervals."""
    words = words or {}
    reports = simulate(survey, population.draw(clients, rng), rng=rng)
    found = discover(survey, reports, "value", words=words, executor=executor)
    share = np.array([population.share(s) for s in found.strings])
    return {
        "found": int((share > 0).sum()),
        "of them listed": sum(s in words for s in found.strings),
        "false": int((share == 0).sum()),
        "looked at": found.candidates,
        "covered": float(np.mean((found.low <= share) & (share <= found.high))),
        "seconds": float(sum(s.seconds for s in found.stages)),
    }


def run_trials(
    record: Record,
    name: str,
    trials: int,
    run_one: Callable[[np.random.Generator], dict[str, float]],
) -> Row:
    """Run trials one after another, keep their rows in the record, and return their summary."""
    rows = []
    for i in range(trials):
        rows.append({"trial": i, **run_one(np.random.default_rng([record.seed, i]))})
        print(name, rows[-1], flush=True)
    record.keep(name, rows)
    found = np.array([row["found"] for row in rows])
    return {
        "crowd": name,
        "trials": trials,
        "found": float(found.mean()),
        "spread": float(found.std()),
        "least": int(found.min()),
        "most": int(found.max()),
        "runs with a false string": sum(row["false"] > 0 for row in rows),
        "covered": float(np.mean([row["covered"] for row in rows])),
    }
