"""Accuracy and number of edges against the pair threshold: a figure of the paper.

    python -m experiments.paper threshold

The hash experiment (100 strings of six letters, bigrams, N = 100,000, p = .25, q = .75) with the
paper's decoder and its threshold δ = .0027 times ¼, ½, 1, 2, 4, 8 and 16 (.044): Hellinger
distance, and the number of edges of the graph, which determines the computing time.

According to the paper, the best threshold is near δ.
"""

from __future__ import annotations

import numpy as np

from deniable.discovery.ngrams.paper_reading import pair_threshold
from deniable.protocols import NGrams
from deniable.simulation import power
from experiments.paper.dictionaries import Run, Short, short_trial
from experiments.paper.processes import trials_by_case
from experiments.paper.records import Claim, Record, Row

SEED, REPORTS = 1, 100_000
FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
SHORT = Short(power(100, floor=0.001))


def edges_of(run: Run) -> int:
    """Return the number of edges of the graph, a measure of the effort."""
    return max((s.kept for s in run.result.stages if "pair" in s.name), default=0)


def run_all(quick: bool, seed: int) -> Record:
    """Run every threshold on the same reports."""
    trials, factors = (1, (0.25, 1.0, 16.0)) if quick else (20, FACTORS)
    protocol = SHORT.survey.question("value").protocol
    assert isinstance(protocol, NGrams)
    delta = pair_threshold(protocol, REPORTS)
    parameters = {"quick": quick, "reports": REPORTS, "trials": trials, "delta": delta}
    record = Record("threshold", seed, parameters)
    cases = {f: [(SHORT, seed + i, "paper", f * delta) for i in range(trials)] for f in factors}
    rows: list[Row] = []
    for factor, runs in trials_by_case(short_trial, cases, "threshold").items():
        distances, edges = [r.distance for r in runs], [edges_of(r) for r in runs]
        rows.append(
            {
                "threshold / delta": factor,
                "Hellinger": float(np.mean(distances)),
                "each": distances,
                "each edges": edges,
                "found": float(np.mean([r.found for r in runs])),
                "edges": float(np.mean(edges)),
                "candidates": float(np.mean([r.result.candidates for r in runs])),
            }
        )
        record.compare(f"Hellinger distance at {factor:g} δ", None, distances)
    record.keep("threshold", rows)
    compare(record, rows)
    return record


def compare(record: Record, rows: list[Row]) -> None:
    """Compare what the paper says of the best threshold, and of very low and high ones."""
    at_delta = next(r["each"] for r in rows if r["threshold / delta"] == 1.0)
    best = min(rows, key=lambda r: r["Hellinger"])["each"]
    loss = np.subtract(at_delta, best).tolist()
    quantity = "distance at δ minus the distance at the best threshold"
    record.compare(quantity, 0, loss, behind=np.inf)
    fewer = np.subtract(rows[0]["each edges"], rows[-1]["each edges"]).tolist()
    quantity = "edges at the lowest threshold minus edges at the highest"
    record.compare(quantity, Claim("above", 0), fewer, behind=np.inf)
    excess = np.subtract(rows[0]["each"], at_delta).tolist()
    quantity = "distance at the lowest threshold minus distance at δ"
    few = "six letters give too few candidates for a stricter correction to matter"
    record.compare(quantity, Claim("above", 0), excess, behind=np.inf, reason=few)
