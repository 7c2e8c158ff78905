"""Unknown strings of other shapes: Appendix B of the paper.

    python -m experiments.distributions [--quick] [--seed 0] [-o FOLDER]   about 6 min of one core

The hash trial (see `hashes`) with other weights: geometric(.3); a step, 4 of .12, 4 of .06, and 92
that share the rest; uniform.

The paper: geometric like its Zipfian; step worse; of a uniform population "none of the strings are
found". That, and the 7 strings of the hash trial, are what a pair threshold of .04 gives, which the
authors' published program sets right after computing δ: 7 or 8 strings of the hash trial are more
frequent, and none of .01. By the paper's formula δ is .0027 here, and 1.64 δ = .0045 "a frequency
above which we expect to be able to distinguish strings from noise": strings of .01 are then found
wherever all three of their bigrams are significant (.01 is 4.2 standard errors of a position's
bigrams, and 3.8 are needed for 757 of them). So both thresholds are run.

Measured (20 crowds each; found, least to most, Hellinger distance; no run with a false string):
| weights | paper, δ = .04 | paper, δ by its formula | default |
| --- | --- | --- | --- |
| geometric | 6.0 (6 to 6), .34 | 9.8 (9 to 11), .18 | 12.0 (11 to 13), .12 |
| step | 8.0 (8 to 8), .53 | 8.0 (8 to 8), .53 | 8.8 (8 to 10), .53 |
| uniform | 0 (0 to 0), 1 | 24.4 (13 to 33), .87 | 90.1 (84 to 99), .29 |
"""

from __future__ import annotations

from experiments.dictionaries import short_strings

from deniable.simulation import geometric, step, uniform
from deniable.simulation.records import Record, arguments

WEIGHTS = {"geometric": geometric(100, 0.3), "step": step(), "uniform": uniform()}


def main() -> None:
    """Every shape in every reading, on the same crowds."""
    options = arguments(__doc__, seed=0)
    trials = 2 if options.quick else 20
    record = Record("distributions", options.seed, {"trials": trials})
    rows = short_strings(WEIGHTS, options.seed, trials)
    record.show("distributions", rows, f"Found of 100, {trials} crowds each")
    record.write(options.output)


if __name__ == "__main__":
    main()
