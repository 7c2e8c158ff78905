"""Coverage and bias of joint tables with Other.

    python -m experiments.joint_coverage [--quick] [--seed 4] [-o FOLDER]      6 minutes
    python -m experiments.joint_coverage --reports 1000000 --fitted 30         one N

Two variables of 100 categories, independent or correlated, k = 128, h = 2, 64 cohorts, p = .25,
q = .75; the five most common categories (step: the eight that differ from the others) and Other.
Coverage is counted over true cells of at least three standard errors: `known` over cells without
Other, `with Other` over cells with it. `spread` is the standard deviation of the errors over the
standard error. `off` is the number of cells, of those seen in most trials, whose mean estimate is
wrong by more than 2% and by more than three Monte Carlo errors. Trials in which nothing is
detected have no table and are left out.

`--fitted` is the number of strings that are fitted. Other consists of different strings in each
row of the table, but has one model, so fitting only the shown categories is not enough.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import deniable
from deniable.errors import InputError
from deniable.simulation import power, simulate, step, zipf
from experiments.options import arguments, finish
from experiments.paper.records import Record
from experiments.paper.trials import (
    TrialTable,
    TrialTables,
    bloom,
    coverage,
    generators,
    pair,
    survey_of,
)
from experiments.text_tables import show

POPULATIONS = {"zipf": (zipf(), 5), "i^20": (power(), 5), "step": (step(), 8)}
REPLICATIONS = {10_000: 100, 100_000: 40, 1_000_000: 6}


def tables(
    name: str, strength: float, f: float, reports: int, replications: int, seed: int, **more: Any
) -> list[TrialTable]:
    """Return the tables of one setting, of trials in which something was detected."""
    weights, top = POPULATIONS[name]
    survey = survey_of(x=bloom(f=f), y=bloom(f=f))
    found = []
    for rng in generators(seed, replications):
        crowd = pair(weights, weights, strength=strength, rng=rng)
        batch = simulate(survey, crowd.draw(reports, rng), rng=rng)
        try:
            joint = deniable.associate(
                survey, batch, ["x", "y"], candidates=crowd.values, top=top, **more
            )
        except InputError:
            continue
        found.append(TrialTable.of(crowd, joint))
    return found


def measured(trials: list[TrialTable]) -> dict[str, Any]:
    """Return the numbers of one line."""
    known = [trial[:-1, :-1] for trial in trials]
    # Row and column of Other, the corner once.
    with_other = [part for t in trials for part in (t[-1:, :], t[:-1, -1:])]
    tally = TrialTables.by_shape(trials)[0]
    large = tally.truth.mean(axis=0) >= 3 * tally.error.mean(axis=0)
    bias, error = np.abs(tally.bias()), tally.bias_error()
    spread = tally.spread() / tally.error.mean(axis=0)
    off = large & (bias > 0.02 * tally.truth.mean(axis=0)) & (bias > 3 * error)
    inside, count = coverage(known)
    inside_other, count_other = coverage(with_other)
    return {
        "trials": len(trials), "cells": count + count_other, "known": inside,
        "with Other": inside_other, "all": coverage(trials)[0],
        "spread": float(np.median(spread[large])) if large.any() else float("nan"),
        "off": int(off.sum()),
    }  # fmt: skip


def run(sizes: dict[int, int], seed: int, **more: Any) -> Record:
    """Run every population, strength and f; sizes : replications by number of reports."""
    record = Record("joint_coverage", seed, {"replications": sizes, **more})
    rows = []
    for reports, replications in sizes.items():
        for name in POPULATIONS:
            for f in (0.0, 0.5):
                for strength in (0.0, 0.3):
                    found = tables(name, strength, f, reports, replications, seed, **more)
                    if len(found) > 1:
                        rows.append({"N": reports, "population": name, "f": f,
                                     "strength": strength, **measured(found)})  # fmt: skip
                    print(".", end="", flush=True)
    show(record, "coverage", rows, "Coverage of 95% intervals")
    return record


if __name__ == "__main__":
    options = arguments(
        __doc__, seed=4, reports={"type": int, "help": "run this number of reports only"},
        fitted={"type": int, "help": "categories that are fitted, as in associate"},
        replications={"type": int},
    )  # fmt: skip
    sizes = {n: r for n, r in REPLICATIONS.items() if options.reports in (None, n)}
    if options.quick or options.replications:
        sizes = dict.fromkeys(sizes, options.replications or 5)
    settings = {} if options.fitted is None else {"fitted": options.fitted}
    record = run(sizes, options.seed, **settings)
    finish(record, options)
