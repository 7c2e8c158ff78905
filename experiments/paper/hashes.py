"""Hash strings without a dictionary: the first experiment of section V.

    python -m experiments.paper hashes          5 minutes

100 random strings of six letters, weights i^20 plus .001, bigrams, N = 100,000, three slots per
report at p = .25, q = .75, h = 2, 128 bits, 64 cohorts. The paper finds the 7 most common strings,
and 17 with candidates given, none of them false. `protocol` reports whole strings by local hashing,
with a third of the ε of those three slots.
"""

from __future__ import annotations

from deniable.simulation import power
from experiments.paper.dictionaries import (
    READINGS,
    WHOLE,
    Run,
    Short,
    decoded,
    mean_shares,
    note_cuts,
    prefix_survey,
    run,
    short_strings,
    summary,
)
from experiments.paper.processes import in_processes
from experiments.paper.records import Record
from experiments.paper.trials import bloom

SEED, REPORTS, EPSILON = 0, 100_000, 4.394449
SHORT = Short(power(100, floor=0.001))


def with_dictionary(seed: int) -> int:
    """Count the strings that are detected with candidates given, from the full-string reports."""
    marginal = decoded(bloom(), SHORT.population(seed), REPORTS, seed, "bonferroni")
    return int(marginal.detected.sum())


def by_whole_strings(seed: int) -> Run:
    """Run our protocol: one report with a third of the total ε."""
    survey = prefix_survey(epsilon=EPSILON, length=6, alphabet="a-z")
    return run(survey, SHORT.population(seed), REPORTS, seed, None)


def run_all(quick: bool, seed: int) -> Record:
    """Run every reading on the same reports; the dictionary; and our protocol, unless quick."""
    trials = 1 if quick else 20
    record = Record("hashes", seed, {"quick": quick, "trials": trials, "reports": REPORTS})
    found = short_strings({"hash trial": SHORT.weights}, seed, trials, "hashes", READINGS | WHOLE)
    rows = [summary(reading, runs) for (_, reading), runs in found.items()]
    seeds = [(i,) for i in range(seed, seed + trials)]
    known = in_processes(with_dictionary, seeds, "hashes with candidates given")
    ours = [] if quick else in_processes(by_whole_strings, seeds, "whole strings")
    populations = [SHORT.population(seed + i) for i in range(trials)]
    by_reading = {reading: runs for (_, reading), runs in found.items()}
    if ours:
        rows.append(summary("our protocol, a third of the ε", ours))
        by_reading["our protocol"] = ours
    record.keep("readings", rows)
    record.keep("ranks", mean_shares(populations, by_reading))
    printed = {name: 7 for name in READINGS | WHOLE if "as its program" in name}
    for (_, reading), runs in found.items():
        record.compare(f"found, {reading}", printed.get(reading), [r.found for r in runs])
    record.compare("found with candidates given", 17, known)
    if ours:
        record.compare("found by our protocol at a third of the ε", None, [r.found for r in ours])
    record.compare("false strings a run", 0, [r.false for runs in found.values() for r in runs])
    note_cuts(record, by_reading)
    return record
