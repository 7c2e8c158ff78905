"""Tables I and II: two independent variables of 100 categories each.

    python -m experiments.paper tables        10 seconds

Weights i^20, N = 100,000, k = 128, h = 2, 64 cohorts, p = .25, q = .75, f = 0; the five most common
categories of each by its estimated marginal, and Other. Errors are in percentage points of all
clients, against the crowd that was drawn, as in the paper's Table I, and against its population.

According to the paper, the largest error is .44 and the sum of absolute errors 3.26 in its single
table; 15 categories are detected; and estimates are biased without Other but not with it.
"""

from __future__ import annotations

import numpy as np

from deniable.analysis import decode
from deniable.compute.progress import report_progress
from deniable.results import Joint
from deniable.simulation import Coded, JointPopulation, power, simulate
from experiments.paper.records import Claim, Record, Row
from experiments.paper.trials import (
    Settings,
    TrialTable,
    TrialTables,
    associated,
    bloom,
    generators,
    pair,
    survey_of,
    truth_of,
)

SEED = 1
REPORTS, TOP = 100_000, 5
WAYS: dict[str, Settings] = {
    "mixture": {},
    "mixture, fitted=5": {"fitted": 5},
    "product": {"other": "product"},
    "none": {"other": False},
}
PRINTED_MARGIN = (19.0, 15.6, 12.7, 10.2, 8.4)
Trials = list[tuple[dict[str, Joint], JointPopulation]]
"""The joint table of each way, and the clients that were drawn."""


def drawn_table(crowd: JointPopulation, values: dict[str, Coded]) -> JointPopulation:
    """Return the clients that were drawn, as a population."""
    cells = np.ravel_multi_index([v.codes for v in values.values()], crowd.table.shape)
    counts = np.bincount(np.ravel(cells), minlength=crowd.table.size).astype(float)
    return JointPopulation(crowd.values, counts.reshape(crowd.table.shape))


def run_all(quick: bool, seed: int) -> Record:
    """Run ten trials, each decoded in every way of treating Other."""
    replications = 2 if quick else 10
    crowd, survey = pair(power(), power()), survey_of(x=bloom(), y=bloom())
    parameters = {"quick": quick, "reports": REPORTS, "top": TOP, "replications": replications}
    record = Record("tables", seed, parameters)
    trials: Trials = []
    detected: list[int] = []
    for rng in generators(seed, replications):
        values = crowd.draw(REPORTS, rng)
        reports = simulate(survey, values, rng=rng)
        joints = associated(survey, reports, crowd, WAYS, TOP)
        trials.append((joints, drawn_table(crowd, values)))
        marginals = [decode(survey, reports, q, crowd.values[q]) for q in "xy"]
        detected += [int(marginal.detected.sum()) for marginal in marginals]
        report_progress("tables", len(trials) / replications)
    joint, actual = trials[0][0]["mixture"], trials[0][1]
    cells = zip(joint.labels[0], joint.table, truth_of(actual, joint.labels), strict=True)
    record.keep(
        "table",
        [
            {"value": x, "other values": list(joint.labels[1]), "estimate": row, "truth": truth}
            for x, row, truth in cells
        ],
    )
    against = ("crowd drawn", "population")
    rows = [errors(way, trials, crowd, each) for way in WAYS for each in against]
    record.keep("errors", rows)
    margins = [100 * joints["mixture"].margin("x").estimate[:TOP] for joints, _ in trials]
    compare(record, rows, np.transpose(margins).tolist(), detected)
    return record


def compare(
    record: Record, rows: list[Row], margins: list[list[float]], detected: list[int]
) -> None:
    """Compare with Table I, the one table that the paper prints."""
    drawn = {row["other"]: row for row in rows if row["against"] == "crowd drawn"}
    record.compare("categories found by a marginal", 15, detected)
    record.compare("largest error, points", 0.44, drawn["mixture"]["each largest"], rounding=0.005)
    summed = {way: row["each summed"] for way, row in drawn.items()}
    record.compare("sum of absolute errors, points", 3.26, summed["mixture"], rounding=0.005)
    product = "the same, Other as the paper's independent bits"
    record.compare(product, 3.26, summed["product"], rounding=0.005)
    excess = np.subtract(summed["none"], summed["mixture"]).tolist()
    record.compare("the same, without Other minus with Other", Claim("above", 0), excess)
    for i, (printed, ours) in enumerate(zip(PRINTED_MARGIN, margins, strict=True)):
        record.compare(f"margin of value {i + 1}, per cent", printed, ours, rounding=0.05)


def errors(way: str, trials: Trials, crowd: JointPopulation, against: str) -> Row:
    """Return the largest and summed errors of one way, against the clients or the population."""
    tables = TrialTables.stacked(
        [
            TrialTable.of(drawn if against == "crowd drawn" else crowd, joints[way])
            for joints, drawn in trials
        ]
    )
    largest, summed = 100 * tables.largest(), 100 * tables.absolute()
    return {
        "other": way,
        "against": against,
        "largest": float(largest.mean()),
        "worst of all": float(largest.max()),
        "summed": float(summed.mean()),
        "summed, sd": round(float(summed.std(ddof=1)), 6),
        "cells": tables.truth.shape[1],
        "each largest": largest.tolist(),
        "each summed": summed.tolist(),
    }
