"""Computing time of the paper's decoder: its section "Efficiency" (V-B), as a figure.

    python -m experiments.paper complexity      3 minutes

The hash experiment (100 random strings, weights i^20 plus .001, bigrams, p = .25, q = .75, 128
bits, 64 cohorts) with other numbers of clients N, alphabets D (the dictionary of bigrams has |D|²
entries), and lengths of strings. Times are those of the stages of `reading="paper"`: marginals of
all bigrams, (a) co-occurrences by EM, (b) cliques, and the test of whole strings.

According to the paper, (a) takes time proportional to N and at most |D|^(nr), with n = 2 characters
and r = 2 bigrams per client, and more time than (b) in most cases.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deniable.compute.progress import report_progress
from deniable.simulation import Population, power, random_strings
from experiments.paper.dictionaries import Run, ngram_survey, run
from experiments.paper.records import Claim, Record, Row

SEED = 0
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
USUAL = {"reports": 100_000, "alphabet": 26, "length": 6}
SIZES = {
    "reports": (10_000, 30_000, 100_000, 300_000),
    "alphabet": (5, 9, 16, 26, 36),
    "length": (4, 6, 8, 10, 12),
}
PHASES = {
    "grams significant": "marginals",
    "pairs above": "co-occurrences",
    "cliques": "cliques",
    "tested on": "whole strings",
}
"""Phases by the beginnings of the names of stages."""


def timed(reports: int, alphabet: int, length: int, seed: int) -> dict[str, float]:
    """Run one trial, and return the seconds of each phase."""
    letters = LETTERS[:alphabet]
    rng = np.random.default_rng([75, alphabet, length, seed])
    population = Population(random_strings(100, length, rng, letters), power(100, floor=0.001))
    survey = ngram_survey(q=0.75, length=length, gram=2, alphabet=letters)
    return phases_of(run(survey, population, reports, seed, "paper"))


def phases_of(found: Run) -> dict[str, float]:
    """Return the seconds of each phase, and of the whole analysis."""
    seconds = dict.fromkeys(PHASES.values(), 0.0)
    for stage in found.result.stages:
        for start, phase in PHASES.items():
            if stage.name.startswith(start):
                seconds[phase] += stage.seconds
    return {**seconds, "all": found.seconds}


def run_all(quick: bool, seed: int) -> Record:
    """Vary one size at a time, after a first run that compiles what is compiled."""
    crowds = 1 if quick else 5
    record = Record("complexity", seed, {"quick": quick, "crowds": crowds, **USUAL})
    timed(10_000, 26, 6, seed)
    rows: list[Row] = []
    for size, values in SIZES.items():
        for value in values[:2] if quick else values:
            each = [timed(**{**USUAL, size: value}, seed=seed + i) for i in range(crowds)]
            phases = {phase: [seconds[phase] for seconds in each] for phase in each[0]}
            medians = {phase: float(np.median(seconds)) for phase, seconds in phases.items()}
            rows.append({"size": size, "value": value, **medians, "each": phases})
            report_progress("complexity", len(rows) / sum(map(len, SIZES.values())))
    record.keep("times", rows)
    compare(record, rows)
    record.notes.append(
        "Times depend on the machine and on what else it does: no seed repeats them."
    )
    return record


def compare(record: Record, rows: Sequence[Row]) -> None:
    """Compare how the time of co-occurrences grows, and how it compares with cliques."""
    names = {"reports": "N", "alphabet": "|D|", "length": "the length of strings"}
    for size, name in names.items():
        chosen = [row for row in rows if row["size"] == size]
        times = np.log([row["each"]["co-occurrences"] for row in chosen])
        powers = np.polyfit(np.log([row["value"] for row in chosen]), times, 1)[0]
        quantity = f"co-occurrences: power of {name} to which the time grows"
        if size == "reports":
            fixed = "a part of the work, such as starting the computation, does not depend on N"
            record.compare(quantity, 1, powers.tolist(), behind=np.inf, reason=fixed)
        else:
            record.compare(quantity, None, powers.tolist())
        if size == "alphabet":
            quantity = "4 minus that power"
            record.compare(quantity, Claim("above", 0), (4 - powers).tolist(), behind=np.inf)
    ratios = [row["co-occurrences"] / max(row["cliques"], 1e-9) for row in rows]
    quantity = "time of co-occurrences over time of cliques, by size"
    record.compare(quantity, Claim("above", 1), ratios, behind=np.inf, logarithm=True)
