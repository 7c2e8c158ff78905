"""Run experiments of the paper, and compare every number that it prints with ours.

    python -m experiments.paper                        list the experiments
    python -m experiments.paper urls --quick
    python -m experiments.paper all -o docs/results/paper

The paper is "Building a RAPPOR with the Unknown" (Fanti, Pihur and Erlingsson, 2016).
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from importlib import import_module
from pathlib import Path

from deniable.cli.output import progress_bars
from experiments.paper import PAPER
from experiments.paper.records import Record


def main() -> None:
    """Run the experiments that the command line names, or list them."""
    parser = argparse.ArgumentParser("python -m experiments.paper", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("names", nargs="*", metavar="ID", help="experiment to run, or all")
    parser.add_argument("--quick", action="store_true", help="run few trials, under a minute")
    parser.add_argument("--seed", type=int, help="seed to use instead of the published one")
    parser.add_argument("--json", action="store_true", help="print the comparisons as JSON")
    parser.add_argument(
        "-o", dest="folder", type=Path, metavar="FOLDER", help="write ID.json and ID.png to FOLDER"
    )
    args = parser.parse_args()
    for name in args.names:
        if name not in (*PAPER, "all"):
            parser.error(f"{name!r} is not one of: all, {', '.join(PAPER)}")
    if not args.names:
        print("\n".join(f"{name:14}{title}" for name, title in PAPER.items()))
        return
    comparisons = []
    for name in PAPER if "all" in args.names else args.names:
        record = run(name, args.quick, args.seed)
        comparisons += [{"experiment": name, **asdict(c)} for c in record.comparisons]
        if not args.json:
            print(f"\n{name}: {PAPER[name]}\nseed {record.seed}, {record.seconds:.0f} s\n")
            print(record.table(), flush=True)
        if args.folder:
            from experiments.paper.figures import write

            write(record, args.folder)
    if args.json:
        print(json.dumps(comparisons, indent=1))


def run(name: str, quick: bool, seed: int | None) -> Record:
    """Run one experiment with a progress bar, by default with its published seed."""
    module = import_module(f"experiments.paper.{name}")
    with progress_bars():
        record: Record = module.run_all(quick, module.SEED if seed is None else seed)
    return record


if __name__ == "__main__":
    main()
