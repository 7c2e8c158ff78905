"""Measure how long commands take from the start: python -m benchmarks.start [--runs 5]

`deniable decode` reads 10⁵ reports (128 bits, h = 2, 64 cohorts) from Parquet and looks for 100
candidates. The first decode has an empty cache of compiled code. Each figure is the median of new
processes; the limit is the time in which Python imports the packages that the command needs.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from experiments.paper.trials import bloom, survey_of

from benchmarks.table import Row, of_process, show
from deniable import simulate
from deniable.columns import write
from deniable.simulation import Population, exponential

COMMAND = "from deniable.cli import main; main()"
NEEDED = "import click, numpy, pyarrow.parquet, rich.table, scipy.special, scipy.sparse"
WORDS = tuple(f"x{i}" for i in range(100))


def rows(runs: int = 5) -> Iterator[Row]:
    """Yield the times of commands."""
    python = [sys.executable, "-c"]
    survey = survey_of(x=bloom())
    rng = np.random.default_rng(1)
    values = Population(WORDS, exponential(len(WORDS), 8.0)).draw(10**5, rng)
    yield Row(
        "deniable --help",
        of_process([*python, COMMAND, "--help"], runs),
        target=0.12,
        limit=of_process([*python, "import click"], runs),
    )
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, name) for name in ("survey.json", "reports.parquet", "words.txt")]
        survey.publish(paths[0])
        write(paths[1], simulate(survey, {"x": values}, rng=rng))
        paths[2].write_text("\n".join(WORDS))
        reports, words = map(str, paths[:2]), str(paths[2])
        decode = [*python, COMMAND, "decode", *reports, "--candidates", words]
        of_process(decode, 1)  # compiles modules to byte code
        packages = of_process([*python, NEEDED], runs)
        yield Row("deniable decode", of_process(decode, runs), target=0.8, limit=packages)
        new_cache = {"NUMBA_CACHE_DIR": os.path.join(folder, "cache")}
        yield Row(
            "deniable decode, nothing compiled",
            of_process(decode, 1, new_cache),
            target=2.0,
            limit=packages,
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    show(list(rows(parser.parse_args().runs)))
