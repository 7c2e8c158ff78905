"""Appendix A: uniformity of p-values under independence, and the power of the tests.

    python -m experiments.paper independence      8 minutes

The experiment uses the public functions: reports of a simulated crowd, `deniable.associate`, and
three tests of its result: the score test (the default), the paper's T, and the likelihood ratio.
p = .25, q = .75, f = 0; Bloom questions have k = 128, h = 2, 64 cohorts and 100 categories, of
which five and Other are shown. `rejected` is the share of trials with p ≤ .05. `KS p` is the
p-value of the Kolmogorov–Smirnov test of uniformity, which is meaningful only under independence.

The paper shows 100 trials of N = 10,000 with p-values on the diagonal of a quantile plot.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import kstest

from deniable.analysis import associate
from deniable.kernels.array_types import Floats
from deniable.simulation import simulate, step, zipf
from experiments.paper.processes import in_processes
from experiments.paper.records import Record
from experiments.paper.trials import Settings, bloom, choice, generators, pair, survey_of

SEED = 5
METHODS = ("score", "paper", "lrt")


@dataclass(frozen=True)
class IndependenceTrial:
    """One population, its number of reports, and the number of trials."""

    name: str
    kind: str
    weights: Floats
    reports: int
    trials: int
    strength: float = 0.0


SETTINGS = (
    IndependenceTrial("Appendix A: Basic 5x5", "basic", zipf(5), 10_000, 1000),
    IndependenceTrial("Basic 6x6, rare categories", "basic", zipf(6, 3.0), 10_000, 400),
    IndependenceTrial("Basic 3x3, few reports", "basic", zipf(3), 500, 400),
    IndependenceTrial("Bloom with Other, zipf", "bloom", zipf(), 10_000, 300),
    IndependenceTrial("Bloom with Other, zipf", "bloom", zipf(), 100_000, 200),
    IndependenceTrial("Bloom with Other, step", "bloom", step(), 100_000, 100),
    IndependenceTrial("Basic 3x3, dependent", "basic", zipf(3, 0.3), 20_000, 400, 0.03),
    IndependenceTrial("Basic 5x5, dependent", "basic", zipf(5), 10_000, 400, 0.07),
    IndependenceTrial("Basic 6x6, rare, dependent", "basic", zipf(6, 3.0), 10_000, 200, 0.2),
    IndependenceTrial("Bloom with Other, dependent", "bloom", zipf(), 100_000, 100, 0.03),
)


NAMES = {"score": "our score test", "paper": "paper's T"}
ZEROS = "T treats cells estimated at 0 as known exactly"


def p_values(which: int, trials: int, seed: int) -> dict[str, list[float]]:
    """Return the p-values of each test in every trial of SETTINGS[which]."""
    setting = SETTINGS[which]
    found: dict[str, list[float]] = {method: [] for method in METHODS}
    for rng in generators(seed, trials):
        own = rng if setting.kind == "bloom" else None
        crowd = pair(setting.weights, setting.weights, strength=setting.strength, rng=own)
        options: Settings = {}
        if setting.kind == "bloom":
            survey = survey_of(x=bloom(), y=bloom())
            options = {"candidates": crowd.values, "top": 5}
        else:
            survey = survey_of(x=choice(crowd.values["x"]), y=choice(crowd.values["y"]))
        reports = simulate(survey, crowd.draw(setting.reports, rng), rng=rng)
        joint = associate(survey, reports, ["x", "y"], **options)
        for method in METHODS:
            found[method].append(joint.test(method).p_value)
    return found


def run_all(quick: bool, seed: int) -> Record:
    """Run every setting; that of Appendix A is also shown after its first 100 trials."""
    record = Record("independence", seed, {"quick": quick})
    tasks = [(i, 4 if quick else s.trials, seed) for i, s in enumerate(SETTINGS)]
    outcomes = in_processes(p_values, tasks, "independence")
    rows: list[dict[str, Any]] = []
    for setting, (_, trials, _), found in zip(SETTINGS, tasks, outcomes, strict=True):
        part = f"{setting.name}, N={setting.reports}, strength={setting.strength}"
        record.keep(part, [{"method": m, "p_values": sorted(p)} for m, p in found.items()])
        for count in (100, trials) if trials == 1000 else (trials,):
            for method, values in found.items():
                p = np.array(values[:count])
                row = {"setting": setting.name, "N": setting.reports, "strength": setting.strength}
                row |= {"trials": count, "test": method, "rejected": float(np.mean(p <= 0.05))}
                uniform = np.nan if setting.strength else float(kstest(p, "uniform").pvalue)
                rows.append({**row, "KS p": uniform})
    record.keep("tests", rows)
    for setting, (_, trials, _), found in zip(SETTINGS, tasks, outcomes, strict=True):
        for method, name in NAMES.items():
            what = f"{setting.name}, N = {setting.reports:,}, {trials} trials, {name}"
            compare(record, what, np.array(found[method]), setting.strength > 0)
    return record


def compare(record: Record, what: str, p: Floats, dependent: bool) -> None:
    """Compare the rejections and the mean of p-values with those of uniform ones."""
    rejected = (p <= 0.05).astype(float).tolist()
    if dependent:
        record.compare(f"{what}: power at .05", None, rejected)
        return
    always = {"behind": np.inf, "reason": ZEROS}
    record.compare(f"{what}: rejected at .05", 0.05, rejected, **always)
    record.compare(f"{what}: mean p-value", 0.5, p.tolist(), **always)
