"""App categories and whether an app is paid: a 30 × 2 table of real counts.

    deniable reproduce playstore [--quick] [--seed 2] [-o FOLDER]     2 minutes

Basic RAPPOR, 30 bits and one bit, p = .25, q = .75, f = 0; N = 200,000 clients drawn from the
counts of `deniable.simulation.play_store`, another sample than the paper's unpublished one.

The paper: 95% intervals cover; T = 107.093 on 29 degrees of freedom, p = 6.9523e-11.
Ours, seed 2, 100 crowds: coverage .959 over cells of three standard errors or more, .971 over all,
.979 for rates of paid apps. On our sample the paper's T has median 45.2 and rejects independence at
.05 in 61 of 100 crowds (rare paid cells at 0 hold it down); the score test has median 62.8
(p = .00027) and rejects in 95. chi2.sf(107.093, 29) = 6.953e-11, as printed.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import chi2

import deniable
from deniable.compute.progress import report_progress
from deniable.reproduction.records import Record, command
from deniable.reproduction.trials import (
    Beside,
    Tally,
    boolean,
    choice,
    coverage,
    generators,
    survey_of,
    truth_of,
)
from deniable.simulation import play_store, simulate

SEED = 2
REPORTS = 200_000


def run_all(quick: bool, seed: int) -> Record:
    """Every replication: the table, rates of paid apps, and two tests of independence."""
    replications = 4 if quick else 100
    crowd = play_store()
    survey = survey_of(category=choice(crowd.values["category"]), paid=boolean())
    record = Record(
        "playstore", seed, {"quick": quick, "reports": REPORTS, "replications": replications}
    )
    tables, rates, tests, first, freedom = [], [], [], None, 0
    for rng in generators(seed, replications):
        reports = simulate(survey, crowd.draw(REPORTS, rng), rng=rng)
        joint = deniable.associate(survey, reports, ["category", "paid"])
        truth = truth_of(crowd, joint.labels)
        tables.append(Beside.of(crowd, joint))
        first = first or joint
        rate = joint.conditional("category")
        true_rate = truth / truth.sum(axis=1, keepdims=True)
        rates.append((rate.low <= true_rate) & (true_rate <= rate.high))
        paper, score = joint.test("paper"), joint.test()
        tests.append((paper.statistic, paper.p_value, score.statistic, score.p_value))
        freedom = paper.degrees_of_freedom
        report_progress("playstore", len(tests) / replications)
    tally = Tally.of(tables)
    covered, cells = coverage(tables)
    every = (tally.low <= tally.truth) & (tally.truth <= tally.high)
    record.keep("coverage", [
        {"cells": "of 3 standard errors or more", "number": cells, "covered": covered},
        {"cells": "all 60", "number": every.size, "covered": float(every.mean())},
        {"cells": "rates of paid apps", "number": 30 * len(rates),
         "covered": float(np.mean(rates))},
    ])  # fmt: skip
    statistics = np.array(tests)
    record.keep("tests", [
        {"test": name, "least": float(t.min()), "median": float(np.median(t)),
         "most": float(t.max()), "median p": float(np.median(p)),
         "rejected at .05": float(np.mean(p <= 0.05))}
        for name, t, p in (("paper's T", statistics[:, 0], statistics[:, 1]),
                           ("score", statistics[:, 2], statistics[:, 3]))
    ])  # fmt: skip
    near = abs(covered - 0.95) < 3 * np.sqrt(0.95 * 0.05 / cells) + 0.02
    record.compare("coverage of 95% intervals, cells of 3 standard errors", ".95", [covered],
                   agrees=bool(near))  # fmt: skip
    record.compare("coverage, all 60 cells", ".95", [float(every.mean())],
                   agrees=float(every.mean()) > 0.93)  # fmt: skip
    record.compare("coverage, rates of paid apps", ".95", [float(np.mean(rates))],
                   agrees=float(np.mean(rates)) > 0.93)  # fmt: skip
    record.compare("degrees of freedom", 29, [freedom])
    record.compare("paper's T (on its own, unpublished sample 107.093)", 107.093,
                   statistics[:, 0].tolist())  # fmt: skip
    record.compare("p-value of T", "6.95e-11", statistics[:, 1].tolist(),
                   agrees=bool(np.median(statistics[:, 1]) < 0.05))  # fmt: skip
    record.compare("P(χ² ≥ 107.093), 29 degrees of freedom, ×10⁻¹¹", 6.9523,
                   [1e11 * float(chi2.sf(107.093, 29))], rounding=0.005)  # fmt: skip
    record.compare("our score test, p-value", "", statistics[:, 3].tolist())
    assert first is not None
    joint, truth = first, truth_of(crowd, first.labels)
    record.keep("cells", [
        {"category": name, "truth": t.tolist(), "table": e.tolist(), "low": lo.tolist(),
         "high": hi.tolist(), "rate": r.tolist(), "rate_low": rl.tolist(),
         "rate_high": rh.tolist()}
        for name, t, e, lo, hi, r, rl, rh in zip(
            joint.labels[0], truth, joint.table, joint.low, joint.high,
            *(getattr(joint.conditional("category"), f) for f in ("estimate", "low", "high")),
            strict=True)
    ])  # fmt: skip
    return record


if __name__ == "__main__":
    command(run_all, __doc__, SEED)
