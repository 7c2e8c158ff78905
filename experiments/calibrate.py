"""Run the experiments behind every promise, and keep what they print.

    python -m experiments.calibrate [NAME[=CROWDS] …] [--jobs 16]     or: make calibrate

Without names all are run. What an experiment prints is kept in docs/results/calibration/NAME.txt,
below the command that printed it; `make facts` then writes the table of docs/results/promises.md.
The number of crowds is each experiment's default, unless it is given.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

from experiments.promises import MARK

FOLDER = Path(__file__).parents[1] / "docs" / "results" / "calibration"
NAMES = (
    "baseline_coverage",
    "repeated_coverage",
    "changes",
    "subgroup_coverage",
    "joint_margins",
    "selected_intervals",
    "false_discoveries",
    "detection_threshold",
    "few_cohorts",
    "three_way",
    "fit_check",
    "mechanism_gains",
    "repeated_gains",
)
"""All experiments about promises."""


def kept() -> list[str]:
    """Return the experiments whose outputs are kept, in their order."""
    return [name for name in NAMES if (FOLDER / f"{name}.txt").exists()]


def run(name: str, crowds: str, jobs: int) -> list[str]:
    """Run one experiment, show what it prints, keep it, and return its promises."""
    command = ["python", "-m", f"experiments.{name}", *(["--crowds", crowds] if crowds else [])]
    lines = [f"$ {' '.join(command)}"]
    print(lines[0], flush=True)
    arguments = [sys.executable, *command[1:], "--jobs", str(jobs)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line.rstrip())
    if process.returncode:
        raise SystemExit(f"{name} ended with status {process.returncode}; its figures are not kept")
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{name}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return [line for line in lines if line.startswith(MARK)]


def main() -> None:
    """Run what was asked for, then list the promises."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME[=CROWDS]", help=", ".join(NAMES))
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    given = parser.parse_args()
    chosen = [name.partition("=")[::2] for name in given.names or NAMES]
    if unknown := {name for name, _ in chosen} - set(NAMES):
        parser.error(f"expected names of {', '.join(NAMES)}; got {', '.join(sorted(unknown))}")
    promises = []
    for name, crowds in chosen:
        start = time.perf_counter()
        promises += run(name, crowds, given.jobs)
        print(f"({time.perf_counter() - start:.0f} s)\n", flush=True)
    print("\n".join(promises))


if __name__ == "__main__":
    main()
