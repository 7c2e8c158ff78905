"""Accuracy against the length of strings and of n-grams: two figures of the paper.

    python -m experiments.paper length

100 random strings over a–z with the authors' weights (i^20 plus .001), N = 100,000, three slots per
report at p = .25, q = .75, h = 2, 128 bits, 64 cohorts; n = 2 at lengths 4 to 12, n = 3 at 6, 9
and 12, n = 4 at 8. The results are the Hellinger distance over the true strings and one symbol
"unseen", and the share of the 100 strings that were not found.

According to the paper, larger n-grams are better at equal length, and there are no false strings.
"""

from __future__ import annotations

import numpy as np

from deniable.simulation import power
from experiments.paper.dictionaries import Short, short_trial
from experiments.paper.processes import trials_by_case
from experiments.paper.records import Claim, Record, Row

SEED = 1
CASES = [(2, length) for length in range(4, 13, 2)] + [(3, 6), (3, 9), (3, 12), (4, 8)]
QUICK = [(2, 6), (3, 6), (2, 8)]
TRIALS = {"paper": 100, "fused": 20}
DECODERS = {"paper": "the paper's decoder", "fused": "our decoder"}
"""Trials by reading."""
RUNS = 100
"""Crowds behind each number of the paper."""
WEIGHTS = power(100, floor=0.001)


def run_all(quick: bool, seed: int) -> Record:
    """Run all lengths with both readings."""
    parameters = {"quick": quick, "reports": 100_000, "trials": 1 if quick else TRIALS["paper"]}
    record = Record("length", seed, parameters)
    cases = {
        (gram, length, reading): [
            (Short(WEIGHTS, length, gram), seed + i, reading) for i in range(1 if quick else trials)
        ]
        for gram, length in (QUICK if quick else CASES)
        for reading, trials in TRIALS.items()
    }
    rows: list[Row] = []
    for (gram, length, reading), runs in trials_by_case(short_trial, cases, "length").items():
        distances = [r.distance for r in runs]
        rows.append(
            {
                "n": gram,
                "length": length,
                "reading": reading,
                "trials": len(runs),
                "Hellinger": float(np.mean(distances)),
                "each": distances,
                "not found": float(np.mean([1 - r.found / 100 for r in runs])),
                "trials with a false string": sum(r.false > 0 for r in runs),
            }
        )
    record.keep("length", rows)
    compare(record, rows)
    return record


def compare(record: Record, rows: list[Row]) -> None:
    """Compare n-grams at equal length: the paper says that a larger n is better."""
    for row in rows:
        at = f"n = {row['n']}, length {row['length']}"
        record.compare(f"Hellinger distance, {at}, {DECODERS[row['reading']]}", None, row["each"])
    for reading in TRIALS:
        of = {(r["n"], r["length"]): r for r in rows if r["reading"] == reading}
        for small, large, length in ((2, 3, 6), (2, 4, 8), (2, 3, 12)):
            if (small, length) in of and (large, length) in of:
                gain = np.subtract(of[small, length]["each"], of[large, length]["each"]).tolist()
                at = f"n = {small} minus n = {large}, length {length}"
                quantity = f"Hellinger distance, {at}, {DECODERS[reading]}"
                why = "our decoder uses pairs of n-grams so well that length hardly matters"
                reason = why if reading == "fused" else ""
                record.compare(quantity, Claim("above", 0), gain, behind=RUNS, reason=reason)
    false = [float(r["trials with a false string"]) / r["trials"] for r in rows]
    record.compare("share of trials with a false string", 0, false)
