"""How often does a discovery contain a string that no client holds?

    python -m experiments.false_discoveries [--crowds 8] [--jobs 2] [--seed 1]

Columns: share of crowds with any false string (α = .05), and true strings found, on average. Takes
about two minutes on 16 processors.
"""

from __future__ import annotations

import numpy as np

from experiments.false_strings import run
from experiments.parallel import crowd_arguments, in_processes
from experiments.promises import judged, share_error
from experiments.text_tables import text_table

PROTOCOLS = {"prefixes": None, "whole": None, "ngrams": "fused", "ngrams, paper": "paper"}
POPULATIONS = ("flat", "tail", "alike", "many", "silence")


def trial(task: tuple[str, str, int]) -> tuple[bool, int]:
    """Return whether a crowd led to a false string, and how many true ones were found."""
    protocol, population, seed = task
    found = run(protocol.split(",")[0], PROTOCOLS[protocol], population, seed)
    return bool(found["false"]), int(str(found["found"]))


def main() -> None:
    """Print the table and the promise."""
    given = crowd_arguments(__doc__, 8)
    settings = [(protocol, population) for protocol in PROTOCOLS for population in POPULATIONS]
    seeds = range(given.seed, given.seed + given.crowds)
    tasks = [(*setting, seed) for setting in settings for seed in seeds]
    trials = np.array(list(in_processes(trial, tasks, given.jobs)))
    by_setting = trials.reshape(len(settings), given.crowds, 2).mean(axis=1)
    rows = [
        {"protocol": setting[0], "population": setting[1], "any false": wrong, "found": found}
        for setting, (wrong, found) in zip(settings, by_setting.tolist(), strict=True)
    ]
    print(f"{given.crowds} crowds per row\n{text_table(rows)}\n")
    by_protocol = by_setting[:, 0].reshape(len(PROTOCOLS), -1).mean(axis=1)
    error = share_error(by_protocol, given.crowds * len(POPULATIONS))
    print(judged("Any false string in a discovery (by protocol)", by_protocol, error, 0, 0.05))


if __name__ == "__main__":
    main()
