"""The category Other: the paper's four panels, and the bias and error of several models of it.

    python -m experiments.paper other      6 minutes

The panels show the ten crowds of Table I (see `tables`): estimates of the 5 × 5 most common cells
against the truth, without Other and with it. According to the paper, estimates are biased without
it ("regression to the mean") and unbiased with it.

Then models of Other are compared on all populations: two independent variables of 100 categories,
and two correlated ones (strength .3), k = 128, h = 2, 64 cohorts, p = .25, q = .75, N = 50,000; the
five most common categories and Other. There are three results, in percentage points of all clients:
`known`, the mean error of the summed cells without Other, ± its Monte Carlo error; `bias`, the sum
over cells of |mean error|, less the expected contribution of Monte Carlo noise; and `summed`, the
mean sum of absolute errors. The models are `mixture` (the default), the same with 5 or 30 strings
fitted, `product` (the paper's independent bits), and `none`, which leaves Other out, so that its
table has fewer cells.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from deniable.simulation import exponential, geometric, power, simulate, step, zipf
from experiments.paper.processes import in_processes
from experiments.paper.records import Claim, Record, Row
from experiments.paper.trials import (
    Settings,
    TrialTable,
    TrialTables,
    associated,
    bloom,
    coverage,
    generators,
    pair,
    survey_of,
)

SEED = 3
SHAPES = (zipf, power, geometric, step, exponential)
POPULATIONS = {shape.__name__: shape() for shape in SHAPES}
WAYS: dict[str, Settings] = {
    "mixture": {},
    "fitted=5": {"fitted": 5},
    "fitted=30": {"fitted": 30},
    "product": {"other": "product"},
    "none": {"other": False},
}
NAMES = {
    "mixture": "Other a mixture (ours)",
    "fitted=5": "the same, fitting only what is shown",
    "fitted=30": "the same, fitting up to 30",
    "product": "Other as independent bits (paper)",
    "none": "without Other",
}
PANELS = {
    "none": "without Other",
    "mixture": "with Other",
    "product": "with Other as independent bits",
}
PRODUCT = "a string of Other sets particular bits, which independent bits do not describe"
TOP = 5
REPORTS = 50_000


def run_all(quick: bool, seed: int) -> Record:
    """Run the panels; then every population, f and strength, and means over them."""
    trials = 2 if quick else 20
    parameters = {"quick": quick, "top": TOP, "trials": trials, "reports": REPORTS}
    record = Record("other", seed, parameters)
    panels(record, 2 if quick else 10)
    populations = ("power",) if quick else tuple(POPULATIONS)
    settings = [(n, f, s) for n in populations for f in (0.0, 0.5) for s in (0.0, 0.3)]
    found = in_processes(compared, [(*setting, trials, seed) for setting in settings], "other")
    rows = [row for each in found for row in each]
    record.keep("settings", rows)
    means = [means_of(rows, f, way) for f in (0.0, 0.5) for way in WAYS]
    record.keep("means", means)
    # The paper says that its model, independent bits, leaves no bias.
    said: dict[str, float | Claim] = {"product": 0, "none": Claim("not", 0)}
    for f, way in ((row["f"], row["other"]) for row in means):
        biases = [row["bias"] for row in rows if row["f"] == f and row["other"] == way]
        quantity = f"bias, points, f = {f:g}, {NAMES[way]}"
        record.compare(quantity, said.get(way), biases, behind=np.inf, reason=PRODUCT)
    return record


def means_of(rows: list[Row], f: float, way: str) -> Row:
    """Average one way of treating Other over all settings with this f."""
    chosen = [row for row in rows if row["other"] == way and row["f"] == f]
    columns = {name: [row[name] for row in chosen] for name in ("bias", "summed", "covered")}
    columns = {"|known|": [abs(row["known"]) for row in chosen], **columns}
    return {"f": f, "other": way} | {n: float(np.mean(values)) for n, values in columns.items()}


def panels(record: Record, replications: int) -> None:
    """Estimate the trials of Table I without Other and with it: every point, and slopes."""
    crowd, survey = pair(power(), power()), survey_of(x=bloom(), y=bloom())
    ways = {way: WAYS[way] for way in PANELS}
    points: list[Row] = []
    for rng in generators(1, replications):
        reports = simulate(survey, crowd.draw(100_000, rng), rng=rng)
        for way, joint in associated(survey, reports, crowd, ways, TOP).items():
            known = TrialTable.of(crowd, joint)[:TOP, :TOP]
            truth, estimate = known.truth.ravel(), known.estimate.ravel()
            line = {"other": way, "panel": "joint", "truth": truth, "estimate": estimate}
            among = {"truth": truth / truth.sum(), "estimate": estimate / estimate.sum()}
            points += [line, {**line, "panel": "conditional", **among}]
    record.keep("points", points)
    for way, name in PANELS.items():
        for panel in ("joint", "conditional"):
            chosen = [p for p in points if p["other"] == way and p["panel"] == panel]
            slopes = [float(np.polyfit(p["truth"], p["estimate"], 1)[0]) for p in chosen]
            quantity = f"slope of {panel} frequencies on truth, {name}"
            said = Claim("not", 1) if way == "none" else 1
            record.compare(quantity, said, slopes, behind=np.inf, reason=PRODUCT)


def compared(name: str, f: float, strength: float, trials: int, seed: int) -> list[Row]:
    """Return a line for every way on one population; trials with a smaller table are left out."""
    survey, weights = survey_of(x=bloom(f=f), y=bloom(f=f)), POPULATIONS[name]
    found: dict[str, list[TrialTable]] = {way: [] for way in WAYS}
    for rng in generators(seed, trials):
        crowd = pair(weights, weights, strength=strength, rng=rng)
        batch = simulate(survey, crowd.draw(REPORTS, rng), rng=rng)
        tables = associated(survey, batch, crowd, WAYS, TOP)
        if tables["mixture"].table.shape == (TOP + 1, TOP + 1):
            for way, joint in tables.items():
                found[way].append(TrialTable.of(crowd, joint))
    setting = {"population": name, "f": f, "strength": strength}
    return [
        {**setting, "other": way, "trials": len(each), **measured(each)}
        for way, each in found.items()
        if len(each) > 1
    ]


def measured(trials: list[TrialTable]) -> dict[str, Any]:
    """Return the numbers of one line, in points."""
    tables = TrialTables.stacked(trials)
    known = [(t.estimate - t.truth)[:TOP, :TOP].sum() for t in trials]
    noise = np.sqrt(2 / np.pi) * tables.bias_error().sum()
    return {
        "known": 100 * float(np.mean(known)),
        "±": 100 * float(np.std(known, ddof=1) / np.sqrt(len(known))),
        "bias": 100 * float(np.abs(tables.bias()).sum() - noise),
        "summed": 100 * float(tables.absolute().mean()),
        "covered": coverage(trials)[0],
    }
