"""App categories and whether an app is paid: a 30 × 2 table of real counts.

    python -m experiments.paper playstore     2 minutes

Basic RAPPOR, 30 bits and one bit, p = .25, q = .75, f = 0; N = 200,000 clients drawn from the
counts of `deniable.simulation.play_store`. The paper's sample of apps is different and unpublished.

According to the paper, 95% intervals cover, and T = 107.093 on 29 degrees of freedom gives
p = 6.9523e-11.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import chi2

from deniable.analysis import associate
from deniable.compute.progress import report_progress
from deniable.kernels.array_types import Floats, Mask
from deniable.simulation import play_store, simulate
from experiments.paper.records import Claim, Record, Row, rows_of
from experiments.paper.trials import (
    TrialTable,
    TrialTables,
    boolean,
    choice,
    coverage,
    generators,
    survey_of,
    truth_of,
)

SEED = 2
REPORTS = 200_000


def run_all(quick: bool, seed: int) -> Record:
    """Estimate the table and the rates of paid apps, and run two tests of independence."""
    replications = 4 if quick else 100
    crowd = play_store()
    survey = survey_of(category=choice(crowd.values["category"]), paid=boolean())
    parameters = {"quick": quick, "reports": REPORTS, "replications": replications}
    record = Record("playstore", seed, parameters)
    joints, rates, tests = [], [], []
    tail = chi2.sf([107.0935, 107.093, 107.0925], 29)
    for rng in generators(seed, replications):
        reports = simulate(survey, crowd.draw(REPORTS, rng), rng=rng)
        joint = associate(survey, reports, ["category", "paid"])
        joints.append(joint)
        truth, rate = truth_of(crowd, joint.labels), joint.conditional("category")
        true_rate = truth / truth.sum(axis=1, keepdims=True)
        rates.append((rate.low <= true_rate) & (true_rate <= rate.high))
        paper, score = joint.test("paper"), joint.test()
        tests.append((paper.statistic, paper.p_value, score.statistic, score.p_value))
        report_progress("playstore", len(joints) / replications)
    first, rate = joints[0], joints[0].conditional("category")
    tables = [TrialTable.of(crowd, joint) for joint in joints]
    compare_coverage(record, tables, np.array(rates))
    paper_t, paper_p, score_t, score_p = np.array(tests).T
    record.keep(
        "tests", [summary("paper's T", paper_t, paper_p), summary("score", score_t, score_p)]
    )
    freedom = [first.test("paper").degrees_of_freedom]
    record.compare("degrees of freedom", 29, freedom, computed=True)
    sample = "the paper's sample of apps was not published; ours has fewer paid apps"
    quantity = "paper's T (on its own, unpublished sample 107.093)"
    record.compare(quantity, 107.093, paper_t.tolist(), reason=sample)
    record.compare("p-value of T", 6.9523e-11, paper_p.tolist(), logarithm=True, reason=sample)
    quantity, printed = "P(χ² ≥ 107.093), 29 degrees of freedom, ×10⁻¹¹", 6.9523
    rounding = 1e11 * (tail[2] - tail[0]) / 2 + 5e-5
    record.compare(quantity, printed, [1e11 * tail[1]], computed=True, rounding=rounding)
    record.compare("our score test, p-value", None, score_p.tolist(), logarithm=True)
    table = {"category": first.labels[0], "truth": truth_of(crowd, first.labels)}
    table |= {"table": first.table, "low": first.low, "high": first.high, "rate": rate.estimate}
    record.keep("cells", rows_of(**table, rate_low=rate.low, rate_high=rate.high))
    return record


def compare_coverage(record: Record, trials: list[TrialTable], rates_covered: Mask) -> None:
    """Compare the coverage of all intervals in each crowd with 95%.

    rates_covered : bool[crowds, ...], whether each interval of a rate contains the truth
    """
    tables = TrialTables.stacked(trials)
    covered, cells = coverage(trials)
    every = (tables.low <= tables.truth) & (tables.truth <= tables.high)
    shares = [covered, float(every.mean()), float(rates_covered.mean())]
    kinds = ["of 3 standard errors or more", "all 60", "rates of paid apps"]
    numbers = [cells, every.size, 30 * len(trials)]
    record.keep("coverage", rows_of(cells=kinds, number=numbers, covered=shares))
    large = tables.truth[0] >= 3 * tables.error.mean(axis=0)
    each = (every[:, large], every, rates_covered.reshape(len(trials), -1))
    quantities = (
        "coverage of 95% intervals, cells of 3 standard errors",
        "coverage, all 60 cells",
        "coverage, rates of paid apps",
    )
    for quantity, hits in zip(quantities, each, strict=True):
        covered_by_crowd = hits.mean(axis=1).tolist()
        record.compare(quantity, Claim("at least", 0.95), covered_by_crowd, behind=np.inf)


def summary(name: str, statistic: Floats, p_value: Floats) -> Row:
    """Summarise one test over all trials."""
    return {
        "test": name,
        "least": float(statistic.min()),
        "median": float(np.median(statistic)),
        "most": float(statistic.max()),
        "median p": float(np.median(p_value)),
        "rejected at .05": float(np.mean(p_value <= 0.05)),
    }
