"""Unknown strings with other distributions: Appendix B of the paper.

    python -m experiments.paper distributions   6 minutes of one core

The hash experiment (see `hashes`) with other weights: geometric(.3); a step, in which 4 strings
have share .12, 4 have .06 and the other 92 are equally common; and uniform.

According to the paper, the geometric population is like its Zipfian one, the step is worse, and of
a uniform population "none of the strings are found". The last statement, and the 7 strings of the
hash experiment, follow from a pair threshold of .04, which the authors' published program sets
right after computing δ: 7 or 8 strings of the hash experiment are more common than that, and no
string of .01 is. By the paper's formula δ is .0027 here, and 1.64 δ = .0045 is "a frequency above
which we expect to be able to distinguish strings from noise". Strings of .01 are then found if all
three of their bigrams are significant (.01 is 4.2 standard errors of a position's bigrams, and 3.8
are needed for 757 of them). Therefore both thresholds are run.
"""

from __future__ import annotations

import numpy as np

from deniable.simulation import geometric, power, step, uniform
from experiments.paper.dictionaries import READINGS, note_cuts, short_strings, summary
from experiments.paper.records import Claim, Record

SEED = 0
WEIGHTS = {
    "geometric": geometric(100, 0.3),
    "step": step(),
    "uniform": uniform(),
    "power": power(100, floor=0.001),
}
AS_PROGRAM, BY_FORMULA, DEFAULT = READINGS
STEEP = "strings above .04 hold 88% of geometric clients, but 76% of Zipfian ones"


def run_all(quick: bool, seed: int) -> Record:
    """Run every shape with every reading, on the same reports."""
    trials = 1 if quick else 20
    record = Record("distributions", seed, {"quick": quick, "trials": trials})
    found = short_strings(WEIGHTS, seed, trials, "distributions")
    distances = {case: [r.distance for r in runs] for case, runs in found.items()}
    mean = {case: float(np.mean(each)) for case, each in distances.items()}
    readings, ranks = [], []
    for (shape, reading), runs in found.items():
        line = {"weights": shape, "Hellinger": mean[shape, reading]}
        readings.append({**line, **summary(reading, runs)})
        truth = np.sort(WEIGHTS[shape])[::-1][:30]
        line = {"weights": shape, "truth": truth, "reading": reading}
        ranks.append({**line, "estimate": runs[0].result.estimate})
    record.keep("readings", readings)
    record.keep("ranks", ranks)
    by_shape = {shape: np.array(distances[shape, AS_PROGRAM]) for shape in WEIGHTS}
    for shape, each in by_shape.items():
        record.compare(f"Hellinger distance, {shape}, δ = .04", None, each.tolist())
    same, worse = "geometric minus Zipfian (power)", "step minus geometric"
    more = by_shape["geometric"] - by_shape["power"]
    record.compare(f"Hellinger distance, {same}, δ = .04", 0, more.tolist(), reason=STEEP)
    more = by_shape["step"] - by_shape["geometric"]
    record.compare(f"Hellinger distance, {worse}, δ = .04", Claim("above", 0), more.tolist())
    record.compare("found, uniform, δ = .04", 0, [r.found for r in found["uniform", AS_PROGRAM]])
    for shape in ("geometric", "step", "uniform"):
        for reading in (BY_FORMULA, DEFAULT):
            runs = found[shape, reading]
            record.compare(f"found, {shape}, {reading}", None, [r.found for r in runs])
    for shape in WEIGHTS:
        cases = {f"{shape}, {reading}": found[shape, reading] for reading in READINGS}
        note_cuts(record, cases)
    return record
