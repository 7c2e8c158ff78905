"""Compare the speed of two versions: python -m benchmarks.compare --old ../before marginal --large

Runs one benchmark of this folder alternately in both source trees, and prints the median of each
number that it measures, their ratio, and the spread of the runs. Each tree runs from its own root
with its own sources; rows that only one tree prints are left out.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import statistics
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

from deniable.formatting import aligned

NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")
Row = tuple[str, int]
"""A printed line with its numbers left out, and which of its numbers is meant."""
PROCESSOR_TIME = "processor time of the whole run, s"
"""The row that depends least on what else the machine is doing."""


def numbers_of(output: str) -> dict[Row, float]:
    """Return each number that a benchmark printed.

    >>> numbers_of("fit, 100 strings 12.5 ms")
    {('fit, # strings # ms', 0): 100.0, ('fit, # strings # ms', 1): 12.5}
    """
    seen: Counter[str] = Counter()
    found = {}
    for line in output.splitlines():
        label = " ".join(NUMBER.sub("#", line).split())
        seen[label] += 1
        name = label if seen[label] == 1 else f"{label} ({seen[label]})"
        for place, number in enumerate(NUMBER.findall(line)):
            found[name, place] = float(number.replace(",", ""))
    return found


def run(tree: Path, benchmark: str, options: list[str]) -> dict[Row, float]:
    """Run a benchmark in a tree: as a module where its benchmarks are a package, else as a file."""
    package = (tree / "benchmarks" / "__init__.py").exists()
    program = ["-m", f"benchmarks.{benchmark}"] if package else [f"benchmarks/{benchmark}.py"]
    environment = {**os.environ, "PYTHONPATH": f"{tree / 'src'}{os.pathsep}{tree}"}
    command = [sys.executable, *program, *options]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        command, cwd=tree, env=environment, check=True, text=True, stdout=subprocess.PIPE
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {**numbers_of(done.stdout), (PROCESSOR_TIME, 0): used}


def table(old: dict[Row, list[float]], new: dict[Row, list[float]]) -> str:
    """Return one line per number that differs between runs: those that do not are settings."""
    lines: list[tuple[str, ...]] = [("row", "old", "new", "new / old", "old runs", "new runs")]
    for row, before in old.items():
        after = new.get(row, [])
        if not after or len({*before, *after}) == 1:
            continue
        medians = [statistics.median(runs) for runs in (before, after)]
        ratio = f"{medians[1] / medians[0]:.2f}" if medians[0] else ""
        spreads = [f"{min(runs):.4g} to {max(runs):.4g}" for runs in (before, after)]
        label = f"{row[0]} [{row[1] + 1}]"
        lines.append((label, *(f"{m:.4g}" for m in medians), ratio, *spreads))
    return "\n".join(aligned(lines, [False, True, True, True, False, False]))


def main() -> None:
    """Read the command line, run both trees in turn, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--old", type=Path, required=True, help="the tree to compare with")
    parser.add_argument("--new", type=Path, default=Path("."), help="this tree if not given")
    parser.add_argument("--runs", type=int, default=5, help="runs of each tree, 5 if not given")
    parser.add_argument("benchmark", help="a module of this folder, such as marginal")
    settings, options = parser.parse_known_args()
    trees = [settings.old.resolve(), settings.new.resolve()]
    runs: list[dict[Row, list[float]]] = [defaultdict(list), defaultdict(list)]
    for turn in range(settings.runs):
        for i in (0, 1) if turn % 2 == 0 else (1, 0):
            for row, number in run(trees[i], settings.benchmark, options).items():
                runs[i][row].append(number)
        print(f"run {turn + 1} of {settings.runs} is done", file=sys.stderr, flush=True)
    print(table(*runs))


if __name__ == "__main__":
    main()
